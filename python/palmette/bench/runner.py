"""Running a benchmark: one job per MPI, placement and repetition, then the bounds of its cells."""

from __future__ import annotations

import datetime
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.bench.collbench import Output, read_output
from palmette.bench.evaluate import algorithm_of
from palmette.bench.jobs import BenchJob, plan_jobs
from palmette.bench.limits import limits
from palmette.bench.loaded_bounds import COUNTER_PERIOD_S, count_own_bytes, set_loaded_bounds
from palmette.bench.loads import with_loads
from palmette.bench.results import EdgeLoad, Job, Kind, Run
from palmette.bench.settings import Settings
from palmette.files import parse_json
from palmette.measure.errors import BenchError
from palmette.measure.job_output import error_line, watched, while_polling
from palmette.measure.links import LinkLog, Links
from palmette.measure.machine import describe_machine
from palmette.measure.places import Place, program, read_topology
from palmette.measure.running import TIMED_OUT
from palmette.mpi.abi import preload_library

_ALONE_S = 1.0
"""The background traffic is measured for this long before a job starts under it."""


class Watcher:
    """Progress callbacks of a benchmark; these do nothing."""

    def job_starts(self, job: BenchJob, number: int, jobs: int) -> None:
        """Job `number` of `jobs` (from 0) starts."""

    def cells_done(self, cells: int) -> None:
        """The current job has finished that many cells."""

    def job_ends(self, job: Job) -> None:
        """The current job is over."""


def new_run(settings: Settings, place: Place) -> Run:
    """Return a run without jobs. Raises TopologyError."""
    return Run(
        started=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=describe_machine(),
        place=place.description,
        settings={**settings.to_json(), "place": place.options},
        topology=read_topology(place.topology_path),
    )


def measure(
    settings: Settings,
    place: Place,
    watcher: Watcher | None = None,
    keep: Callable[[Run, Job], None] | None = None,
    *,
    jobs: Sequence[BenchJob] | None = None,
    run: Run | None = None,
    keeper: Callable[[Sequence[BenchJob]], Sequence[BenchJob]] | None = None,
) -> Run:
    """Run all jobs and return the run. `jobs` and `run`: run these, and add them to that run. Before each job `keeper`
    gets the remaining jobs and returns those to run.

    `keep` is called after each job, so that an interrupted run loses only the current job. A failed job is kept with
    its error, and the next ones run. Raises BenchError, PlaceError, PlacementError, RunError, TopologyError.
    """
    watcher = watcher or Watcher()
    jobs = plan_jobs(settings, place.mpi) if jobs is None else jobs
    for planned in jobs:  # fail before anything is measured
        _preload(planned, settings)
        place.place(planned.placement, settings.ppn, settings.ranks)
        _check_rival(planned, place)
        _check_traffic(planned, place)
    run = new_run(settings, place) if run is None else run
    left, number = list(jobs), 0
    while left:
        if keeper is not None:
            left = list(keeper(left))
            if not left:
                break
        planned = left.pop(0)
        watcher.job_starts(planned, number, number + 1 + len(left))
        number += 1
        job = _do(planned, settings, place, run, watcher)
        run.jobs.append(job)
        watcher.job_ends(job)
        if keep is not None:
            keep(run, job)
    return run


def _preloads(planned: BenchJob, settings: Settings) -> bool:
    return settings.preload and planned.rival is None


def _preload(planned: BenchJob, settings: Settings) -> dict[str, str]:
    return {"LD_PRELOAD": str(preload_library(planned.mpi.abi))} if _preloads(planned, settings) else {}


def _check_rival(planned: BenchJob, place: Place) -> None:
    if planned.rival is not None and planned.rival.coordinates and place.topology_path is None:
        raise BenchError(f"the rival {planned.rival.name} needs a topology; give --lab, or leave the rival out")


def _check_traffic(planned: BenchJob, place: Place) -> None:
    """Raise BenchError where background traffic is asked for, and no links are there."""
    if planned.loaded and place.links is None:
        raise BenchError("--traffic needs a lab, whose links it fills; leave it out or give --lab")


