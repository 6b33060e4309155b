"""Planted sleeps, imbalances and late ranks in simulated time: what is found is exactly what was planted.

Ranks sleep and compute for simulated time, which their program sets to the nanosecond, and each call begins at a
planned instant, or when another one has ended. So waits, which are differences of begins, don't depend on how an
algorithm moves data: only where a rank has waited for a message does that one's latency add to when it makes its next
call. It is 0.1 ms on this platform, and nothing else costs time: bandwidth is as good as infinite, and there are no
overheads.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette import _core
from palmette.record.causes import causes_of, with_causes
from palmette.record.findings import findings_of, trace_files
from palmette.record.reading import Job, read_job
from palmette_lab.simulate import simgrid
from palmette_lab.simulate.run import BASE_SELECTION
from planted import BUILD, LATENCY_MS, SCENARIOS, Scenario, analysed, scenarios_of, waits_found, waits_shown

from .conftest import VALUES

PROGRAM = BUILD / "tests" / "mpi" / "planted.smpi"
# A message crosses the links of two hosts.
PLATFORM = f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="all" prefix="node" suffix="" radical="0-3" speed="10Gf" bw="1e18Bps" lat="{LATENCY_MS / 2}ms"/>
</platform>
"""
SIMULATED = {name: one for name, one in SCENARIOS.items() if one.simulated and not one.mpi_4}
ROUNDING_S = 2e-9
"""A begin is rounded to a nanosecond; a wait is a difference of two."""
JobSimulation = Callable[..., Job]


