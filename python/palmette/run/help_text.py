"""Parser of launchers' help texts: which options take values, and how many.

A placeholder shows that an option takes a value (`-n {value}`, `--host <arg0>`, `--nodes=N`). A missing one shows
nothing: hydra's help leaves most of them out, Open MPI's and srun's a few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from palmette.mpi.launch import LauncherKind

_NAME = r"-{1,2}[A-Za-z][\w\-]*"
# `    -n/-np {value}   number of processes`, `    -s <spec>   redirect stdin`
_HYDRA = re.compile(rf"^\s+(?P<names>{_NAME}(?:/{_NAME})*)(?P<values>(?: (?:\{{[^}}]*\}}|<[^>]*>))+)(?:\s{{2,}}|$)")
# `-c|-np|--np <arg0>       Number of processes`, `   -gmca|--gmca <arg0> <arg1>`
_PLAIN = re.compile(rf"^\s*(?P<names>{_NAME}(?:\|{_NAME})*)(?P<values>(?: <[^>]*>)+)(?:\s{{2,}}|\s*$)")
# The left column of PRRTE's tables: `"-c" | "--np <num>"`, `"-N" | "--npernode <num>"`
_CELL = re.compile(rf'"(?P<name>{_NAME})(?P<values>(?:\s+[^"]+)?)"')
# `  -n, --ntasks=ntasks   number of tasks`, `      --immediate[=secs]`, `  -B  --extra-node-info=S[:C]`
_SRUN = re.compile(r"^\s+(?:-(?P<letter>\w),?)?\s*(?:--(?P<name>[a-z][\w\-]*))?=\S")


def values_in_help(kind: LauncherKind, text: str) -> dict[str, int]:
    """Return the options, without dashes, for which `text` shows how many values follow."""
    if kind in ("srun", "pals"):
        return dict.fromkeys((name for line in text.splitlines() for name in _of_srun(line)), 1)
    if kind == "prrte":
        return {**dict(_of_lines(_PLAIN, "|", text)), **dict(_of_tables(text))}
    return dict(_of_lines(_HYDRA, "/", text))


def _of_lines(pattern: re.Pattern[str], between: str, text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        match = pattern.match(line)
        if match is None:
            continue
        count = len(re.findall(r"\{[^}]*\}|<[^>]*>", match["values"]))
        for name in match["names"].split(between):
            yield name.lstrip("-"), count


def _of_srun(line: str) -> Iterator[str]:
    match = _SRUN.match(line)
    if match is not None:
        yield from filter(None, (match["letter"], match["name"]))


def _of_tables(text: str) -> Iterator[tuple[str, int]]:
    for cell in _left_cells(text):
        found = [(match["name"].lstrip("-"), len(match["values"].split())) for match in _CELL.finditer(cell)]
        # The value follows the last of several names: `"-N" | "--npernode <num>"`.
        count = max((values for _, values in found), default=0)
        if count and "help" not in dict(found):
            for name, _ in found:
                yield name, count


def _left_cells(text: str) -> Iterator[str]:
    """Yield the text of each row's left column, joined from its lines."""
    edge = 0
    pieces: list[str] = []
    for line in text.splitlines():
        if line.startswith(("+-", "|=")):
            if pieces:
                yield _joined(pieces)
            pieces = []
            edge = line.find("+", 1) if line.startswith("+-") else edge
        elif line.startswith("|") and edge > 0:
            # A name too long for the column pushes its edge to the right.
            end = line.find("|", edge)
            pieces.append(line[1:end].strip())
    if pieces:
        yield _joined(pieces)


def _joined(pieces: list[str]) -> str:
    result = ""
    for piece in filter(None, pieces):
        result += piece if result.endswith("-") or not result else f" {piece}"
    return result