def _do(planned: BenchJob, settings: Settings, place: Place, run: Run, watcher: Watcher) -> Job:
    topology = run.topology
    hosts = place.place(planned.placement, settings.ppn, settings.ranks)
    mpi = planned.mpi
    job = Job(planned.name, mpi.version, planned.placement, planned.repeat, planned.kind, hosts)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="palmette-bench-", dir=place.folder) as folder:
        samples, report = Path(folder) / "samples.jsonl", Path(folder) / "report.json"
        env = {**_preload(planned, settings), "PALMETTE_REPORT": str(report)}
        if place.topology_path is not None:
            env["PALMETTE_TOPOLOGY"] = str(place.topology_path)
        if planned.rival is not None:
            env |= planned.rival.environment(place.topology_path, hosts, Path(folder))
        if planned.kind == "pass_through":
            env["PALMETTE_TABLE"] = str(_write_table_of_the_mpis_own(Path(folder)))
            arguments = settings.pass_through_arguments(str(samples))
        else:
            arguments = settings.program_arguments(
                str(samples),
                spin=place.spins,
                floor=planned.kind == "floor",
                cells=planned.cells,
                limit_s=planned.limit_s,
                copies=planned.mpi.name in settings.copies,
            )
        argv = [str(program(mpi.abi)), *arguments]
        with (
            _traffic(planned, settings, place, samples, job) as traffic,
            watched(samples, watcher.cells_done),
            _rates(place, planned.kind),
        ):
            if traffic.alone and topology is not None:
                env["PALMETTE_TOPOLOGY"] = str(_write_loaded(topology, traffic.alone, Path(folder)))
            chosen = {**env, **settings.env, **(planned.variant.env if planned.variant else {})}
            done = place.run(mpi, hosts, argv, chosen, settings.job_timeout_s)
        output = read_output(samples)
        job.report = _read_report(report)
    job.seconds = time.monotonic() - started
    job.cells = output.cells
    job.passes = output.passes
    job.palmette_ranks = output.palmette_ranks
    if place.mpi is not None and len(output.hosts) == len(hosts):
        # A launcher may take other nodes for each of its jobs.
        hosts = job.hosts = hosts if _same(output.hosts, hosts) else output.hosts
    preloaded = replace(settings, preload=_preloads(planned, settings))
    job.error = _complaint(done, output, preloaded, hosts) or _not_passed_through(job) or job.error
    if topology is not None and output.hosts:
        for cell, limit in zip(job.cells, limits(topology, hosts, job.cells), strict=True):
            cell.bound = limit
        if traffic.log is not None:
            _set_loaded_bounds(job, run, traffic.log)
    return job


@dataclass
class _TrafficRecord:
    """A job's background traffic. `alone`: its load of each link before the job starts.

    `log`: once the job is over, the bytes over the links; also of a quiet job whose loaded one comes next.
    """

    alone: list[EdgeLoad] = field(default_factory=list)
    log: LinkLog | None = None


@contextmanager
def _traffic(planned: BenchJob, settings: Settings, place: Place, samples: Path, job: Job) -> Iterator[_TrafficRecord]:
    """Run the background traffic, and record the link utilisation from the job's first output on.

    Its load of each link by itself is known before the job starts, so that palmette can use it; empty without traffic.
    """
    if settings.traffic is None or place.links is None or planned.kind not in ("measure", "rival"):
        yield _TrafficRecord()
        return
    record = _TrafficRecord()
    with place.links.logging(COUNTER_PERIOD_S) as read_links:
        if planned.loaded:
            with _background(settings.traffic, place.links, samples, job) as alone:
                record.alone = alone
                yield record
        else:
            yield record
        record.log = read_links()


@contextmanager
def _background(traffic: str, links: Links, samples: Path, job: Job) -> Iterator[list[EdgeLoad]]:
    """Yield the traffic's load of each link by itself; at the end `job.load` is set to the load during the job."""
    job.traffic = traffic
    with links.background(traffic) as running:
        first = [running.snapshot()]
        time.sleep(_ALONE_S)
        alone = running.load(first[0], running.snapshot())

        def snapshot_at_start() -> bool:
            has_begun = samples.exists() and samples.stat().st_size > 0
            if has_begun:
                first[0] = running.snapshot()
            return has_begun

        with while_polling(snapshot_at_start):
            yield alone
            job.load = running.load(first[0], running.snapshot())
            if not running.is_alive():
                job.error = "the background traffic ended before the job did"