@pytest.fixture(scope="module")
def simulated(smpirun: str, tmp_path_factory: pytest.TempPathFactory) -> JobSimulation:
    """Return the recording of scenarios, each simulated once."""
    jobs: dict[tuple[object, ...], Job] = {}

    def simulate(*names: str, **settings: str) -> Job:
        key = (*names, *settings.items())
        if key not in jobs:
            assert PROGRAM.is_file(), f"{PROGRAM} isn't built: run `make simulate`"
            folder = tmp_path_factory.mktemp("planted")
            (folder / "platform.xml").write_text(PLATFORM, encoding="utf-8")
            (folder / "hosts").write_text("".join(f"node{rank}\n" for rank in range(4)), encoding="utf-8")
            ended = simgrid.start(
                smpirun, folder, 4, PROGRAM,
                # Without the limit of what may be in flight, a window divided by the latency; probes poll seldom.
                simgrid.configuration(VALUES, BASE_SELECTION | {"network/TCP-gamma": "0", "smpi/iprobe": "1e-4"}),
                [",".join(names), "none"],
                {
                    "PALMETTE_ENABLE": "0", "PALMETTE_TRACE": str(folder / "calls"),
                    "PALMETTE_SIMULATED_PROGRAM": str(PROGRAM), **settings,
                }, cpu_limit_s=60,
            )  # fmt: skip
            assert not ended.trouble, ended.errors
            jobs[key] = read_job(folder / "calls")
        return jobs[key]

    return simulate


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that serves collectives also on hosts of which nothing is known."""
    chosen = {"bcast": "linear", "reduce": "linear", "allreduce": "recursive_doubling", "gather": "linear"}
    rows = [{"function": name, "algorithm": algorithm} for name, algorithm in chosen.items()]
    rows += [
        {"function": name, "algorithm": "mpi"}
        for name in ("allgather", "alltoall", "barrier", "scatter", "scan", "exscan", "reduce_scatter")
    ]
    path = tmp_path_factory.mktemp("table") / "table.json"
    path.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    return path


def assert_equal(found_s: dict[tuple[int, str], float], planted: Scenario) -> None:
    """Compare sums of all rounds, of ranks and functions."""
    for key in found_s.keys() | planted.waits.keys():
        planted_s = planted.rounds * sum(planted.waits.get(key, ())) * 1e-3
        calls = planted.rounds * len(planted.waits.get(key, ()))
        assert found_s.get(key, 0.0) == pytest.approx(planted_s, rel=0, abs=calls * ROUNDING_S + 1e-12), key


@pytest.mark.parametrize("name", SIMULATED)
def test_waits_are_exactly_what_was_planted(simulated: JobSimulation, name: str) -> None:
    planted = SIMULATED[name]
    waits = analysed(simulated(name))
    found: dict[tuple[int, str], float] = defaultdict(float)
    longest: dict[tuple[int, str], float] = defaultdict(float)
    for row in waits.rows:
        key = (waits.ranks[row.process], waits.functions[row.function])
        found[key] += row.split.waiting_s
        longest[key] = max(longest[key], row.longest_wait_s)
    assert_equal(found, planted)
    for key, times in planted.waits.items():
        assert longest[key] == pytest.approx(max(times) * 1e-3, rel=0, abs=ROUNDING_S), key
    assert (waits.incomplete_collectives, waits.unmatched_messages, waits.clock_violations) == (0, 0, 0)


@pytest.mark.parametrize("name", [name for name, one in SIMULATED.items() if one.late is not None])
def test_the_late_rank_is_found_first(simulated: JobSimulation, name: str) -> None:
    planted, job = SIMULATED[name], simulated(name)
    findings = findings_of(job)
    found = with_causes(findings, causes_of(job, findings))[0]
    assert found.ranks == (planted.late,)
    if found.kind == "root_cause":
        assert planted.indirect and "through ranks in between" in found.sentence
        return
    assert (found.kind, found.function) == ("late_rank", planted.at)
    # The line on which the call stands, or on which it ends.
    assert Path(found.place.file).parent.name == "planted"
    lines = Path(found.place.file).read_text(encoding="utf-8").splitlines()[: found.place.line]
    assert planted.at + "(" in "".join(lines[-3:])


@pytest.mark.parametrize("name", [name for name, one in SIMULATED.items() if one.late is not None])
def test_the_rank_to_which_waiting_goes_back_is_named_first(simulated: JobSimulation, name: str) -> None:
    """The rank is named also where another one passes the delay on."""
    job, late = simulated(name), SIMULATED[name].late
    findings = findings_of(job)
    causes = causes_of(job, findings)
    assert not causes.withheld
    for root in causes.roots[:1]:  # from 1 % of the time on
        assert (root.rank, root.in_call, Path(root.place.file).parent.name) == (late, False, "planted")
    found = _core.causes_of(trace_files(job))
    assert (found.ranks[found.delays[0].process], found.delays[0].in_call) == (late, False)
    # All waiting has a cause, and costs add up to it.
    waiting_s = sum(row.split.waiting_s for row in findings.view.waits.rows)
    assert found.waiting_s == pytest.approx(waiting_s, rel=1e-6, abs=1e-6)
    assert found.unexplained_s == pytest.approx(0, abs=1e-6)
    assert sum(one.short_term_s + one.long_term_s for one in found.delays) == pytest.approx(waiting_s, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "instances", "waiters", "late_ms"),
    [
        ("late-rank", 4, 12, 30), ("staircase", 4, 12, 20), ("once", 1, 3, 40), ("early-gather-root", 8, 8, 15),
        ("late-sender", 4, 4, 30), ("late-receiver", 4, 4, 30), ("late-isend", 4, 4, 30), ("late-ireduce", 4, 4, 30),
    ],
)  # fmt: skip
def test_causes_say_how_often_and_how_late_a_rank_came(
    simulated: JobSimulation, name: str, instances: int, waiters: int, late_ms: float
) -> None:
    """Late behind the one that came before it; of messages behind who waits."""
    waits = analysed(simulated(name))
    assert {waits.ranks[cause.process] for cause in waits.causes} == {SIMULATED[name].late}
    assert sum(cause.instances for cause in waits.causes) == instances
    assert sum(cause.waiters for cause in waits.causes) == waiters
    assert sum(cause.late_s for cause in waits.causes) == pytest.approx(instances * late_ms * 1e-3, abs=1e-7)


@pytest.mark.parametrize("name", [name for name, one in SIMULATED.items() if not one.waits])
def test_where_nothing_was_planted_no_rank_is_blamed(simulated: JobSimulation, name: str) -> None:
    assert [one for one in findings_of(simulated(name)).found if one.kind != "long_call"] == []


@pytest.mark.parametrize("name", [name for name, one in SIMULATED.items() if one.late is None and one.waits])
def test_where_several_make_others_wait_none_is_blamed_alone(simulated: JobSimulation, name: str) -> None:
    job = simulated(name)
    findings = findings_of(job)
    assert findings.found[0].kind == "taking_turns"
    assert with_causes(findings, causes_of(job, findings))[0].kind == "taking_turns"


@pytest.mark.parametrize("name", SIMULATED)
def test_the_records_show_the_same(simulated: JobSimulation, name: str) -> None:
    """By the other computation, to which real jobs are compared."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    for (rank, function, _), seconds in waits_shown(simulated(name)).items():
        found[rank, function] += seconds
    assert_equal(found, SIMULATED[name])


# Known to run into its limit of CPU time since the memory of simulated nodes is there: to be mended.
@pytest.mark.parametrize("served", [pytest.param(True, marks=pytest.mark.long), False], ids=["served", "not-served"])
def test_one_job_of_all_scenarios_has_the_waits_of_each(simulated: JobSimulation, table: Path, served: bool) -> None:
    names = [name for name, one in SIMULATED.items() if one.served or not served]
    job = simulated(*names, PALMETTE_ENABLE="1" if served else "0", PALMETTE_COMPARE="0", PALMETTE_TABLE=str(table))
    assert served == any(len(process.recorded.plans) > 1 for process in job.processes)
    waits = waits_found(analysed(job))
    scenario = scenarios_of(path for _, _, path in waits)
    found: dict[str, dict[tuple[int, str], float]] = defaultdict(lambda: defaultdict(float))
    for (rank, function, path), seconds in waits.items():
        if path in scenario:
            found[scenario[path]][rank, function] += seconds
        else:
            assert seconds == 0, function
    assert set(found) == set(names)
    for name in names:
        assert_equal(found[name], SIMULATED[name])
