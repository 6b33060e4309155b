"""`palmette report DIR` of a small stencil program: document, terminal, CSV, JSON and page agree with the recording."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palmette import _core
from palmette.mpi.abi import PROGRAMS
from palmette.record.causes import causes_of
from palmette.record.columns import unpacked
from palmette.record.findings import Detail, findings_of
from palmette.record.machine import seats_of
from palmette.record.reading import Job, read_job
from palmette.record.view import document

from .conftest import Mpi

pytestmark = pytest.mark.mpi

STEPS = 40
RANKS = 4


@pytest.fixture
def folder(mpi_called: Callable[[str], Mpi], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    mpi = mpi_called(getattr(request, "param", "mpich"))
    heat = PROGRAMS / f"heat.{mpi.abi}"
    ran = mpi.run(RANKS, heat, STEPS, settings={"PALMETTE_TRACE": str(tmp_path / "calls")})
    assert ran.status == 0, ran.text
    return tmp_path / "calls"


def shown(job: Job, **detail: int) -> dict[str, Any]:
    seats, missing = seats_of(job)
    assert seats is not None and not missing
    return document(job, seats, findings_of(job, seats, Detail(**detail)))


def in_mpi_s(job: Job) -> dict[int, float]:
    """Compute rank -> time in MPI between MPI_Init and MPI_Finalize, from the calls."""
    return {
        process.recorded.rank: sum(
            call.seconds
            for call in process.calls()
            if not call.is_request and call.function not in ("MPI_Init", "MPI_Finalize")
        )
        for process in job.processes
    }


def between_ends_s(job: Job) -> float:
    """Compute the time from MPI_Init's end to MPI_Finalize's begin, of all ranks together, from the calls."""
    found = 0.0
    for process in job.processes:
        calls = {call.function: call for call in process.calls()}
        begun = calls["MPI_Init"].begin_real_ns * 1e-9 + calls["MPI_Init"].seconds
        found += calls["MPI_Finalize"].begin_real_ns * 1e-9 - begun
    return found


@pytest.mark.parametrize("folder", ["mpich", "openmpi"], indirect=True)
def test_the_page_draws_what_was_recorded(folder: Path) -> None:
    job = read_job(folder)
    found = shown(job)
    calls = sum(
        not call.is_request and call.function not in ("MPI_Init", "MPI_Finalize")
        for process in job.processes
        for call in process.calls()
    )
    assert sum(row["calls"] for row in found["paths"]) == calls
    timeline = found["timeline"]
    assert (timeline["calls"]["count"], timeline["calls"]["total"]) == (calls, calls)
    # Levels of detail: each has the same time in MPI, rank by rank.
    expected = in_mpi_s(job)
    for level in timeline["levels"]:
        shares = unpacked(level["mpi"], "u1").reshape(RANKS, level["bins"]) / 255
        for rank, share in enumerate(shares.mean(axis=1)):
            assert share * timeline["span_s"] == pytest.approx(expected[rank], rel=0.02, abs=2e-3)
        waiting = unpacked(level["waiting"], "u1").reshape(RANKS, level["bins"]) / 255
        assert waiting.mean() * RANKS * timeline["span_s"] == pytest.approx(
            found["split"]["waiting_s"], rel=0.02, abs=2e-3
        )
    # Calls one by one lie within the span, and have the time that they had.
    unit = timeline["span_s"] / 2**32
    lengths = unpacked(timeline["calls"]["length"], "u4") * unit
    assert lengths.sum() == pytest.approx(sum(expected.values()), rel=1e-3)
    assert (unpacked(timeline["calls"]["waiting"], "u4") <= unpacked(timeline["calls"]["length"], "u4") + 1).all()
    # All but the sums go to neighbours, and each message's both ends are there.
    messages = 2 * (RANKS - 1) * STEPS
    assert timeline["messages"]["count"] == messages
    assert np.all(np.abs(unpacked(timeline["messages"]["from"], "u2").astype(int) -
                         unpacked(timeline["messages"]["to"], "u2").astype(int)) == 1)  # fmt: skip
    # Served collectives are in the matrix, too.
    matrix = unpacked(found["matrix"]["messages"], "f4").reshape(RANKS, RANKS)
    assert (matrix >= STEPS * (np.eye(RANKS, k=1) + np.eye(RANKS, k=-1))).all()
    assert found["matrix"]["total_bytes"] >= messages * 8
    # Time is conserved: what each rank had between MPI_Init and MPI_Finalize, and what a flame graph has.
    assert sum(value or 0.0 for value in found["split"].values()) == pytest.approx(between_ends_s(job), rel=1e-4)

    def below(node: list[Any]) -> float:
        return node[1] + sum(below(child) for child in node[3])

    assert below(found["flame"]["tree"]) == pytest.approx(sum(row["seconds"] for row in found["paths"]), rel=1e-3)


def test_lines_of_the_source_are_named(folder: Path) -> None:
    found = shown(read_job(folder))
    places = {found["functions"][row["function"]]: found["places"][row["place"]] for row in found["paths"]}
    assert places["MPI_Waitall"].startswith("heat.c:")
    assert any("exchange_edges" in name for name in found["flame"]["names"])
    (first, *_) = found["findings"]
    assert first["ranks"] == [1] and first["function"] == "MPI_Allreduce"
    begin, end = first["window"]
    assert 0 <= begin < end <= found["time_s"]


def test_causes_and_the_critical_path_are_told(palmette: Callable[..., Any], folder: Path) -> None:
    job = read_job(folder)
    findings = findings_of(job, None, Detail())
    causes = causes_of(job, findings)
    assert not causes.withheld
    rates = findings.efficiencies
    assert causes.serialisation is not None and causes.transfer is not None
    assert causes.serialisation * causes.transfer == pytest.approx(rates.communication, rel=0.01)
    assert sum(causes.on_path_s.values()) == pytest.approx(rates.time_s, rel=0.01)
    drawn = document(job, None, findings, causes=causes)["timeline"]["critical"]
    begin, end = (unpacked(drawn[name], "u4").astype(float) for name in ("begin", "end"))
    assert (end - begin).sum() / 2**32 == pytest.approx(1, abs=0.01)
    assert (begin[1:] >= begin[:-1]).all()
    # heat: rank 1 has most to do.
    told = json.loads(palmette("report", folder, "--json").out)
    first = told["findings"][0]
    assert first["cause"]["rank"] == 1 and not first["cause"]["in_call"]
    assert 0 < first["gain"] < 1 and "without that the run takes" in first["sentence"]
    assert told["causes"]["roots"][0]["rank"] == 1
    ideal = json.loads(palmette("what-if", folder, "--ideal", "--json").out)
    assert ideal["expected_s"] == pytest.approx(causes.transfer * ideal["time_s"], rel=0.01)
    assert {one["rank"] for one in ideal["ranks"]} == set(range(RANKS))


def test_what_if_tells_mistakes_in_a_line(palmette: Callable[..., Any], folder: Path) -> None:
    mistakes: dict[tuple[str, ...], str] = {
        (): "say what is to be different",
        ("--ideal", "--bound"): "say what is to be different",
        ("--force", "allreduce"): "give COLLECTIVE=SPEC",
        ("--force", "allreduce=none"): "has no such algorithm",
        ("--placement", "block"): "--topology topology.json",
        ("--bound",): "--topology topology.json",
        ("--ideal", "--write", "hydra=x"): "--write is for a placement",
        ("--placement", "auto", "--write", "x"): "give KIND=FILE",
    }
    for arguments, complaint in mistakes.items():
        result = palmette("what-if", folder, *arguments)
        assert result.status == 2
        assert complaint in result.err and result.err.count("\n") == 1, arguments


def test_of_many_calls_the_longest_are_drawn(folder: Path) -> None:
    job = read_job(folder)
    all_calls = shown(job)["timeline"]["calls"]
    few = shown(job, calls=25, messages=7)["timeline"]
    assert (few["calls"]["count"], few["calls"]["total"]) == (25, all_calls["total"])
    assert few["messages"]["count"] == 7
    longest = np.sort(unpacked(all_calls["length"], "u4"))[-25:]
    assert np.sort(unpacked(few["calls"]["length"], "u4")).tolist() == longest.tolist()


def test_terminal_json_csv_and_page_tell_the_same(palmette: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    terminal = palmette("report", folder, "-o", page)
    assert terminal.status == 0, terminal.err
    assert not [line for line in terminal.out.splitlines() if len(line) > 80 and str(tmp_path) not in line]
    assert "MPI_Allreduce at heat.c:" in terminal.out and "load balance" in terminal.out
    assert 10_000 < page.stat().st_size <= 3_000_000
    full = palmette("report", folder, "--all").out
    assert not [line for line in full.splitlines() if len(line) > 80 and str(tmp_path) not in line]
    assert terminal.out.splitlines()[0] in full
    (late,) = (line for line in full.splitlines() if line.startswith("rank 1 "))
    (waits,) = (line for line in full.splitlines() if line.startswith("rank 3 "))
    assert waits.count("#") > late.count("#")
    told = json.loads(palmette("report", folder, "--json").out)
    assert told["findings"][0]["line"] > 0 and told["findings"][0]["file"].endswith("heat.c")
    rows = list(csv.DictReader(io.StringIO(palmette("report", folder, "--csv").out)))
    assert [row["function"] for row in rows] == [row["function"] for row in told["paths"]]
    assert float(rows[0]["waiting_s"]) == pytest.approx(told["paths"][0]["waiting_s"])


def test_load_balance_is_split_by_level(palmette: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    machine = _core.Machine.synthetic("2leaf@50MB/s:2node@100MB/s:1core").to_json()
    topology = tmp_path / "other.json"
    topology.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    told = json.loads(palmette("report", folder, "--topology", topology, "--hosts", "h0,h1,h2,h3", "--json").out)
    levels = {level["name"]: level["balance"] for level in told["efficiencies"]["levels"]}
    assert list(levels) == ["leaf", "node", "rank"]
    assert np.prod(list(levels.values())) == pytest.approx(told["efficiencies"]["load_balance"])
    assert levels["rank"] == pytest.approx(1) and levels["leaf"] < 1 and levels["node"] < 1
    assert {link["level"] for link in told["links"]["links"]} == {"leaf", "node"}


def topology_of(form: str, path: Path) -> Path:
    machine = _core.Machine.synthetic(form).to_json()
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    return path


def test_without_the_links_rates_nothing_is_said_of_what_they_need(
    palmette: Callable[..., Any], mpi_called: Callable[[str], Mpi], tmp_path: Path
) -> None:
    mpi, folder = mpi_called("mpich"), tmp_path / "calls"
    settings = {"PALMETTE_TRACE": str(folder), "PALMETTE_FAKE_HOSTS": "h0,h0,h1,h1", "PALMETTE_FORCE": "allreduce=mpi"}
    assert mpi.run(RANKS, PROGRAMS / f"heat.{mpi.abi}", STEPS, settings=settings).status == 0
    hosts = ("--hosts", "h0,h0,h1,h1")
    bare = topology_of("2node:2core", tmp_path / "bare.json")
    rated = topology_of("2node@1GB/s:2core", tmp_path / "rated.json")
    for options in (hosts, (*hosts, "--topology", bare)):
        told = json.loads(palmette("report", folder, *options, "--json").out)
        assert told["causes"]["network"] is None and told["causes"]["software"] is None
        assert 0 < told["causes"]["transfer"] <= 1
        assert told["split"]["bound_s"] is None and told["split"]["excess_s"] is None and told["split"]["in_call_s"] > 0
        for path in told["paths"]:
            assert path["bound_s"] is None and path["excess_s"] is None, "unknown isn't 0"
        text = palmette("report", folder, *options).out
        assert " x network" not in text and " x transfer" in text and "that physics needs" not in text
    assert any("the links of node can carry isn't known" in note for note in told["notes"])
    rows = list(csv.DictReader(io.StringIO(palmette("report", folder, *hosts, "--csv").out)))
    assert {row["bound_s"] for row in rows} == {""} and {row["excess_s"] for row in rows} == {""}
    told = json.loads(palmette("report", folder, *hosts, "--topology", rated, "--json").out)
    bounds = {path["function"]: path["bound_s"] for path in told["paths"]}
    assert bounds["MPI_Allreduce"] > 0 and bounds["MPI_Waitall"] is None


def test_what_if_takes_assumed_costs_where_none_are_known(
    palmette: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    result = palmette("what-if", folder, "--force", "allreduce=ring", "--json")
    assert result.status == 0, result.err
    (note, *_) = json.loads(result.out)["notes"]
    assert "nodes alone are known, so that all costs are assumed" in note and "palmette calibrate" in note
    assert " --topology " not in json.loads(result.out)["next"]
    bare = topology_of("1node:4core", tmp_path / "bare.json")
    hosts = ("--topology", bare, "--hosts", "h0,h0,h0,h0")
    notes = json.loads(palmette("what-if", folder, "--force", "allreduce=ring", *hosts, "--json").out)["notes"]
    assert any("all costs of this machine are assumed" in note and "palmette calibrate" in note for note in notes)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--hosts", "h0,h1"), "2 hosts for 4 ranks"),
        (("--topology", "nowhere.json"), "nowhere.json"),
        (("--csv", "--json"), "three forms of one report"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_line(
    palmette: Callable[..., Any], folder: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    result = palmette("report", folder, *arguments)
    assert result.status == 2
    assert complaint in result.err and result.err.count("\n") == 1


def test_a_profile_has_sums_and_no_timeline(
    palmette: Callable[..., Any], mpi_called: Callable[[str], Mpi], tmp_path: Path
) -> None:
    mpi = mpi_called("mpich")
    folder = tmp_path / "sums"
    mpi.run(RANKS, PROGRAMS / f"heat.{mpi.abi}", 5, settings={"PALMETTE_PROFILE": str(folder)})
    page = tmp_path / "page.html"
    result = palmette("report", folder, "-o", page, "--json")
    assert result.status == 0, result.err
    told = json.loads(result.out)
    assert told["kind"] == "profile" and told["findings"] == []
    assert told["efficiencies"]["parallel"] == pytest.approx(
        told["efficiencies"]["load_balance"] * told["efficiencies"]["communication"]
    )
    calls = {row["function"]: row["calls"] for row in told["paths"]}
    assert calls["MPI_Waitall"] == 5 * RANKS and page.stat().st_size > 10_000


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_the_demonstration_shows_who_is_late(
    palmette_lab: Callable[..., Any], mpi_called: Callable[[str], Mpi], tmp_path: Path, name: str
) -> None:
    mpi_called(name)
    for _ in range(2):  # its folder may be there already
        result = palmette_lab("demo", "--profile", "--mpi", name, "--folder", tmp_path / "demo")
        assert result.status == 0, result.err
    assert "rank 1 comes last" in result.out
    assert (tmp_path / "demo" / "profile.html").stat().st_size > 10_000