def _set_loaded_bounds(job: Job, run: Run, log: LinkLog) -> None:
    """Count the bytes that a quiet job's calls send over the links; set the loaded bounds of a loaded job's calls."""
    if job.traffic is None:
        for cell in job.cells:
            cell.own = count_own_bytes(cell, algorithm_of(job, cell), log)
        return
    quiet = {
        (cell.collective, cell.size_bytes): cell.own
        for other in run.jobs
        if (other.mpi, other.where, other.kind, other.repeat) == (job.mpi, job.placement, job.kind, job.repeat)
        for cell in other.cells
    }
    on = _core.Job.on_hosts(_core.Machine.from_json(run.topology or {}), job.hosts)
    set_loaded_bounds(
        on,
        job.cells,
        log,
        lambda cell: quiet.get((cell.collective, cell.size_bytes)),
        lambda cell: algorithm_of(job, cell),
    )


def _write_loaded(topology: dict[str, Any], alone: Sequence[EdgeLoad], folder: Path) -> Path:
    """Write the topology with the traffic's load of each link, as `palmette-lab bench --write-load` does."""
    path = folder / "loaded.json"
    path.write_text(json.dumps(with_loads(topology, alone)), encoding="utf-8")
    return path


def _write_table_of_the_mpis_own(folder: Path) -> Path:
    """Write a decision table that leaves to the MPI the collectives that collbench calls with --pass-through."""
    rows = [{"function": name, "algorithm": "mpi"} for name in ("barrier", "bcast", "allreduce")]
    path = folder / "table.json"
    path.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    return path


@contextmanager
def _rates(place: Place, kind: Kind) -> Iterator[None]:
    if kind != "floor":
        yield
        return
    with place.unlimited():
        yield


def _read_report(path: Path) -> dict[str, Any] | None:
    """Return the preload's report; None where it is missing or truncated."""
    try:
        report = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) and report.get("format") == "palmette-report" else None


def _complaint(
    done: subprocess.CompletedProcess[str], output: Output, settings: Settings, hosts: list[str]
) -> str | None:
    """Return what is wrong with a finished job in one line, or None."""
    wrong = [f"{c.collective} {c.size_bytes}" for c in output.cells if c.wrong_alone or c.wrong_palmette]
    if wrong:
        return f"wrong results in {', '.join(wrong[:4])}{' and more' if len(wrong) > 4 else ''}: {error_line(done)}"
    if done.returncode == TIMED_OUT and not output.ended:
        return f"ended at its time limit of {settings.job_timeout_s:.0f} s after {len(output.cells)} cells"
    if done.returncode != 0 or not output.ended:
        return f"mpiexec ended with status {done.returncode} after {len(output.cells)} cells: {error_line(done)}"
    if settings.preload and output.palmette_ranks < len(hosts):
        loaded = f"{output.palmette_ranks} of {len(hosts)}"
        return f"the preload was loaded on {loaded} ranks only; the launcher drops LD_PRELOAD"
    named = [host for host in hosts if host != "localhost"]
    if named and not _same(output.hosts, hosts):
        return "the ranks are not on the hosts that the placement says; the launcher placed them otherwise"
    return None


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether these are the same hosts, with their domains or without."""
    return [host.split(".")[0] for host in one] == [host.split(".")[0] for host in other]


def _not_passed_through(job: Job) -> str | None:
    """Return why loops of calls that should have been passed through measured something else, or None."""
    if job.kind != "pass_through" or job.report is None:
        return None
    notes = [str(note) for note in job.report.get("notes", []) if str(note).startswith("PALMETTE_TABLE")]
    if notes:
        return f"the preload doesn't take the table that leaves calls to the MPI: {notes[0]}; build it again"
    served = sorted({str(call.get("function")) for call in job.report.get("calls", [])})
    if served:
        names = ", ".join(served)
        return f"palmette served {names}, against the table; unset what forces algorithms (PALMETTE_FORCE)"
    return None
