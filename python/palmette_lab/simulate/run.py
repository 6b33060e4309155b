"""One simulated job: a collective with all its sizes, under palmette or under one rival."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.bench.loads import with_loads
from palmette.run.choices import RECORDED, keep_machine
from palmette_lab.simulate import kept, simgrid
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.job import Job
from palmette_lab.simulate.parameters import Parameters
from palmette_lab.simulate.platform import platform_xml

SELECTORS = ("ompi", "mpich", "mvapich2", "impi")
"""The simulator's copies of other MPIs' algorithm selection."""
PALMETTE = "palmette"
CHECKED_BYTES = 2 << 30
"""Sizes with more than this in all ranks' buffers together are timed with shared buffers, and results not compared."""
BASE_SELECTION = {"smpi/coll-selector": "mpich", "smpi/allreduce": "rdb", "smpi/bcast": "binomial_tree"}
"""The selection below palmette, for its initialisation and the calls that it refuses: mpich's, but for these two
collectives algorithms that don't query first which ranks share a host."""

SHARED = "PALMETTE_SHARED"
_SOLVER = {"alltoall": {"maxmin/precision": "1e-4"}}
"""The rounding error of summed rates: with tens of thousands of messages in flight at 1e9 bytes a second it exceeds the
simulator's default of 1e-5, which then fails with "cannot saturate more a constraint that has no active element"."""
_COARSE_PRECISION = {"surf/precision": "1e-7"}
_COARSE_RANKS = 512
"""In large all-to-alls among so many ranks, messages that end within 1e-7 s end together, so that rates are recomputed
less often: half of the CPU for exchanges that take milliseconds. The simulator's default is 1e-9."""
_LARGE_BYTES = 1 << 28
_IN_NETWORK = {str(row.collective) for row in _core.algorithms() if row.in_network}
"""Collectives that have plans through aggregators."""


@dataclass(slots=True)
class Outcome:
    """A contender's times by size, and its errors."""

    contender: str
    times_s: dict[int, float] = field(default_factory=dict)
    wrong_ranks: dict[int, int] = field(default_factory=dict)
    unchecked: list[int] = field(default_factory=list)
    """Sizes whose results were not compared: they take too much memory."""
    trouble: str = ""
    algorithms: dict[int, str] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    served: int = 0
    """Calls that palmette's plans served; 0 for rivals."""
    background_rounds: int = 0

    def time_s(self, size_bytes: int) -> float | None:
        """The time of a right result, or None."""
        return None if self.wrong_ranks.get(size_bytes, 1) else self.times_s.get(size_bytes)


def simulate(
    smpirun: str,
    job: Job,
    parameters: Parameters,
    contender: str,
    collective: str,
    sizes: Sequence[int],
    *,
    root: int = 0,
    checks: bool = True,
    cpu_limit_s: int = 120,
    environment: dict[str, str] | None = None,
    store: kept.SimulationCache | None = None,
    factoring: str = "",
) -> Outcome:
    """Run one collective. `contender` is `palmette`, one of SELECTORS, or the name of an algorithm of the simulator.

    `environment`: PALMETTE_ variables. `store`: simulations done before. `factoring`: palmette runs the collective as a
    composition, factored so (docs/guide/compose.md). Raises SimulateError where palmette didn't run.
    """
    background = job.background.hosts if job.background else ()
    arguments = ["--variant", PALMETTE if contender == PALMETTE else "alone", "--collective", collective]
    arguments += ["--sizes", ",".join(map(str, sizes)), "--root", str(root)]
    arguments += ["--checked-bytes", str(CHECKED_BYTES if checks else 0)]
    if job.background:
        arguments += ["--background", str(len(background)), "--background-block", str(job.background.size_bytes)]
    arguments += end_costs(parameters)
    for word in factoring.split():
        arguments += ["--factoring", word]
    own = contender == PALMETTE
    served = own and not factoring and collective in _IN_NETWORK
    services = job.services() if served else ()
    if services:
        arguments += ["--services", str(len(services))]
    topology = job.cluster.topology.to_json()
    if job.background and job.background.loads:
        topology = with_loads(topology, job.background.loads)
    settings = simgrid.configuration(
        parameters, _selector(contender, collective) | _solver(collective, sizes, len(job.seats))
    )
    asked = kept.SimulationKey(
        simgrid.version(smpirun),
        platform_xml(job.cluster.topology, parameters, job.cluster.mesh),
        "".join(f"{host}\n" for host in [*job.seats, *services, *background]),
        settings,
        arguments,
        _digest(simgrid.PROGRAM) if own else "",
        json.dumps(topology) if own else "",
        _environment(environment or {}, parameters) if own else {},
    )
    ended, report = started(smpirun, asked, cpu_limit_s, store)
    outcome = _read(contender, ended)
    if own and not factoring:
        _read_report(outcome, report, collective, sizes)
    return outcome


def _environment(given: dict[str, str], parameters: Parameters) -> dict[str, str]:
    """Palmette's variables, with plans by shared memory where the parameters have it."""
    if parameters.share_memory:
        return {SHARED: "1"} | given
    if given.get(SHARED, "0") not in ("0", ""):
        raise SimulateError(
            f"{SHARED}={given[SHARED]}: ranks share no memory by these parameters, `core_bytes_per_s` is 0; take others"
            ", like --parameters servers"
        )
    return given


