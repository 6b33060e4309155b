"""The settings' one declaration, and what is derived from it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core, settings


def test_every_declaration_is_whole() -> None:
    names = [setting.name for setting in settings.declared()]
    assert len(names) == len(set(names))
    for setting in settings.declared():
        assert setting.name.startswith("PALMETTE_")
        assert setting.help.endswith("."), setting.name
        setting.check(setting.default)


def test_a_setting_is_found_by_variable_and_by_key() -> None:
    assert settings.find("topology") is settings.find("PALMETTE_TOPOLOGY")
    assert settings.find("topology").option == "--topology"
    with pytest.raises(KeyError):
        settings.find("weather")


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("enable", "0", "2"),
        ("compare", "0.5%", "1"),
        ("compare", "50%", "51%"),
        ("verbose", "2", "3"),
        ("serve_after", "100", "-1"),
        ("force", "allreduce=ring; bcast = mpi;", "allreduce"),
        ("force", "gather=leaders:leaders=2,between=linear", "sendrecv=linear"),
        ("device", "ipc,no-mpi", "ipc,gpu"),
        ("reorder", "off", "0"),
        ("report", "/tmp/r.json", "r.html"),
        ("report", "1", "yes"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(key: str, good: str, bad: str) -> None:
    setting = settings.find(key)
    setting.check(good)
    setting.check("")
    with pytest.raises(settings.SettingError, match=f"{setting.name}={bad}: expected"):
        setting.check(bad)


def test_forced_algorithms_are_read_and_written_alike() -> None:
    wanted = {"allreduce": "leaders:leaders=2,between=ring", "bcast": "mpi"}
    assert settings.forced(settings.force(**wanted)[settings.FORCE]) == wanted
    assert settings.forced("bcast=ring;bcast=mpi") == {"bcast": "mpi"}
    for name in settings.functions():
        assert name.startswith("neighbor_") or _core.collective_of(name)


def test_an_empty_variable_stands_for_the_default() -> None:
    (value,) = [v for v in settings.values({"PALMETTE_ENABLE": ""}) if v.setting.key == "enable"]
    assert (value.text, value.origin) == ("1", "default")


def test_variables_between_our_own_programs_are_not_unknown() -> None:
    assert settings.unknown({"PALMETTE_LAB_TABLE": "x", "PALMETTE_TABEL": "y", "HOME": "/"}) == ["PALMETTE_TABEL"]


def test_the_cpp_header_holds_every_setting_and_compiles(root: Path, tmp_path: Path) -> None:
    header = tmp_path / "settings_list.hpp"
    tool = root / "tools" / "generate_settings_header.py"
    subprocess.run([sys.executable, tool, settings.DECLARATIONS, header], check=True)
    text = header.read_text(encoding="utf-8")
    for setting in settings.declared():
        assert f'"{setting.name}"' in text
    source = tmp_path / "use.cpp"
    count = len(settings.declared())
    source.write_text(
        '#include "settings_list.hpp"\n'
        f"static_assert(palmette::settings::all.size() == {count});\n"
        'static_assert(palmette::settings::enable.default_value == "1");\n',
        encoding="utf-8",
    )
    subprocess.run(["c++", "-std=c++20", "-Wall", "-Werror", "-fsyntax-only", source], check=True, cwd=tmp_path)


def test_a_former_setting_is_told_with_what_holds_now(
    palmette: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALMETTE_GIVE_UP_SUMS", "1")
    result = palmette("settings")
    assert result.status == 0
    assert "PALMETTE_GIVE_UP_SUMS is what always happens now; PALMETTE_REPRODUCIBLE=1 keeps" in " ".join(
        result.err.split()
    )
    monkeypatch.setenv("PALMETTE_ALLREDUCE", "ring")
    told = " ".join(palmette("settings").err.split())
    assert "PALMETTE_ALLREDUCE is PALMETTE_FORCE=allreduce=ALGORITHM now; unset it" in told
    known = {setting.name for setting in settings.declared()}
    assert not known & settings.former().keys()
