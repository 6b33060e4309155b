"""Writing the page of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from palmette.bench.evaluate import Row
from palmette.bench.results import Run
from palmette.bench.targets import Outcome
from palmette.bench.text import cell_columns, hidden_text, mpi_text, name_text, size_text
from palmette.bench.text import tables as cell_tables
from palmette.bench_page import content
from palmette.bench_page.comparisons import CHOICES, ON_DEVICES, REFUSALS, comparisons, markup
from palmette.bench_page.loaded import loaded
from palmette.files import write_text
from palmette.measure.errors import BenchError
from palmette.present.colors import variables
from palmette.present.table import Column, Table
from palmette.present.templates import environment
from palmette.show.svg import svg
from palmette.topology.file import parse
from palmette.units import time_text

_FOLDER = Path(__file__).parent
STYLE = variables() + (_FOLDER / "style.css").read_text(encoding="utf-8")


def write_page(path: Path, run: Run, rows: Sequence[Row], outcomes: Sequence[Outcome] = ()) -> None:
    """Write the page to `path`; its folder is made. Raises BenchError when that can't be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, render(run, rows, outcomes))
    except OSError as error:
        raise BenchError(f"can't write {path}: {error.strerror}; choose another file") from None


def render(run: Run, rows: Sequence[Row], outcomes: Sequence[Outcome] = ()) -> str:
    """Return the page as HTML. It needs no other file and no network."""
    templates = environment(_FOLDER)
    templates.filters.update(time=time_text, size=size_text)
    series = content.series_of(rows)
    measured = [job for job in run.jobs if job.kind == "measure"]
    return templates.get_template("page.html.j2").render(
        run=run,
        machine=run.machine,
        settings=run.settings,
        style=Markup(STYLE),  # noqa: S704 - a file of ours
        versions=list(dict.fromkeys(mpi_text(row) for row in rows)),
        facts=content.facts(rows),
        tree=_tree(run),
        seats=content.seats(run),
        mpis=[(name_text(mpi), len(list(group))) for mpi, group in groupby(series, key=lambda one: one[0])],
        placements=[placement for _, placement in series],
        heat=content.heat(rows),
        panels=[
            (name, [(panel.title, Markup(panel.svg)) for panel in charts])  # noqa: S704 - escaped where it is made
            for name, charts in content.panels(rows)
        ],
        tables=[(title, markup(_everything(table.rows))) for title, table in cell_tables(rows)],
        comparisons=comparisons(run, outcomes),
        loaded=loaded(run, rows),
        hidden=any(hidden_text(row) for row in rows),
        choices=markup(Table(CHOICES, content.choices(measured))),
        refusals=markup(Table(REFUSALS, content.refusals(measured))),
        on_devices=markup(Table(ON_DEVICES, content.on_devices(measured))),
        notes=content.notes(measured),
        reported=any(job.report is not None for job in measured),
        failures=[job for job in run.jobs if job.error],
        left_out=sum(row.left_out for row in rows),
        pairs=sum(row.pairs for row in rows),
        command=content.command_line(run),
        # Only `<` could end a script element.
        data=Markup(json.dumps([row.to_json() for row in rows]).replace("<", "\\u003c")),  # noqa: S704
    )


def _tree(run: Run) -> Markup | None:
    """Return the picture of the topology, None where it is unknown."""
    if run.topology is None:
        return None
    drawn = svg(parse(json.dumps(run.topology), "topology of the run"))
    return Markup(drawn)  # noqa: S704 - palmette.show escapes names


def _everything(cells: Sequence[Row]) -> Table[Row]:
    """Return all that is known of cells: the table of the terminal, and more columns."""
    columns = [column for column in cell_columns(cells) if column.name != "bound"]
    columns += [
        Column("bound", "", lambda row: row.bound.seconds if row.bound else None, time_text,
               tip=lambda row: row.bound.reason if row.bound else ""),
        Column("in bounds", "", content.multiples_text),
        Column("pairs", "", lambda row: f"{row.pairs - row.left_out}" + (f" of {row.pairs}" if row.left_out else "")),
        Column("algorithm", "algorithm", left=True),
    ]  # fmt: skip
    if any(hidden_text(row) for row in cells):
        columns.insert(-1, Column("hidden", "", hidden_text))
    return Table(columns, cells)