def started(
    smpirun: str, asked: kept.SimulationKey, cpu_limit_s: int, store: kept.SimulationCache | None
) -> tuple[simgrid.SimulationResult, dict[str, Any] | None]:
    """Return the outcome and palmette's report, from the cache where it was done before."""
    found = store.find(asked, cpu_limit_s) if store else None
    if found is None:
        found = _run(smpirun, asked, cpu_limit_s)
        if store and found[0].trouble != simgrid.KILLED:
            store.keep(asked, *found, cpu_limit_s)
    return found


def is_large(collective: str, size: int, ranks: int) -> bool:
    """Whether all ranks together end with more than 256 MB: such a size is simulated separately, with its own limit."""
    kind = _core.collective_of(collective)
    blocks = 1 if _core.is_rooted(kind) or _core.space_of(kind) == "cut" else ranks  # of each rank
    return size * blocks * ranks > _LARGE_BYTES


def end_costs(parameters: Parameters) -> list[str]:
    """The overheads of messages, as options of the benchmark program."""
    costs = [word for name, cost in parameters.ends.items() for word in (f"--{name}", cost.text)]
    return [*costs, "--eager", f"{parameters.eager_bytes:.0f}"]


def _run(
    smpirun: str, asked: kept.SimulationKey, cpu_limit_s: int
) -> tuple[simgrid.SimulationResult, dict[str, Any] | None]:
    """Run the simulation; return its outcome and palmette's report."""
    with tempfile.TemporaryDirectory(prefix="palmette-simulate-") as temporary:
        folder = Path(temporary)
        if asked.topology:
            (folder / "topology.json").write_text(asked.topology, encoding="utf-8")
            for recording in (asked.environment[name] for name in RECORDED if name in asked.environment):
                keep_machine(Path(recording), str(folder / "topology.json"))
        (folder / "platform.xml").write_text(asked.platform, encoding="utf-8")
        (folder / "hosts").write_text(asked.hosts, encoding="utf-8")
        report = folder / "report.json"
        ended = simgrid.start(
            smpirun,
            folder,
            asked.hosts.count("\n"),
            simgrid.PROGRAM if asked.program else simgrid.ALONE,
            list(asked.settings),
            list(asked.arguments),
            asked.environment
            | ({"PALMETTE_TOPOLOGY": "topology.json"} if asked.topology else {})
            | {"PALMETTE_REPORT": str(report), "PALMETTE_SIMULATED_PROGRAM": str(simgrid.PROGRAM)},
            cpu_limit_s,
        )
        return ended, json.loads(report.read_text(encoding="utf-8")) if report.is_file() else None


@cache
def _digest(program: Path) -> str:
    return hashlib.sha256(program.read_bytes()).hexdigest()


def _selector(contender: str, collective: str) -> dict[str, str]:
    if contender == PALMETTE:
        return BASE_SELECTION
    if contender in SELECTORS:
        return {"smpi/coll-selector": contender}
    return {"smpi/coll-selector": "mpich", f"smpi/{collective}": contender}


def _solver(collective: str, sizes: Sequence[int], ranks: int) -> dict[str, str]:
    large = collective == "alltoall" and is_large(collective, min(sizes), ranks)
    coarse = _COARSE_PRECISION if large and ranks >= _COARSE_RANKS else {}
    return _SOLVER.get(collective, {}) | coarse


def _read(contender: str, ended: simgrid.SimulationResult) -> Outcome:
    outcome = Outcome(contender, trouble=ended.trouble)
    for event in events_of(ended):
        if event["event"] == "cell":
            outcome.times_s[event["size_bytes"]] = event["time_s"]
            outcome.wrong_ranks[event["size_bytes"]] = event["wrong_ranks"]
            if not event["checked"]:
                outcome.unchecked.append(event["size_bytes"])
        elif event["event"] == "background":
            outcome.background_rounds = event["rounds"]
    return outcome


def events_of(ended: simgrid.SimulationResult) -> list[dict[str, Any]]:
    """The benchmark program's output, without the simulator's own lines."""
    return [json.loads(line) for line in ended.output.splitlines() if line.startswith('{"event"')]


def _read_report(outcome: Outcome, report: dict[str, Any] | None, collective: str, sizes: Sequence[int]) -> None:
    """Add palmette's report. Its wrappers must have been called: each call is either served or refused."""
    if report is None:
        if not outcome.trouble:
            raise SimulateError(
                "palmette's wrappers were not called in the simulation; build the program again with `make simulate`"
            )
        return
    served = [row for row in report["calls"] if row["function"] == collective]
    refused = [row for row in report["fallbacks"] if row["function"] == collective]
    outcome.served = sum(row["calls"] for row in served)
    for size in sizes:
        row = _row_of(served, size)
        if row is not None:
            outcome.algorithms[size], outcome.reasons[size] = row["algorithm"], row["reason"]
        elif refused:
            outcome.algorithms[size] = "mpi"
            outcome.reasons[size] = "; ".join(f"{row['reason']} ({row.get('detail', '')})" for row in refused)
    if not outcome.algorithms and not outcome.trouble:
        raise SimulateError(f"palmette saw no {collective} in the simulation; build the program again, `make simulate`")


def _row_of(served: Sequence[dict[str, Any]], size: int) -> dict[str, Any] | None:
    """Return the report's row for a size. The v and w forms report the mean length, or none at all (-1)."""
    for low, high in ((1.0, 1.0), (0.6, 1.6)):
        for row in served:
            if low * row["min_bytes"] <= size <= high * row["max_bytes"] or row["max_bytes"] < 0:
                return row
    return None
