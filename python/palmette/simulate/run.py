"""One simulated job: a collective with all its sizes, under palmette or under one rival."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.bench.results import LOADED
from palmette.bench.traffic import Traffic, hosts_of_processes
from palmette.placement import PlacementError, hosts_of_ranks
from palmette.simulate import simgrid
from palmette.simulate.cluster import Cluster
from palmette.simulate.errors import SimulateError
from palmette.simulate.parameters import Parameters
from palmette.simulate.platform import platform_xml

SELECTORS = ("ompi", "mpich", "mvapich2", "impi")
"""The simulator's copies of other MPIs' choices."""
PALMETTE = "palmette"
_UNDERNEATH = {"smpi/coll-selector": "mpich", "smpi/allreduce": "rdb"}
"""What stands below palmette: its start shouldn't take p² messages, which mpich's short allreduce does here."""


@dataclass(frozen=True, slots=True)
class Background:
    """Ranks beside the measured ones that exchange all with all, `size_bytes` for each other one in a round."""

    hosts: Sequence[str]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Job:
    """Where the measured ranks sit, and what disturbs them."""

    cluster: Cluster
    placement: str
    seats: Sequence[str]
    background: Background | None = None


@dataclass(slots=True)
class Outcome:
    """What a contender took for each size, and what went wrong."""

    contender: str
    times_s: dict[int, float] = field(default_factory=dict)
    wrong_ranks: dict[int, int] = field(default_factory=dict)
    trouble: str = ""
    algorithms: dict[int, str] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    served: int = 0
    """Calls that palmette's plans served; 0 for rivals."""
    background_rounds: int = 0

    def time_s(self, size_bytes: int) -> float | None:
        """The time of a right result, or None."""
        return None if self.wrong_ranks.get(size_bytes, 1) else self.times_s.get(size_bytes)


def make_job(cluster: Cluster, placement: str, ranks: int | None, background: Background | None = None) -> Job:
    """Return the job. Raises SimulateError when the ranks can't be placed."""
    try:
        seats = hosts_of_ranks(cluster.hosts, placement, ranks)
    except PlacementError as error:
        raise SimulateError(str(error)) from None
    return Job(cluster, placement + (LOADED if background else ""), seats, background)


def background_of(cluster: Cluster, traffic: Traffic) -> Background:
    """Return the background that the benchmark's `--traffic` asks for: for half of the places below each switch, or all."""
    hosts = hosts_of_processes(cluster.topology.machine.tree, dict(cluster.hosts), traffic)
    return Background(hosts, traffic.size_bytes)


def bound_s(job: Job, collective: str, size_bytes: int, root: int) -> float:
    """Return the physical bound on the measured ranks, without the background; 0: nothing is known."""
    machine = _core.Machine.from_json(job.cluster.topology.to_json())
    core = _core.Job(machine, "hosts=" + ",".join(job.seats))
    return _core.bound(core, _core.collective_of(collective), size_bytes, root).seconds


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
) -> Outcome:
    """Run one collective. `contender` is `palmette`, one of SELECTORS, or the name of a single algorithm of the simulator's.

    `environment`: PALMETTE_ variables. Raises SimulateError where palmette's own part can't have run.
    """
    background = job.background.hosts if job.background else ()
    arguments = ["--variant", PALMETTE if contender == PALMETTE else "alone", "--collective", collective]
    arguments += ["--sizes", ",".join(map(str, sizes)), "--root", str(root), "--checks", str(int(checks))]
    if job.background:
        arguments += ["--background", str(len(background)), "--background-bytes", str(job.background.size_bytes)]
    for name, cost in parameters.ends.items():
        arguments += [f"--{name}", cost.text]
    with tempfile.TemporaryDirectory(prefix="palmette-simulate-") as temporary:
        folder = Path(temporary)
        job.cluster.topology.save(folder / "topology.json")
        (folder / "platform.xml").write_text(platform_xml(job.cluster.topology, parameters), encoding="utf-8")
        (folder / "hosts").write_text("".join(f"{host}\n" for host in [*job.seats, *background]), encoding="utf-8")
        settings = simgrid.configuration(parameters, _selector(contender, collective))
        own = {"PALMETTE_TOPOLOGY": "topology.json", "PALMETTE_REPORT": str(folder / "report.json")}
        ended = simgrid.start(
            smpirun,
            folder,
            len(job.seats) + len(background),
            settings,
            arguments,
            (environment or {}) | own,
            cpu_limit_s,
        )
        outcome = _read(contender, ended)
        if contender == PALMETTE:
            _read_report(outcome, folder / "report.json", collective, sizes)
    return outcome


def _selector(contender: str, collective: str) -> dict[str, str]:
    if contender == PALMETTE:
        return _UNDERNEATH
    if contender in SELECTORS:
        return {"smpi/coll-selector": contender}
    return {"smpi/coll-selector": "mpich", f"smpi/{collective}": contender}


def _read(contender: str, ended: simgrid.Ended) -> Outcome:
    outcome = Outcome(contender, trouble=ended.trouble)
    for line in ended.output.splitlines():
        if not line.startswith('{"event"'):
            continue
        event: dict[str, Any] = json.loads(line)
        if event["event"] == "cell":
            outcome.times_s[event["size_bytes"]] = event["time_s"]
            outcome.wrong_ranks[event["size_bytes"]] = event["wrong_ranks"]
        elif event["event"] == "background":
            outcome.background_rounds = event["rounds"]
    return outcome


def _read_report(outcome: Outcome, path: Path, collective: str, sizes: Sequence[int]) -> None:
    """Note what palmette says that it did. Its override must have been called: each call is either served or refused."""
    if not path.is_file():
        if not outcome.trouble:
            raise SimulateError(
                "palmette's wrappers were not called in the simulation; build the program again with `make simulate`"
            )
        return
    report = json.loads(path.read_text(encoding="utf-8"))
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
    """Return the report's row for a size. Forms with lengths of their own report the mean length, or none at all (-1)."""
    for low, high in ((1.0, 1.0), (0.6, 1.6)):
        for row in served:
            if low * row["min_bytes"] <= size <= high * row["max_bytes"] or row["max_bytes"] <= 0:
                return row
    return None
