"""What the page shows beside the cells: MPIs side by side, targets, calls passed through, what palmette did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from palmette.bench.pass_through import pass_costs
from palmette.bench.results import Run
from palmette.bench.side_by_side import mean_speeds, side_cells
from palmette.bench.side_text import mean_table, pass_table, side_tables, worst_texts
from palmette.bench.targets import Outcome
from palmette.present.table import Column, Table

_MARKS = {"met": "good", "missed": "bad", "undecided": "doubt", "not measured": ""}
_TARGETS: list[Column[Outcome]] = [
    Column("what", "target.text", left=True),
    Column("limit", "", lambda one: f"{'≥' if one.target.kind == 'mean_speed' else '≤'} {one.target.limit:g}"),
    Column("", "answer", left=True, mark=lambda one: _MARKS[one.answer]),
    Column("worst by MPI; ! misses, ? may miss", "", lambda one: ", ".join(worst_texts(one)), left=True, absent="–"),
]


def markup(table: Table[Any]) -> Markup:
    """Return a table for a template; nothing without rows."""
    return Markup(table.html() if table.rows else "")  # noqa: S704 - escaped where it is made


def comparisons(run: Run, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the tables of one run."""
    cells = side_cells(run)
    return {
        "means": markup(mean_table(mean_speeds(cells))),
        "tables": [(title, markup(table)) for title, table in side_tables(cells)],
        "passes": markup(pass_table(pass_costs(run.jobs))),
        "targets": markup(Table(_TARGETS, outcomes)),
    }


def _listed(key: str, name: str = "") -> Column[dict[str, Any]]:
    return Column(name or key, "", lambda row: row.get(key), left=True, absent="")


def _counted(key: str, name: str = "") -> Column[dict[str, Any]]:
    return Column(name or key, "", lambda row: row.get(key, 0))


_FUNCTION, _WHERE = _listed("function", "collective"), _listed("where")
CHOICES = [
    _FUNCTION,
    _listed("sizes", "block size"),
    _listed("algorithm"),
    _listed("reason"),
    _counted("calls"),
    _WHERE,
]
REFUSALS = [_FUNCTION, _listed("reason"), _counted("calls"), _WHERE]
ON_DEVICES = [
    _FUNCTION, _counted("calls", "ranks' calls"), _counted("bytes_read", "bytes read"),
    _counted("bytes_written", "bytes written"), _counted("in_place", "in place"), _counted("failures", "failed"),
]  # fmt: skip
"""Columns of what the preload library reports."""
