"""Predictions as tables of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from string import ascii_lowercase

from palmette import _core
from palmette.predict.answer import SIDE_BY_SIDE, Cell, Question, fastest
from palmette.present.table import Column, Table
from palmette.present.words import wrapped
from palmette.units import plural, rate_text

PROVENANCES = (
    ("calibrated", "measured"),
    ("given", "given by the topology"),
    ("assumed", "assumed, `palmette calibrate` measures them"),
)


def letter(index: int) -> str:
    """a, b, ... z, a1, b1, ...: how an algorithm is named in a table."""
    return ascii_lowercase[index % 26] + (str(index // 26) if index >= 26 else "")


def answer_lines(question: Question, cells: Sequence[Cell], placement: str) -> list[str]:
    """Return a table for each collective, and the provenance of the costs."""
    lines: list[str] = []
    best = {id(cells[index]) for index in fastest(cells)}
    for collective, found in groupby(cells, key=lambda cell: cell.collective):
        lines += [*_head(question, collective, placement), *_table(list(found), best), ""]
    lines += ["*: the fastest. >: what the built-in table takes.", ""]
    return lines + assumption_lines(question.job)


def assumption_lines(job: _core.Job) -> list[str]:
    """Return the costs by provenance: measured, given by the topology, or palmette's assumptions."""
    assumptions = _core.Costs.of(job).assumptions(job)
    lines = []
    for provenance, phrase in PROVENANCES:
        own = [f"{one.what} {_cost_text(one)}" for one in assumptions if one.provenance == provenance]
        if own:
            lines += wrapped(f"{phrase}: {', '.join(own)}")
    return lines


def _cost_text(one: _core.CostAssumption) -> str:
    return _core.format_duration(one.value) if one.unit == "s" else rate_text(one.value)


def _head(question: Question, collective: str, placement: str) -> list[str]:
    job = question.job
    levels = [
        plural(level.count, level.name) for level in reversed(job.levels) if level.count > 1 or level.name == "node"
    ]
    root = f", root {question.root}" if _core.is_rooted(collective) else ""
    text = f"{collective}, {plural(job.size, 'rank')} on {', '.join(levels)}, placed {placement}{root}"
    return wrapped(text, rest="")


def _table(cells: Sequence[Cell], best: set[int]) -> list[str]:
    names = list(dict.fromkeys(cell.algorithm for cell in cells))
    parts = [name for name in cells[0].shares() if any(cell.shares()[name] >= 0.005 for cell in cells)]
    columns: list[Column[Cell]] = [
        Column("size", "size_bytes", lambda cell: cell.size_bytes or None, _core.format_size, once=True),
        Column("algorithm", "", lambda cell: letter(names.index(cell.algorithm)), left=True),
        Column("", "", lambda cell: ("*" if id(cell) in best else " ") + (">" if cell.taken else " "), left=True),
        Column("time", "seconds", show=_core.format_duration),
        Column("x bound", "multiple", show="{:.2f}".format),
        *(
            Column("inside" if part == SIDE_BY_SIDE else part, "", partial(_share, part), "{:.0%}".format)
            for part in parts
        ),
    ]
    ordered = sorted(cells, key=lambda cell: (cell.size_bytes, cell.seconds))
    listed = [f"  {letter(index)}  {name}" for index, name in enumerate(names)]
    return [*listed, "", *Table(columns, ordered).lines(first="  ")]


def _share(part: str, cell: Cell) -> float:
    return cell.shares()[part]
