"""Tables: columns defined once, shown as text of 80 columns, and written as JSON, CSV and HTML."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from operator import attrgetter
from typing import Any, Generic, TypeVar

import click

from palmette.present.words import clipped, wrapped
from palmette.units import text_width

Row = TypeVar("Row")
_STYLES: dict[str, dict[str, Any]] = {
    "good": {"fg": "green"}, "bad": {"fg": "red", "bold": True}, "doubt": {"fg": "yellow"}
}  # fmt: skip
_LEAST_WRAPPED = 20
"""The last column isn't wrapped into fewer characters than these."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column of a table.

    `name`: its heading, with the unit; None: in documents alone. `key`: its name in JSON and CSV, and the attribute of
    a row where `value` isn't given; empty: for people alone. `show`: a value as text; None and "" are shown as
    `absent`. Text columns are `left`; at most `most` characters of a value are shown. Columns of one `group` stand
    together below a common heading. `once`: shown where it differs from the row above. `mark`: good, bad, doubt or
    nothing, for a row's color. `tip`: more about a value, on pages. `note`: what the column means.
    """

    name: str | None
    key: str = ""
    value: Callable[[Row], Any] | None = None
    show: Callable[[Any], str] = str
    left: bool = False
    most: int = 0
    absent: str = "-"
    group: str = ""
    once: bool = False
    mark: Callable[[Row], str] | None = None
    tip: Callable[[Row], str] | None = None
    note: str = ""

    def of(self, row: Row) -> Any:
        """Return a row's value."""
        return self.value(row) if self.value is not None else attrgetter(self.key)(row)

    def text(self, row: Row) -> str:
        """Return what is shown of it."""
        value = self.of(row)
        shown = self.absent if value is None or value == "" else self.show(value)
        return clipped(shown, self.most) if self.most else shown


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Rows and their columns."""

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]

    @property
    def shown(self) -> list[Column[Row]]:
        """The columns for people."""
        return [column for column in self.columns if column.name is not None]

    def _cells(self) -> list[list[str]]:
        cells: list[list[str]] = []
        above = [""] * len(self.shown)
        for row in self.rows:
            texts = [column.text(row) for column in self.shown]
            same = zip(self.shown, texts, above, strict=True)
            cells.append(["" if column.once and text == before else text for column, text, before in same])
            above = texts
        return cells

    def lines(self, *, colored: bool = False, first: str = "") -> list[str]:
        """Return headings and rows; `colored`: with the terminal's colors, which NO_COLOR switches off."""
        columns = self.shown
        head = [column.name or "" for column in columns]
        cells = self._cells()
        left = [at for at, column in enumerate(columns) if column.left]
        marks = [[column.mark(row) if column.mark else "" for column in columns] for row in self.rows]
        heads = [head] if any(head) else []
        groups = [column.group for column in columns]
        return aligned(
            [*heads, *cells], left, first=first, groups=groups if any(groups) else (),
            marks=[*([[]] if heads else []), *marks] if colored and not os.environ.get("NO_COLOR") else (),
        )  # fmt: skip

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as JSON objects."""
        return [{column.key: column.of(row) for column in self.columns if column.key} for row in self.rows]

    def csv(self) -> str:
        """Return the rows with a line of headings; numbers with nine digits, nothing for None."""
        return csv_text([column.key for column in self.columns if column.key], self.records())

    def html(self) -> str:
        """Return a <table> that scrolls sideways where it is too wide."""
        columns = self.shown
        groups = [(name, len(list(found))) for name, found in groupby(column.group for column in columns)]
        above = "".join(f'<th colspan="{span}">{escape(name)}</th>' for name, span in groups)
        head = "".join(
            f"<th{' class=left' if column.left else ''}{f' title={_quoted(column.note)}' if column.note else ''}>"
            f"{escape(column.name or '')}</th>"
            for column in columns
        )
        rows = "".join(
            f"<tr>{''.join(_cell(*one, row) for one in zip(columns, texts, strict=True))}</tr>"
            for row, texts in zip(self.rows, self._cells(), strict=True)
        )
        both = f"<tr>{above}</tr><tr>{head}</tr>" if len(groups) > 1 else f"<tr>{head}</tr>"
        table = f'<table class="plain numbers"><thead>{both}</thead><tbody>{rows}</tbody></table>'
        return f'<div class="scroll">{table}</div>'


def csv_text(keys: Sequence[str], records: Sequence[dict[str, Any]]) -> str:
    """Return a line of headings and one for each record; numbers with nine digits, nothing for None."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(keys)
    for record in records:
        writer.writerow([f"{one:.9g}" if isinstance(one, float) else one for one in map(record.get, keys)])
    return out.getvalue()


def aligned(
    rows: Sequence[Sequence[str]],
    left: Sequence[int] = (0,),
    *,
    first: str = "",
    groups: Sequence[str] = (),
    marks: Sequence[Sequence[str]] = (),
) -> list[str]:
    """Return columns of equal width, right-aligned but for those in `left`; closer together where they are too wide.

    A last column in `left` is wrapped below itself, also behind commas. `first` stands before each line; `groups`:
    headings of consecutive columns, above all; `marks`: of each row and column, colors for the terminal.
    """
    if not rows:
        return []
    count = len(rows[0])
    widths = [max(len(row[column]) for row in rows) for column in range(count)]
    room = text_width() - len(first)
    last = min(widths[-1], _LEAST_WRAPPED) if count - 1 in left else widths[-1]
    gap = "  " if sum(widths[:-1]) + last + 2 * (count - 1) <= room else " "
    spans: list[tuple[str, int]] = []
    for name, found in groupby(range(count), key=lambda at: groups[at] if groups else ""):
        columns = list(found)
        width = sum(widths[at] for at in columns) + len(gap) * (len(columns) - 1)
        widths[columns[-1] if name else columns[0]] += max(0, len(name) - width)
        spans.append((name, max(width, len(name))))
    lines = [first + gap.join(name.rjust(width) for name, width in spans).rstrip()] if groups else []
    before = sum(widths[:-1]) + len(gap) * (count - 1)
    wraps = count - 1 in left and before + widths[-1] > room and room - before >= _LEAST_WRAPPED
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(w) if at in left else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        if marks and marks[number]:
            cells = [click.style(c, **_STYLES[m]) if m else c for c, m in zip(cells, marks[number], strict=True)]
        if not wraps:
            lines.append(first + gap.join(cells).rstrip())
            continue
        start = first + gap.join([*cells[:-1], ""])
        indent = " " * (len(first) + before)
        lines += wrapped(row[-1], start, indent, whole_words=False, after=",") or [start.rstrip()]
    return lines


def _cell(column: Column[Any], text: str, row: Any) -> str:
    mark = column.mark(row) if column.mark else ""
    kinds = " ".join(filter(None, ["" if column.left else "number", mark]))
    more = (f" class={_quoted(kinds)}" if kinds else "") + (f" title={_quoted(column.tip(row))}" if column.tip else "")
    return f"<td{more}>{escape(text)}</td>"


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'
