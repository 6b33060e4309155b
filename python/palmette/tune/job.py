"""One job of the tune program: cells with their candidates in, samples out."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from palmette.bench.settings import SLEEP_WINDOW_US, SPIN_WINDOW_US
from palmette.measure.job_output import error_line, watched
from palmette.measure.running import TIMED_OUT
from palmette.tune.errors import TuneError
from palmette.tune.places import Site
from palmette.tune.results import MPI, TABLE, Cell, Output, read_output
from palmette.tune.store import TuneJob
from palmette.units import plural

GRACE_S = 30.0
"""Time of a job beyond its budget: to start, and for the outstanding calls at the end."""


@dataclass(frozen=True)
class Question:
    """A cell and the algorithms to compare, with their predicted times where there are any.

    `table` and `mpi` are added automatically.
    """

    cell: Cell
    predicted_s: dict[str, float | None]

    @property
    def candidates(self) -> tuple[str, ...]:
        """All that is measured: the present choice and the MPI alone first."""
        return (TABLE, MPI, *self.predicted_s)


class Watcher:
    """Callbacks for the progress of a tuning; this one does nothing."""

    def job_starts(self, label: str, cells: int, seconds: float) -> None:
        """A job of `cells` cells starts, which may take up to `seconds`."""

    def cells_done(self, cells: int) -> None:
        """The current job has finished that many cells."""

    def job_ends(self, label: str, job: TuneJob) -> None:
        """The current job is over."""


@dataclass(frozen=True)
class RoundOptions:
    """How a job measures. `table`: the decision table in force, None the built-in one. `keep_all`: slow candidates
    aren't dropped early.
    """

    table: Path | None = None
    min_rounds: int = 5
    max_rounds: int = 60
    seed: int = 1
    keep_all: bool = False
    environment: tuple[tuple[str, str], ...] = ()


class InterruptedJobError(KeyboardInterrupt):
    """Ctrl-C came while a job ran; `job` is what it had measured by then."""

    def __init__(self, job: TuneJob) -> None:
        super().__init__()
        self.job = job


def probe(site: Site) -> Output:
    """Run the program without cells: which MPI, which hosts. Raises TuneError."""
    with tempfile.TemporaryDirectory(prefix="palmette-tune-", dir=site.folder) as folder:
        path = Path(folder) / "samples.jsonl"
        done = site.run(["--output", str(path)], {}, 120.0)
        output = read_output(path)
    if not output.ended:
        raise TuneError(
            f"{site.description}: the tune program didn't run: {error_line(done)}; does the line start jobs?"
        )
    return output


def measure(
    site: Site,
    questions: Sequence[Question],
    seconds: float,
    how: RoundOptions,
    step: str,
    watcher: Watcher | None = None,
) -> TuneJob:
    """Run one job and return what it measured; its `error` holds what went wrong.

    Raises InterruptedJobError, with what there is, after Ctrl-C; TuneError for output that can't be read.
    """
    watcher = watcher or Watcher()
    label = f"{site.mpi or 'mpi'} {site.placement}: {step}"
    watcher.job_starts(label, len(questions), seconds)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="palmette-tune-", dir=site.folder) as folder:
        cells, samples = Path(folder) / "cells", Path(folder) / "samples.jsonl"
        cells.write_text("".join(map(_line, questions)), encoding="utf-8")
        # Palmette's own comparison with the MPI would only disturb the measurement. Each candidate gets a communicator
        # of its own, which must be served at once.
        variables = {"PALMETTE_COMPARE": "0", "PALMETTE_SERVE_AFTER": "0", **dict(how.environment)}
        if site.topology_path is not None:
            variables["PALMETTE_TOPOLOGY"] = str(site.topology_path.absolute())
        if how.table is not None:
            variables["PALMETTE_TABLE"] = str(how.table.absolute())
        done: subprocess.CompletedProcess[str] | None = None
        try:
            with watched(samples, watcher.cells_done):
                done = site.run(_arguments(site, cells, samples, seconds, how), variables, seconds + GRACE_S)
        except KeyboardInterrupt:
            job = _job(site, step, read_output(samples), None, questions, time.monotonic() - started)
            raise InterruptedJobError(job) from None
        output = read_output(samples)
    job = _job(site, step, output, done, questions, time.monotonic() - started)
    watcher.job_ends(label, job)
    return job


def _line(question: Question) -> str:
    cell = question.cell
    return f"{cell.function} {cell.size_bytes} {cell.root} {' '.join(question.candidates)}\n"


def _arguments(site: Site, cells: Path, samples: Path, seconds: float, how: RoundOptions) -> list[str]:
    return [
        *("--cells", str(cells)),
        *("--seconds", f"{seconds:.1f}"),
        *("--min-rounds", str(how.min_rounds)),
        *("--max-rounds", str(how.max_rounds)),
        *(["--keep-all"] if how.keep_all else []),
        *("--wait", "spin" if site.spins else "sleep"),
        *("--window-us", str(SPIN_WINDOW_US if site.spins else SLEEP_WINDOW_US)),
        *("--seed", str(how.seed)),
        *("--output", str(samples)),
    ]


def _job(
    site: Site, step: str, output: Output, done: subprocess.CompletedProcess[str] | None,
    questions: Sequence[Question], seconds: float,
) -> TuneJob:  # fmt: skip
    predicted = {question.cell: question.predicted_s for question in questions}
    for result in output.results:
        for one in result.candidates:
            one.predicted_s = predicted.get(result.cell, {}).get(one.spec)
    hosts = output.hosts or site.hosts or []
    return TuneJob(
        site.mpi or mpi_name(output.mpi_version), output.mpi_version, site.placement, step, hosts, seconds,
        _complaint(done, output), output.results,
    )  # fmt: skip


def mpi_name(version: str) -> str:
    """Return mpich, openmpi, impi or nothing for what MPI_Get_library_version says, as the run time reads it."""
    for sign, name in (("Intel", "impi"), ("Open MPI", "openmpi"), ("MPICH", "mpich")):
        if sign in version:
            return name
    return ""


def _complaint(done: subprocess.CompletedProcess[str] | None, output: Output) -> str | None:
    wrong = [
        f"{result.cell.label} by {one.spec}"
        for result in output.results
        for one in result.candidates
        if one.wrong_ranks
    ]
    if wrong:
        return f"wrong results: {', '.join(wrong[:3])}{' and more' if len(wrong) > 3 else ''}; those are discarded"
    if done is None:
        return "interrupted"
    if done.returncode == TIMED_OUT and not output.ended:
        return f"ended at its time limit after {plural(len(output.results), 'cell')}"
    if done.returncode != 0 or not output.ended:
        cells = plural(len(output.results), "cell")
        return f"the job ended with status {done.returncode} after {cells}: {error_line(done)}"
    if output.palmette_ranks < len(output.hosts):
        return f"the preload was loaded on {output.palmette_ranks} of {len(output.hosts)} ranks only"
    return None
