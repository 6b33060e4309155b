"""What `palmette what-if` expects of other algorithms and placements, against the same program simulated with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.record.causes import causes_of
from palmette.record.findings import findings_of
from palmette.record.machine import seats_of
from palmette.record.reading import Job
from palmette.record.what_if import Alternative, auto_placement, with_changes, with_costs

from .steps import record, time_of

SPEC = "3leaf@50Mbit/s~200us:3+3+2node@100Mbit/s~100us:2core"
RANKS = 16
FASTER = "3leaf@100Mbit/s~200us:3+3+2node@100Mbit/s~100us:2core"
ROUNDS = 4
JobSimulation = Callable[..., Job]


@pytest.fixture(scope="module")
def simulated(smpirun: str, tmp_path_factory: pytest.TempPathFactory) -> JobSimulation:
    """Return the recording of the program with algorithms on a placement, each simulated once."""
    jobs: dict[tuple[object, ...], Job] = {}

    def simulate(collective: str, size: int, halo: int, placement: str, spec: str = SPEC, **forced: str) -> Job:
        key = (collective, size, halo, placement, spec, *forced.items())
        if key not in jobs:
            words = [collective, str(size), str(halo), str(ROUNDS)]
            jobs[key] = record(smpirun, tmp_path_factory.mktemp("steps"), spec, RANKS, placement, words, **forced)
        return jobs[key]

    return simulate


def expected_s(job: Job, wanted: Alternative) -> float:
    seats, missing = seats_of(job)
    assert seats is not None and not missing
    found = with_changes(job, seats, wanted)
    assert found.notes == []
    assert found.range_s[0] <= found.expected_s <= found.range_s[1]
    return found.expected_s


def placed(job: Job, form: str) -> Alternative:
    return Alternative(job=_core.Job(_core.Machine.from_file(str(job.folder / "topology.json")), form, RANKS))


@pytest.mark.parametrize(
    ("collective", "size", "was", "now"),
    [
        ("allgather", 16384, "ring", "linear"), ("allgather", 16384, "ring", "recursive_doubling"),
        ("allgather", 16384, "bruck", "ring"), ("bcast", 262144, "linear", "k_nomial"),
        ("bcast", 262144, "k_nomial", "node_pieces"), ("allreduce", 262144, "ring", "recursive_doubling"),
    ],
)  # fmt: skip
def test_other_algorithms_take_what_is_expected(
    simulated: JobSimulation, collective: str, size: int, was: str, now: str
) -> None:
    job = simulated(collective, size, 0, "block", **{collective: was})
    real_s = time_of(simulated(collective, size, 0, "block", **{collective: now}))
    found_s = expected_s(job, Alternative({collective: now}))
    print(f"{collective} {was} -> {now}: {time_of(job):.4f}, expected {found_s:.4f}, {found_s / real_s - 1:+.1%}")
    assert found_s == pytest.approx(real_s, rel=0.15)


@pytest.mark.parametrize(
    ("was", "now"), [("cyclic", "block"), ("block", "cyclic"), ("cyclic", "random:1"), ("random:2", "block")]
)
def test_other_placements_take_what_is_expected(simulated: JobSimulation, was: str, now: str) -> None:
    job = simulated("none", 0, 60000, was)
    real_s = time_of(simulated("none", 0, 60000, now))
    found_s = expected_s(job, placed(job, now))
    print(f"{was} -> {now}: {time_of(job):.4f}, expected {found_s:.4f}, {found_s / real_s - 1:+.1%}")
    assert found_s == pytest.approx(real_s, rel=0.25)


def test_exchanges_change_as_their_bounds_do(simulated: JobSimulation) -> None:
    """The MPI's own, with a count and a type for each block, on uplinks twice as fast."""
    job, other = simulated("alltoallw", 16384, 0, "cyclic"), simulated("alltoallw", 16384, 0, "cyclic", FASTER)
    machine = _core.Machine.from_file(str(other.folder / "topology.json"))
    seats, _ = seats_of(job)
    assert seats is not None
    found = with_changes(job, seats, Alternative(job=_core.Job(machine, "cyclic", RANKS)))
    print(
        f"alltoallw: {time_of(job):.4f}, expected {found.expected_s:.4f}, {found.expected_s / time_of(other) - 1:+.1%}"
    )
    assert found.expected_s < 0.7 * time_of(job)
    assert found.expected_s == pytest.approx(time_of(other), rel=0.25)
    assert found.notes == ["MPI_Alltoallw: as if all blocks were as long as the mean"]
    # A mean is no bound, so what is the network's isn't told.
    causes = causes_of(job, findings_of(job, seats), seats)
    assert causes.network is None and causes.software is None
    assert causes.unbounded.startswith("what MPI_Alltoallw needs at least isn't known")


def test_the_placement_that_is_found_gains_what_is_expected(simulated: JobSimulation) -> None:
    job = simulated("none", 0, 60000, "random:2")
    seats, _ = seats_of(job)
    assert seats is not None
    hosts = "hosts=" + ",".join(seats.job.host_of(place) for place in auto_placement(job, seats).order)
    real_s, was_s = time_of(simulated("none", 0, 60000, hosts)), time_of(job)
    assert real_s < 0.8 * was_s
    found_s = expected_s(job, placed(job, hosts))
    print(f"auto: {was_s:.4f}, expected {found_s:.4f}, {found_s / real_s - 1:+.1%}")
    assert found_s == pytest.approx(real_s, rel=0.25)


