"""`palmette discover --refresh`: sources are read again, and what they don't tell stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.topology.file import load

CONF = "SwitchName=leaf0 Nodes=n[0-{last}]\nSwitchName=leaf1 Nodes=m[0-3]\nSwitchName=spine Switches=leaf[0-1]\n"


@pytest.fixture
def cluster(palmette: Callable[..., Any], tmp_path: Path) -> tuple[Path, Path]:
    """A topology.conf of Slurm, and the topology.json that was made of it, with costs as a calibration writes them."""
    conf, path = tmp_path / "topology.conf", tmp_path / "topology.json"
    conf.write_text(CONF.format(last=3))
    assert palmette("discover", "--from", "slurm", conf, "-o", path, "--name", "ours").status == 0
    document = json.loads(path.read_text())
    leaf = next(level for level in document["machine"]["levels"] if level["name"] == "leaf")
    leaf |= {"latency_s": 2e-6, "source": "calibrated"}
    document["machine"]["memory"] = {"copy_bytes_per_s": 5e9, "source": "calibrated"}
    document["machine"]["tree"]["children"][1]["up_bytes_per_s"] = 1e9
    path.write_text(json.dumps(document))
    return conf, path


def test_new_hosts_come_in_and_calibrated_costs_stay(
    palmette: Callable[..., Any], cluster: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    conf, path = cluster
    conf.write_text(CONF.format(last=5))
    monkeypatch.setenv("PALMETTE_TOPOLOGY", str(path))
    result = palmette("discover", "--refresh")
    assert result.status == 0, result.err
    assert f"{path}: 2 hosts new: n4, n5" in result.out
    topology = load(path)
    assert topology.name == "ours"
    assert {host.name for host in topology.machine.tree.hosts()} >= {"n4", "n5", "m3"}
    leaf = next(level for level in topology.machine.levels if level.name == "leaf")
    assert (leaf.latency_s, leaf.source) == (2e-6, "calibrated")
    assert topology.machine.memory is not None and topology.machine.memory.copy_bytes_per_s == 5e9
    switches = {frozenset(h.name for h in node.hosts()): node for node in topology.machine.tree.walk()}
    assert switches[frozenset(f"m{i}" for i in range(4))].up_bytes_per_s == 1e9


def test_a_file_stays_untouched_where_nothing_has_changed(
    palmette: Callable[..., Any], cluster: tuple[Path, Path]
) -> None:
    _, path = cluster
    assert palmette("discover", "--refresh", path).status == 0
    before = path.stat()
    result = palmette("discover", "--refresh", path)
    assert result.out == f"{path}: nothing has changed\n"
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    found = json.loads(palmette("discover", "--refresh", path, "--json").out)
    assert found["changed"] is False


def test_a_source_that_lost_most_hosts_is_not_believed(
    palmette: Callable[..., Any], cluster: tuple[Path, Path]
) -> None:
    conf, path = cluster
    before = path.read_text()
    conf.write_text("SwitchName=leaf0 Nodes=n[0-1]\n")
    result = palmette("discover", "--refresh", path)
    assert result.status == 2
    assert "of its 8 hosts the sources have 2 left, so it stays as it is" in result.err
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"kind": "measurement"}, "its source is measurement, which can't be read again by itself"),
        ({"kind": "slurm", "path": "standard input"}, "its source slurm came from standard input"),
        ({"kind": "slurm", "path": "/none/topology.conf"}, "/none/topology.conf"),
    ],
)
def test_a_source_that_can_not_be_read_again_is_told(
    palmette: Callable[..., Any], cluster: tuple[Path, Path], source: dict[str, str], message: str
) -> None:
    _, path = cluster
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "sources": [source]}))
    result = palmette("discover", "--refresh", path)
    assert result.status == 2
    assert message in result.err
    assert len(result.err.splitlines()) == 1


def test_a_source_is_found_again_from_everywhere(
    palmette: Callable[..., Any], cluster: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf, path = cluster
    monkeypatch.chdir(conf.parent)
    made = palmette("discover", "--from", "slurm", conf.name, "--from", "synthetic", "1node:2core", "-o", path)
    assert made.status == 0
    assert made.out.startswith(f"from slurm {conf.name}: "), "as it was typed"
    stored = json.loads(path.read_text())["sources"]
    assert [source["path"] for source in stored] == [str(conf), "1node:2core"]
    monkeypatch.chdir("/")
    other = tmp_path / "other"
    other.mkdir()
    path = path.rename(other / path.name)
    unchanged = f"{path}: nothing has changed\n"
    assert palmette("discover", "--refresh", path).out == unchanged
    # As earlier versions wrote it: beside the file.
    path.write_text(path.read_text().replace(f"{conf.parent}/", ""))
    assert palmette("discover", "--refresh", path).status == 2
    conf.rename(other / conf.name)
    assert palmette("discover", "--refresh", path).out == unchanged


def test_refresh_and_from_exclude_each_other(palmette: Callable[..., Any], cluster: tuple[Path, Path]) -> None:
    result = palmette("discover", "--refresh", cluster[1], "--from", "hwloc")
    assert result.status == 2
    assert "leave out all but -o and --json" in result.err
