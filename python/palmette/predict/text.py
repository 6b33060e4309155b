"""Predictions as tables of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from string import ascii_lowercase

import click

from palmette import _core
from palmette.predict.answer import SIDE_BY_SIDE, Cell, Question, fastest
from palmette.units import plural, rate_text, text_width

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
            lines += click.wrap_text(
                f"{phrase}: {', '.join(own)}", width=text_width(), subsequent_indent="  ", preserve_paragraphs=False
            ).splitlines()
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
    return click.wrap_text(text, width=text_width()).splitlines()


def _table(cells: Sequence[Cell], best: set[int]) -> list[str]:
    names = list(dict.fromkeys(cell.algorithm for cell in cells))
    lines = [f"  {letter(index)}  {name}" for index, name in enumerate(names)]
    parts = [name for name in cells[0].shares() if any(cell.shares()[name] >= 0.005 for cell in cells)]
    titles = ["inside" if name == SIDE_BY_SIDE else name for name in parts]
    widths = [max(6, len(title) + 1) for title in titles]
    heading = "".join(title.rjust(width) for title, width in zip(titles, widths, strict=True))
    lines += ["", f"    size    algorithm       time  x bound{heading}"]
    last = -1
    for cell in sorted(cells, key=lambda cell: (cell.size_bytes, cell.seconds)):
        size = "" if cell.size_bytes == last else "-" if cell.size_bytes == 0 else _core.format_size(cell.size_bytes)
        last = cell.size_bytes
        shares = cell.shares()
        mark = ("*" if id(cell) in best else " ") + (">" if cell.taken else " ")
        multiple = f"{cell.multiple:.2f}" if cell.multiple is not None else "-"
        row = "".join(f"{100 * shares[name]:.0f}%".rjust(width) for name, width in zip(parts, widths, strict=True))
        lines.append(
            f"{size:>8}    {letter(names.index(cell.algorithm)):<4}{mark}{_core.format_duration(cell.seconds):>14}"
            f"{multiple:>9}{row}"
        )
    return lines
