"""How commands take a machine: names of levels, places of hosts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.cli.common import CliError
from palmette.cli.job_options import with_places
from palmette.cli.level_names import KNOWN, level_notes, levels_of
from palmette_lab.cli import place
from palmette_lab.lab import LabError

Call = Callable[..., Any]


def test_levels_of_a_form_with_rates_latencies_lists_and_aggregators() -> None:
    assert levels_of("aggregator@400Mbit/s:3leaf@50Mbit/s~5ms:3+3+2node:2core") == ["leaf", "node", "core"]
    assert levels_of("topology.json") == []


@pytest.mark.parametrize(
    ("spec", "meant"), [("2laef:2node", "leaf"), ("2nod", "node"), ("2leaf:2node:2sokcet", "socket")]
)
def test_a_slip_in_a_level_is_noted_and_goes_on(spec: str, meant: str, palmette: Call) -> None:
    result = palmette("plan", "allreduce", "--machine", spec, "--size", "64", "--algorithm", "ring")
    assert (result.status, result.err.count("\n")) == (0, 1)
    assert f"did you mean {meant} for " in result.err


def test_a_switch_level_that_no_row_can_mean_is_noted() -> None:
    (note,) = level_notes("3island:2node")
    assert "ask for leaf" in note
    assert level_notes("3island:2leaf:2node") == []


def test_hosts_of_another_name_are_noted(palmette: Call, tmp_path: Path) -> None:
    assert level_notes("3foo") == ["levels are named foo; none is called node: each foo is taken as a host"]
    assert level_notes("2leaf:4core")[0].endswith("each core is taken as a host")
    assert level_notes("2leaf:4host") == []
    result = palmette("discover", "--from", "synthetic", "2laef:3node", "--json", "-o", tmp_path / "t.json")
    assert (result.status, result.err) == (0, "note: levels are named laef, node (did you mean leaf for laef?)\n")


@pytest.mark.parametrize("command", ["bench", "tune", "calibrate"])
def test_a_slip_in_the_levels_of_a_lab_is_noted(
    command: str, palmette_lab: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slip is noted before anything is built."""

    def refuse(*_: object, **__: object) -> None:
        raise LabError("no lab in this test")

    monkeypatch.setattr(place, "be_root", lambda: None)
    monkeypatch.setattr(place.Lab, "up", refuse)
    result = palmette_lab(command, *(["allgather"] if command != "calibrate" else []), "--lab", "2leaf:2nod")
    assert result.status == 2
    assert result.err.splitlines()[0] == "note: levels are named leaf, nod (did you mean node for nod?)", result.err


def test_the_names_that_are_used_are_not_noted() -> None:
    for name in (*KNOWN, "tier2"):
        assert level_notes(f"2{name}:2leaf:2node") == []
    assert level_notes("2pod:3rack:4node") == []


def test_the_known_names_are_those_that_algorithms_accept(root: Path) -> None:
    text = (root / "src/palmette/collectives/registry.cpp").read_text()
    names = text.partition("level_names[] = {")[2].partition("}")[0]
    assert tuple(name.strip().strip('"') for name in names.split(",")) == KNOWN


BARE = "2leaf@1GB/s:3node@1GB/s"


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "gather"), ("plan", "--predict", "gather", "--sizes", "1K"), ("plan", "--bound", "gather"),
        ("plan", "--flow", "gather"), ("explain", "gather", "1K"), ("map", "--pattern", "ring"),
        ("export", "--format", "openmpi-tuned"),
        ("compose", "gather"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_ppn_gives_hosts_places(words: tuple[str, ...], palmette: Call) -> None:
    result = palmette(*words, "--machine", BARE, "--ppn", "4", "--ranks", "20", "--json")
    assert result.status == 0, result.err
    document = json.loads(result.out)
    assert (len(document["programs"]) if words == ("plan", "gather") else document["ranks"]) == 20
    refused = palmette(*words, "--machine", BARE, "--ranks", "20")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "add --ppn N" in refused.err


def test_ppn_is_refused_where_all_insides_are_known(palmette: Call) -> None:
    result = palmette("plan", "gather", "--machine", "2leaf:2node:2core", "--ppn", "4")
    assert result.status == 2
    assert "these have 2 places" in result.err


def test_ppn_leaves_the_rest_of_a_machine_as_it_is() -> None:
    machine = _core.Machine.synthetic("aggregator@1GB/s:2leaf@1GB/s~5us:3node@2GB/s")
    widened = with_places(machine, 4)
    assert (machine.slots, widened.slots) == ([1] * 6, [4] * 6)
    document = widened.to_json()
    for leaf in document["tree"]["children"]:
        for host in leaf["children"]:
            assert host["slots"] == 4
            host["slots"] = 1
    assert document == machine.to_json()
    with pytest.raises(CliError):
        with_places(widened, 2)


def test_discover_says_how_ranks_get_places_where_a_fabric_alone_was_read(
    palmette: Call, root: Path, tmp_path: Path
) -> None:
    fabric = root / "tests/data/fabrics/fat-tree.txt"
    result = palmette("discover", "--from", "ibnetdiscover", fabric, "-o", tmp_path / "alone.json")
    assert "add --from hwloc" in result.out.splitlines()[-2] + result.out.splitlines()[-1]
    assert "--ppn N" in result.out
    inside = ("--from", "synthetic", "1node:2socket:4core")
    result = palmette("discover", "--from", "ibnetdiscover", fabric, *inside, "-o", tmp_path / "both.json")
    assert result.status == 0
    assert "--ppn" not in result.out
