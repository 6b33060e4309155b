"""What `palmette bench` prints of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from palmette.bench.evaluate import Row
from palmette.bench.loaded import load_lines, loaded_lines, pairs_of
from palmette.bench.loads import mean_loads
from palmette.bench.pass_through import pass_costs
from palmette.bench.results import Run
from palmette.bench.side_by_side import mean_speeds, side_cells
from palmette.bench.side_text import mean_lines, pass_lines, side_lines, target_lines
from palmette.bench.targets import Outcome
from palmette.bench.text import summary_lines, tables
from palmette.cli.common import emit_json
from palmette.present.words import wrapped


def show_run(
    run: Run,
    rows: Sequence[Row],
    store: Path,
    page: Path | None,
    *,
    as_json: bool,
    side_by_side: bool = False,
    outcomes: Sequence[Outcome] = (),
) -> None:
    """Print the tables, or the JSON. `side_by_side`: compare the MPIs in one table, not one table per MPI."""
    if as_json:
        emit_json(run_json(run, rows, store, page, outcomes))
        return
    cells = side_cells(run)
    means = mean_speeds(cells)
    machine = run.machine
    lines = wrapped(f"{run.place}; {machine['cpu']}, {machine['cores']} cores; palmette {machine['palmette']}")
    pairs = pairs_of(rows)
    blocks = [side_lines(cells)] if side_by_side and cells else []
    if pairs:
        blocks.append(loaded_lines(pairs))
    elif not blocks:
        blocks += table_blocks(rows)
    blocks += [load_lines(run), mean_lines(means), pass_lines(pass_costs(run.jobs)), target_lines(outcomes)]
    lines += [line for block in blocks if block for line in ("", *block)]
    stored = f"run {run.id} in {store}" + (f"; page: {page}" if page else "")
    click.echo("\n".join([*lines, "", *summary_lines(run, rows), stored]))


def table_blocks(rows: Sequence[Row]) -> list[list[str]]:
    """Return the tables of cells as lines, in the terminal's colors."""
    return [[title, *table.lines(colored=True)] for title, table in tables(rows)]


def _cell_json(run: Run, row: Row) -> dict[str, Any]:
    """Return a cell, with where its buffers were unless that was the host's memory."""
    memory = run.settings.get("memory", "host")
    if memory == "host":
        return row.to_json()
    return {**row.to_json(), "memory": memory, "alone_with_copies": row.mpi in run.settings.get("copies", ())}


def run_json(
    run: Run, rows: Sequence[Row], store: Path, page: Path | None, outcomes: Sequence[Outcome] = ()
) -> dict[str, Any]:
    """Return all that is known of a run but its samples."""
    cells = side_cells(run)
    return {
        "run": run.id,
        "store": str(store),
        "page": str(page) if page else None,
        "started": run.started,
        "place": run.place,
        "machine": run.machine,
        "settings": run.settings,
        "jobs": [
            {
                "mpi": job.mpi,
                "mpi_version": job.mpi_version,
                "placement": job.placement,
                "repeat": job.repeat,
                "kind": job.kind,
                "traffic": job.traffic,
                "load": [asdict(edge) for edge in job.load],
                "seconds": job.seconds,
                "error": job.error,
            }
            for job in run.jobs
        ],
        "cells": [_cell_json(run, row) for row in rows],
        "side_by_side": [cell.to_json() for cell in cells],
        "mean_speeds": [mean.to_json() for mean in mean_speeds(cells)],
        "pass_through": [cost.to_json() for cost in pass_costs(run.jobs)],
        "quiet_and_loaded": [
            {"quiet": pair.quiet.to_json(), "loaded": pair.loaded.to_json()} for pair in pairs_of(rows)
        ],
        "loads": [load.to_json() for load in mean_loads(run)],
        "targets": [outcome.to_json() for outcome in outcomes],
    }
