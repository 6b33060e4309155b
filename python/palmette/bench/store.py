"""runs.sqlite: every run with its raw samples. docs/reference/measurements.md describes the tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from palmette.bench.results import Cell, EdgeLoad, Job, Limit, Overlap, PassThrough, Run
from palmette.bench.schema import prepare
from palmette.measure.errors import BenchError
from palmette.measure.sqlite_file import SqliteFile, open_file

DEFAULT_PATH = Path("runs.sqlite")


class Store(SqliteFile):
    """An open runs.sqlite."""

    def add(self, run: Run, job: Job) -> None:
        """Add a finished job, and its run when it isn't there yet, in one transaction; sets `run.id`."""
        with self._db:
            if run.id is None:
                run.id = self._add_run(run)
            self._add_job(run.id, job)

    def _add_run(self, run: Run) -> int:
        machine = run.machine
        row = (
            run.started, machine["name"], machine["cpu"], machine["cores"], machine["kernel"], machine["palmette"],
            machine["commit"], run.place, json.dumps(machine), json.dumps(run.settings), _json(run.topology),
        )  # fmt: skip
        return self._insert(
            "runs (started, machine, cpu, cores, kernel, palmette_version, git_commit, place, details, settings,"
            " topology)",
            row,
        )

    def _add_job(self, run_id: int, job: Job) -> None:
        row = (
            run_id, job.mpi, job.mpi_version, job.placement, job.repeat, job.kind, json.dumps(job.hosts),
            job.palmette_ranks, job.seconds, job.error, _json(job.report), job.traffic,
            _json([asdict(edge) for edge in job.load] or None),
        )  # fmt: skip
        job_id = self._insert(
            "jobs (run_id, mpi, mpi_version, placement, repeat, kind, hosts, palmette_ranks, seconds, error, report,"
            " traffic, load)",
            row,
        )
        for cell in job.cells:
            bound = (cell.bound.seconds, cell.bound.reason) if cell.bound else (None, None)
            cell_id = self._insert(
                "cells (job_id, collective, size_bytes, root, block_bytes, wrong_alone, wrong_palmette, window_s,"
                " bound_s, bound_reason, overlap)",
                (
                    job_id,
                    cell.collective,
                    cell.size_bytes,
                    cell.root,
                    _json(cell.block_bytes),
                    cell.wrong_alone,
                    cell.wrong_palmette,
                    cell.window_s,
                    *bound,
                    _json(asdict(cell.overlap) if cell.overlap else None),
                ),
            )
            nothing = [None] * len(cell.alone_s)
            columns = (
                cell.palmette_first, cell.alone_s, cell.palmette_s, cell.alone_late_s, cell.palmette_late_s,
                cell.alone_bound_s or nothing, cell.palmette_bound_s or nothing,
            )  # fmt: skip
            self._db.executemany(
                "INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                ((cell_id, pair, *values) for pair, values in enumerate(zip(*columns, strict=True))),
            )

        for one in job.passes:
            lists = json.dumps(one.alone_ns), json.dumps(one.palmette_ns)
            self._insert(
                "pass_through (job_id, function, place, calls, alone_ns, palmette_ns)",
                (job_id, one.function, one.where, one.calls, *lists),
            )

    def load(self, name: str) -> Run:
        """Return the run called `name`: its number, `last`, or `last~N` for the Nth before it. Raises BenchError."""
        row = self._db.execute("SELECT * FROM runs WHERE id = ?", (self._find(name),)).fetchone()
        run = Run(
            started=row["started"],
            machine=json.loads(row["details"]),
            place=row["place"],
            settings=json.loads(row["settings"]),
            topology=json.loads(row["topology"]) if row["topology"] else None,
            id=row["id"],
        )
        run.jobs = [
            self._job(job) for job in self._db.execute("SELECT * FROM jobs WHERE run_id = ? ORDER BY id", (run.id,))
        ]
        return run

    def latest(self, most: int = 20) -> Iterator[Run]:
        """Yield the last runs, the newest first."""
        for row in self._db.execute("SELECT id FROM runs ORDER BY id DESC LIMIT ?", (most,)).fetchall():
            yield self.load(str(row["id"]))

    def _job(self, row: sqlite3.Row) -> Job:
        names = ("mpi", "mpi_version", "placement", "repeat", "kind", "palmette_ranks", "seconds", "error", "traffic")
        job = Job(**{name: row[name] for name in names}, hosts=json.loads(row["hosts"]))
        job.report = json.loads(row["report"]) if row["report"] else None
        job.load = [EdgeLoad(**edge) for edge in json.loads(row["load"])] if row["load"] else []
        job.cells = [
            self._cell(cell)
            for cell in self._db.execute("SELECT * FROM cells WHERE job_id = ? ORDER BY id", (row["id"],))
        ]
        job.passes = [
            PassThrough(
                one["function"], one["place"], one["calls"], json.loads(one["alone_ns"]), json.loads(one["palmette_ns"])
            )
            for one in self._db.execute("SELECT * FROM pass_through WHERE job_id = ? ORDER BY rowid", (row["id"],))
        ]
        return job

    def _cell(self, row: sqlite3.Row) -> Cell:
        pairs = self._db.execute("SELECT * FROM samples WHERE cell_id = ? ORDER BY pair", (row["id"],)).fetchall()
        names = ("collective", "size_bytes", "root", "wrong_alone", "wrong_palmette", "window_s")
        return Cell(
            **{name: row[name] for name in names},
            palmette_first=[bool(pair["palmette_first"]) for pair in pairs],
            alone_s=[pair["alone_s"] for pair in pairs],
            palmette_s=[pair["palmette_s"] for pair in pairs],
            alone_late_s=[pair["alone_late_s"] for pair in pairs],
            palmette_late_s=[pair["palmette_late_s"] for pair in pairs],
            block_bytes=json.loads(row["block_bytes"]) if row["block_bytes"] else None,
            bound=Limit(row["bound_s"], row["bound_reason"]) if row["bound_s"] is not None else None,
            overlap=Overlap(**json.loads(row["overlap"])) if row["overlap"] else None,
            alone_bound_s=_bounds(pairs, "alone_bound_s"),
            palmette_bound_s=_bounds(pairs, "palmette_bound_s"),
        )

    def _find(self, name: str) -> int:
        runs = [row["id"] for row in self._db.execute("SELECT id FROM runs ORDER BY id DESC")]
        if not runs:
            raise BenchError(f"{self.path} holds no run; `palmette bench` makes one")
        back = name.removeprefix("last~") if name.startswith("last~") else "0" if name == "last" else None
        if back is not None and back.isdigit() and int(back) < len(runs):
            return int(runs[int(back)])
        if name.isdigit() and int(name) in runs:
            return int(name)
        shown = ", ".join(str(run) for run in runs[:8]) + (", ..." if len(runs) > 8 else "")
        raise BenchError(f"{self.path} holds no run '{name}'; take one of {shown}, or last, last~1, ...")


def _bounds(pairs: Sequence[sqlite3.Row], column: str) -> list[float | None]:
    """The values of the column; empty where no call has a loaded bound."""
    found = [pair[column] for pair in pairs]
    return found if any(bound is not None for bound in found) else []


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value)


@contextmanager
def open_store(path: Path, *, create: bool) -> Iterator[Store]:
    """Open `path`; `create` makes a missing one. Raises BenchError for a file that is no store of this version."""
    with open_file(path, prepare, create=create, command="palmette bench", error_type=BenchError) as connection:
        yield Store(connection, path)
