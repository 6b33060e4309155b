"""What `palmette doctor` says of GPUs, on the test driver."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from palmette.run import devices
from palmette.run.devices import Devices, find_devices, nccl_text, sentences, version_text

from .fake import FAKES, environment


@pytest.fixture
def ask() -> Callable[..., dict[str, tuple[bool, str]]]:
    """Return a function that gives the sentences by name, for a setting of the test driver."""
    if not (FAKES / "libcuda.so.1").is_file():
        pytest.skip("the test driver isn't built")

    def call(**settings: object) -> dict[str, tuple[bool, str]]:
        found = find_devices(environment(os.environ, **settings))
        return {name: (ok, detail) for name, ok, detail in sentences(found)}

    return call


def test_devices_are_told_with_what_palmette_does(ask: Callable[..., dict[str, tuple[bool, str]]]) -> None:
    lines = ask(devices=2)
    ok, detail = lines["CUDA"]
    assert ok
    assert detail.startswith("1 x Fake device 0, ")
    assert "1 x Fake device 1, " in detail
    assert "driver for 12." in detail
    assert lines["device memory"][0]
    assert lines["CUDA IPC"] == (True, "processes of a node read each other's device memory")
    assert lines["NCCL"][0]
    assert "libnccl.so.2, 2." in lines["NCCL"][1]


@pytest.mark.parametrize("setting", ["no_ipc", "no_ipc_open"])
def test_ipc_that_does_not_work_is_found_out(ask: Callable[..., dict[str, tuple[bool, str]]], setting: str) -> None:
    ok, detail = ask(**{setting: True})["CUDA IPC"]
    assert not ok
    assert "CUDA_ERROR_NOT_SUPPORTED" in detail
    assert detail.endswith("data of device memory goes through the host's")


def test_a_driver_without_devices_is_told_in_a_line(ask: Callable[..., dict[str, tuple[bool, str]]]) -> None:
    lines = ask(not_initialized=True)
    assert set(lines) == {"CUDA", "HIP"}
    assert not lines["CUDA"][0]
    assert "CUDA_ERROR_NOT_INITIALIZED" in lines["CUDA"][1]


def test_without_a_gpu_there_is_one_line() -> None:
    assert sentences(Devices()) == [("GPU", False, "no driver of CUDA or HIP")]


def test_a_driver_that_hangs_ends_at_the_time_limit(
    ask: Callable[..., dict[str, tuple[bool, str]]], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hangs.py").write_text("import time\ntime.sleep(60)\n", encoding="ascii")
    (tmp_path / "dies.py").write_text("import os\nos.abort()\n", encoding="ascii")
    monkeypatch.setattr(devices, "TIME_LIMIT_S", 0.5)
    monkeypatch.setattr(devices, "_PROBE", tmp_path / "hangs.py")
    assert ask()["GPU"] == (False, "drivers can't be asked: no answer within 0 s")
    monkeypatch.setattr(devices, "_PROBE", tmp_path / "dies.py")
    monkeypatch.setattr(devices, "TIME_LIMIT_S", 30.0)
    assert ask()["GPU"] == (False, "drivers can't be asked: the process that asked ended by signal 6")


def test_versions_are_read_as_their_makers_count() -> None:
    assert version_text(12040) == "12.4"
    assert version_text(60300000) == "6.3"
    assert nccl_text(22803) == "2.28.3"
    assert nccl_text(2708) == "2.7.8"


def test_the_command_fits_80_columns(palmette: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(os.environ, devices=2, no_ipc=True).items():
        monkeypatch.setenv(name, value)
    text = palmette("doctor")
    assert all(len(line) <= 80 for line in text.out.splitlines())
    assert "Fake device 1" in text.out
    found = json.loads(palmette("doctor", "--json").out)
    assert len(found["found_devices"]["cuda"]["devices"]) == 2
    assert found["found_devices"]["ipc"]["works"] is False
