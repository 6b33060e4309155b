"""What replays say of a job, and how findings name causes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from palmette import _core
from palmette.record import causes
from palmette.record.causes import Causes, Root, missing_dependency, with_causes
from palmette.record.findings import Finding
from palmette.record.machine import Seats
from palmette.record.symbols import Place


def replayed(measured_s: float, again_s: float, forced: int = 0, unmodelled: tuple[int, ...] = ()) -> Any:
    calls = [SimpleNamespace(function=function, calls=3, seconds=1.0) for function in unmodelled]
    measured = SimpleNamespace(measured_s=measured_s, time_s=again_s, forced=forced, unmodelled=calls)
    return SimpleNamespace(measured=measured, functions=["MPI_Win_fence", "MPI_File_open"])


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (replayed(10, 10.05), ""),
        (replayed(0, 0), "no time between MPI_Init and MPI_Finalize"),
        (replayed(10, 8, 4), "replayed, the job takes 0.80 of its time; 4 calls wait for what comes later"),
        (replayed(10, 12, 0, (0, 1)), "1.20 of its time; for whom MPI_Win_fence waits isn't known"),
    ],
)
def test_what_is_missing_is_told(found: Any, told: str) -> None:
    missing = missing_dependency(found)
    assert told in missing and bool(told) == bool(missing)


def place(line: int) -> Place:
    return Place("step", "a.c", line)


def finding(kind: str, rank: int, seconds: float) -> Finding:
    text = f"MPI_Recv at {place(rank)}: rank {rank} sends late"
    return Finding(kind, "MPI_Recv", place(rank), (rank,), seconds, seconds / 100, text, "palmette report t")


def root(rank: int, seconds: float, direct_s: float, *, in_call: bool = False, gain: float = 0.2) -> Root:
    function = "MPI_File_write" if in_call else "MPI_Send"
    return Root(rank, function, place(50), in_call, seconds, direct_s, seconds / 100, gain)


def told(findings: list[Finding], *roots: Root, waiting_s: float = 30) -> list[Finding]:
    known = Causes(roots=list(roots))
    found: Any = SimpleNamespace(found=findings, waiting_s=waiting_s)
    return with_causes(found, known)


def test_a_late_rank_gets_its_cause_and_the_gain_without_it() -> None:
    (one,) = told([finding("late_rank", 3, 20)], root(3, 20, 20))
    assert one.sentence.endswith("it computes longer before MPI_Send at a.c:50; without that the run takes 20% less")
    assert one.cause is not None and (one.cause.rank, one.gain) == (3, 0.2)
    (one,) = told([finding("late_rank", 3, 20)], root(3, 20, 20, in_call=True, gain=0.001))
    assert one.sentence.endswith("MPI_File_write at a.c:50 takes it longer")


def test_who_passes_on_a_delay_comes_behind_whose_it_is() -> None:
    first, second = told([finding("late_rank", 2, 20), finding("late_rank", 1, 10)], root(1, 30, 10))
    assert (first.ranks, second.ranks) == ((1,), (2,))
    assert second.sentence.endswith("it passes on the delay of rank 1")


def test_a_rank_that_nobody_waits_for_by_itself_is_named_first() -> None:
    first, second = told([finding("late_rank", 2, 20)], root(0, 25, 5))
    assert (first.kind, first.ranks) == ("root_cause", (0,))
    assert first.sentence.startswith("Rank 0, computing before MPI_Send at a.c:50: others wait")
    assert "80% of that through ranks in between" in first.sentence and "passes on" in second.sentence
    # Of little waiting it is no finding.
    (alone,) = told([finding("taking_turns", 2, 20)], root(0, 5, 5))
    assert alone.kind == "taking_turns"


def test_long_calls_keep_their_place() -> None:
    found = told([finding("long_call", 1, 50), finding("late_rank", 2, 20)], root(2, 20, 20))
    assert [one.kind for one in found] == ["long_call", "late_rank"]
    assert found[0] == finding("long_call", 1, 50)


@pytest.mark.parametrize("form", ["", "2node:2core", "2leaf@1GB/s:2node:2core", "2leaf@1GB/s:2node@1GB/s"])
def test_the_network_is_told_apart_only_where_the_rates_of_all_links_are_known(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that palmette served carry bounds from their run, which without the links' rates are memory's alone."""

    def replay(time_s: float) -> Any:
        return SimpleNamespace(time_s=time_s, measured_s=10.0, forced=0, unmodelled=[])

    columns = ("delays", "without_s", "on_path", "stretches", "functions", "paths", "chains", "message_runs")
    nothing: dict[str, Any] = {key: [] for key in columns}
    replays = {"measured": replay(10), "ideal": replay(5), "bound": replay(8), "planned": None, "served": None}
    contexts = SimpleNamespace(parent=[0])
    found = SimpleNamespace(ranks=[0, 1], contexts=contexts, **replays, **nothing)
    monkeypatch.setattr(causes._core, "causes_of", lambda *_: found)
    monkeypatch.setattr(causes, "trace_files", lambda _: [])
    monkeypatch.setattr(causes, "busiest_s", lambda *_: 0.0)
    rates = SimpleNamespace(time_s=10.0, longest_useful_s=4.0)
    waits = SimpleNamespace(
        rows=[], kinds=[], functions=[], useful_s=[4.0, 4.0], ranks=[0, 1], efficiencies=rates, paths=[]
    )
    findings: Any = SimpleNamespace(calls=1, efficiencies=rates, view=SimpleNamespace(waits=waits), places=[])
    job: Any = SimpleNamespace(processes=[])
    machine = _core.Machine.synthetic(form or "2node")
    levels = sum(name != "core" for name in machine.levels)
    seats = Seats(_core.Job(machine, "block", 0), levels, is_known=bool(form))
    told = causes.causes_of(job, findings, seats)
    assert (told.serialisation, told.transfer) == (0.8, 0.5)
    whole = form.endswith("node@1GB/s")
    assert (told.network, told.software) == ((5 / 8, 8 / 10) if whole else (None, None))
    assert any("links and memory need at least" in what for what, _ in told.shorter) == whole