def test_another_network_gives_what_is_expected(simulated: JobSimulation) -> None:
    job, other = simulated("none", 0, 60000, "cyclic"), simulated("none", 0, 60000, "cyclic", FASTER)
    machine = _core.Machine.from_file(str(other.folder / "topology.json"))
    found_s, real_s = expected_s(job, Alternative(job=_core.Job(machine, "cyclic", RANKS))), time_of(other)
    print(f"faster: {time_of(job):.4f}, expected {found_s:.4f}, {found_s / real_s - 1:+.1%}")
    assert found_s == pytest.approx(real_s, rel=0.25)


def test_nothing_that_is_known_is_quicker_than_bounds(simulated: JobSimulation) -> None:
    job = simulated("allgather", 16384, 0, "block", allgather="ring")
    seats, _ = seats_of(job)
    ideal, bound = (with_costs(job, seats, which) for which in ("ideal", "bound"))
    assert 0 < ideal.expected_s < bound.expected_s < bound.time_s
    for other in ("linear", "bruck", "recursive_doubling"):
        assert bound.expected_s < time_of(simulated("allgather", 16384, 0, "block", allgather=other))


def test_a_hot_link_is_told_from_software(simulated: JobSimulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cyclic placement fills the switches' uplinks: what is lost is the network's."""
    job = simulated("none", 0, 60000, "cyclic")
    seats, _ = seats_of(job)
    assert seats is not None
    findings = findings_of(job, seats)
    causes = causes_of(job, findings, seats)
    assert causes.network is not None and causes.software is not None
    assert causes.software > 0.9 > 0.2 > causes.network
    assert causes.network * causes.software == pytest.approx(causes.transfer)
    assert with_costs(job, seats, "bound").expected_s > 0.9 * time_of(job)
    # A poor algorithm fills links, too: that is the software's.
    job = simulated("bcast", 262144, 0, "block", bcast="linear")
    causes = causes_of(job, findings_of(job, seats), seats)
    assert causes.network is not None and causes.software is not None
    assert causes.software < 0.2
    # Its plan's, not its execution's: simulated, calls take what the model says.
    assert causes.plans is not None and causes.execution is not None and causes.others is not None
    assert causes.plans < 0.25 < 0.8 < causes.execution
    assert causes.others > 0.95
    assert causes.plans * causes.execution * causes.others == pytest.approx(causes.software)
    # Where too little is known of what plans should take, nothing is said of them.
    monkeypatch.setattr("palmette.record.causes.MOST_STEPS", -1)
    again = causes_of(job, findings_of(job, seats), seats)
    assert again.plans is None and again.software == causes.software


def test_a_full_link_is_told_with_who_fills_it_and_the_gain_of_another_order(
    simulated: JobSimulation, palmette: Callable[..., Any]
) -> None:
    job = simulated("none", 0, 60000, "cyclic")
    told = json.loads(palmette("report", job.folder, "--json").out)
    one = told["findings"][0]
    assert one["kind"] == "full_link" and "leaf" in one["sentence"]
    assert "by MPI_Isend at" in one["sentence"] and one["gain"] > 0.3
    found = json.loads(palmette(*one["next"].split()[1:], "--json").out)
    assert found["gain"] == pytest.approx(one["gain"], rel=0.01)
    # And in a good order no link is.
    job = simulated("none", 0, 60000, "block")
    told = json.loads(palmette("report", job.folder, "--json").out)
    assert all(one["gain"] is None for one in told["findings"] if one["kind"] == "full_link")


def test_long_calls_are_told_what_helps(simulated: JobSimulation, palmette: Callable[..., Any]) -> None:
    job = simulated("bcast", 262144, 0, "block", bcast="linear")
    told = json.loads(palmette("report", job.folder, "--json").out)
    (one,) = (one for one in told["findings"] if one["kind"] == "long_call")
    assert one["gain"] > 0.5 and "the run is expected to take" in one["sentence"]
    command = one["next"].split()[1:]
    assert command[0] == "what-if" and command[3].startswith("bcast=")
    found = json.loads(palmette(*command, "--json").out)
    assert found["gain"] == pytest.approx(one["gain"])


def test_the_command_says_the_same(simulated: JobSimulation, palmette: Callable[..., Any]) -> None:
    job = simulated("allgather", 16384, 0, "block", allgather="ring")
    told = palmette("what-if", job.folder, "--force", "allgather=linear")
    assert told.status == 0, told.err
    found = json.loads(palmette("what-if", job.folder, "--force", "allgather=linear", "--json").out)
    assert found["expected_s"] == pytest.approx(expected_s(job, Alternative({"allgather": "linear"})))
    assert _core.format_duration(found["expected_s"]) in told.out
    assert not [line for line in told.out.splitlines() if len(line) > 80 and str(job.folder) not in line]
    assert found["next"].startswith("palmette run") and "--force allgather=linear" in found["next"]
    assert {row["function"] for row in found["calls"]} == {"MPI_Allgather"}


def test_the_command_writes_the_placement_that_it_finds(
    simulated: JobSimulation, palmette: Callable[..., Any], tmp_path: Path
) -> None:
    job, hosts = simulated("none", 0, 60000, "cyclic"), tmp_path / "hosts"
    told = palmette("what-if", job.folder, "--placement", "auto", "--write", f"hydra={hosts}", "--json")
    assert told.status == 0, told.err
    found = json.loads(told.out)
    assert found["gain"] > 0.2 and f"mpiexec $(cat {hosts})" in found["next"]
    assert hosts.read_text(encoding="utf-8").startswith("-hosts h")
    assert "method" in found["notes"][0]
    other = palmette("what-if", job.folder, "--network", job.folder / "topology.json")
    assert other.status == 0 and "0% less" in other.out
