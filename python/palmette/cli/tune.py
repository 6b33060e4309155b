"""`palmette tune`: find the fastest algorithms here, and write them as a decision table."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from palmette.bench.settings import BLOCKING, expand_collectives, parse_sizes, split
from palmette.cli import installations
from palmette.cli.common import CliError, WholeNumber, emit_json, errors, json_option, sizes_option, write_file
from palmette.cli.duration import duration
from palmette.cli.place import LineCommand, PlaceOptions, place_options, with_bare_line
from palmette.cli.place_errors import one_line_errors
from palmette.cli.progress import ActivityLine
from palmette.cli.tune_progress import TuneProgress
from palmette.cli.tune_show import plan_lines, result_json, result_lines
from palmette.measure.machine import describe_machine
from palmette.measure.places import Place
from palmette.mpi.install import Installation
from palmette.present.words import wrapped
from palmette.topology.file import load
from palmette.tune.errors import TuneError
from palmette.tune.job import RoundOptions
from palmette.tune.places import LineSite, PlaceSite, Site
from palmette.tune.plan import SitePlan, cells_of, plan_site
from palmette.tune.rows import merged
from palmette.tune.session import Outcome, Session, table_of
from palmette.tune.store import DEFAULT_PATH, TuningStore, open_tunings

MOST_CANDIDATES = 14
_START_S = 30.0
"""The shortest budget that a job and its samples fit in."""


@contextmanager
def _tune_errors() -> Iterator[None]:
    with one_line_errors():
        try:
            yield
        except TuneError as error:
            raise CliError(str(error)) from error


def _budget(context: click.Context, parameter: click.Parameter, value: str) -> float:
    seconds = duration(context, parameter, value) or 0.0
    if seconds < _START_S:
        raise CliError(f"--budget {value}: less than {_START_S:.0f} s measure nothing; give 10min or so")
    return seconds


@click.command(
    cls=LineCommand,
    context_settings={"max_content_width": 80},
    epilog="Example: palmette tune allreduce,bcast --sizes 1K,64K --budget 5min -- mpiexec -n 64",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COLLECTIVES]")
@sizes_option("64,1K,16K,256K", "Bytes a block, powers of 1024.")
@click.option(
    "--budget", default="10min", show_default=True, callback=_budget, help="Time for all: 90s, 10m; 30s at least."
)
@click.option("--mpi", "mpis", help="mpich, openmpi, impi, or `all`. [default: the first that is installed]")
@place_options(local=2)
@click.option("--root", type=WholeNumber(0), default=0, show_default=True, help="Root of the collectives.")
@click.option(
    "--candidates", type=WholeNumber(3, 100), default=MOST_CANDIDATES, show_default=True, help="A cell, at most."
)
@click.option(
    "--table", type=click.Path(path_type=Path), metavar="FILE", help="Improve this. [default: output, or built-in]"
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), default=Path("tuning.json"), show_default=True,
    metavar="FILE", help="The decision table.",
)  # fmt: skip
@click.option(
    "--store", type=click.Path(path_type=Path, dir_okay=False), default=DEFAULT_PATH, show_default=True,
    help="Where raw samples go.",
)  # fmt: skip
@click.option("--unconfirmed", is_flag=True, help="Write rows that no second job confirmed, too.")
@click.option("--plan", "only_plan", is_flag=True, help="Say what would be measured, and measure nothing.")
@json_option
def command(
    words: tuple[str, ...],
    sizes: str,
    budget: float,
    mpis: str | None,
    where: PlaceOptions,
    root: int,
    candidates: int,
    table: Path | None,
    output: Path,
    store: Path,
    unconfirmed: bool,
    only_plan: bool,
    as_json: bool,
) -> None:
    """Find the fastest algorithms here, and write them as a decision table.

    COLLECTIVES are separated by commas (default: all). Where: local ranks, or behind -- the launcher line that
    you would write before a program: its ranks are tuned. The model preselects candidates, measurements decide, within
    the given budget. The table is for `palmette run --table` or PALMETTE_TABLE; docs/method/tuning.md describes the
    procedure.
    """
    functions, bare = _split(words)
    where = with_bare_line(where, tuple(bare)).checked()
    base = table if table is not None else output if output.is_file() else None
    with _tune_errors():
        cells = cells_of(functions, parse_sizes(split(sizes)), root)
        if where.topology is not None:
            load(where.topology)
        if where.line:
            where.refuse_with_line({"--mpi": mpis})
            sites: list[Site] = [LineSite(where.line, where.topology, where.abi)]
            _tune(
                sites,
                cells,
                budget,
                candidates,
                base,
                output,
                store,
                only_plan=only_plan,
                unconfirmed=unconfirmed,
                as_json=as_json,
            )
            return
        local = where.is_local()
        with where.place(local=local) as place:
            forms = where.placements("block,random:1")
            sites = _sites(place, installations.chosen(mpis), forms, where.ppn, where.ranks)
            _tune(
                sites,
                cells,
                budget,
                candidates,
                base,
                output,
                store,
                only_plan=only_plan,
                unconfirmed=unconfirmed,
                as_json=as_json,
            )


def _split(words: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return collectives, and a launcher line that stands there without `--`."""
    names = set(BLOCKING) | {"all", "blocking"}
    first = words[0] if words else ""
    named = bool(first) and any(word in names for word in split(first))
    asked = expand_collectives(split(first)) if named else BLOCKING
    line = list(words[1:] if named else words)
    functions = tuple(name for name in asked if name in BLOCKING)
    unknown = [name for name in asked if name not in BLOCKING] if named else []
    if unknown and "all" not in split(first):
        raise CliError(f"'{unknown[0]}' is no blocking collective; there are {', '.join(BLOCKING)}")
    if line and not named and len(line) == 1:
        raise CliError(f"'{line[0]}' is no collective and no launcher line; there are {', '.join(BLOCKING)}")
    return functions, line


