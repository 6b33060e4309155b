"""Call paths as words, for formats that know stacks of names and nothing else."""

from __future__ import annotations

from palmette.record.formats.selection import Selection
from palmette.record.symbols import Place


def words(selection: Selection, path: int) -> list[str]:
    """Return a path's functions, the outermost first; the one that calls MPI with file and line, where they are known,
    for a function often calls MPI on several lines.
    """
    stack = selection.stacks[path] or (Place("unknown"),)
    last = stack[-1]
    return [*(place.function for place in stack[:-1]), f"{last.function} ({last})" if last.line else last.function]