def _sites(
    place: Place, mpis: Sequence[Installation], placements: Sequence[str], ppn: int | None, ranks: int | None
) -> list[Site]:
    return [PlaceSite(place, mpi, placement, ppn, ranks) for placement in placements for mpi in mpis]


def _tune(
    sites: Sequence[Site], cells: Sequence[Any], budget: float, most: int, base: Path | None, output: Path, store: Path,
    *, only_plan: bool, unconfirmed: bool, as_json: bool,
) -> None:  # fmt: skip
    with ActivityLine("ranking the candidates by the model"):
        plans = [plan_site(site, cells, base, budget / len(sites), most) for site in sites]
    if only_plan and as_json:
        emit_json({"plan": [_plan_json(plan) for plan in plans]})
        return
    for text in plan_lines(plans, budget, base):
        click.echo(text, err=as_json or not only_plan)
    if only_plan:
        return
    document = table_of(base)
    with open_tunings(store, create=True) as kept:
        _begin(kept, plans, cells, budget)
        with TuneProgress(errors) as progress:
            outcome = Session(plans, budget, RoundOptions(base), kept, progress, unconfirmed=unconfirmed).run()
    made = merged(outcome.rows, document)
    if outcome.rows:
        write_file(output, _text(made), "-o")
    if as_json:
        emit_json(result_json(outcome, output, store))
    else:
        click.echo("\n".join(part for line in result_lines(outcome, output, store) for part in wrapped(line) or [""]))
    _end(outcome)


def _begin(kept: TuningStore, plans: Sequence[SitePlan], cells: Sequence[Any], budget: float) -> None:
    first = plans[0].site
    topology = load(first.topology_path).to_json() if first.topology_path is not None else None
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    settings = {
        "budget_s": budget,
        "cells": [cell.label for cell in cells],
        "sites": [p.site.description for p in plans],
    }
    kept.begin(now, describe_machine(), first.description, topology, settings)


def _plan_json(plan: SitePlan) -> dict[str, Any]:
    return {
        "site": plan.site.description,
        "expected_s": plan.expected_s,
        "cells": [
            {
                "function": question.cell.function,
                "size_bytes": question.cell.size_bytes,
                "root": question.cell.root,
                "present": plan.present[question.cell],
                "possible": len(plan.forecasts[question.cell]),
                "candidates": [{"spec": s, "predicted_s": p} for s, p in question.predicted_s.items()],
            }
            for question in plan.questions
        ],
    }


def _text(document: dict[str, Any]) -> str:
    """A row a line: tables are read and edited by people."""
    rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in document["rows"])
    sources = f'"sources": {json.dumps(document["sources"], indent=1)},\n' if "sources" in document else ""
    head = f'"format": "{document["format"]}", "version": {document["version"]},\n{sources}'
    return f'{{\n{head}"rows": [\n{rows}\n]}}\n'


def _end(outcome: Outcome) -> None:
    if outcome.interrupted:
        raise click.Abort
    if outcome.jobs and all(job.error and not job.results for job in outcome.jobs):
        raise CliError(f"nothing was measured: {outcome.errors[0]}", status=1)
