"""Square matrices of numbers in a text file: distances between places, or bytes between ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from palmette.files import read_text
from palmette.map.errors import MapError

Matrix = npt.NDArray[np.float64]


def read_matrix(path: str | Path) -> Matrix:
    """Return the p x p matrix of a file. Raises MapError naming the file and the line; see `matrix_of`."""
    return matrix_of(path, read_lines(path))


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a file that should hold a matrix. Raises MapError."""
    try:
        return read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
        raise MapError(f"{path}: can't be read ({reason}); name a file with the rows of a matrix") from None


def matrix_of(path: str | Path, lines: Sequence[str]) -> Matrix:
    """Return the p x p matrix of lines, one row a line, numbers apart by blanks, tabs or commas.

    Empty lines and what follows `#` don't count. A first column that numbers the rows from 0 on may stand before the
    p numbers. Raises MapError naming the file and the line.
    """
    rows: list[tuple[int, list[float]]] = []
    for number, line in enumerate(lines, start=1):
        words = [word for word in re.split(r"[,;\s]+", line.split("#")[0]) if word]
        if words:
            rows.append((number, [_number(word, path, number) for word in words]))
    if not rows:
        raise MapError(f"{path}: holds no numbers; give p rows of p numbers")
    p = len(rows)
    if all(len(row) == p + 1 and row[0] == index for index, (_, row) in enumerate(rows)):
        rows = [(number, row[1:]) for number, row in rows]
    for number, row in rows:
        if len(row) != p:
            raise MapError(
                f"{path}, line {number}: {len(row)} numbers, but there are {p} rows; give {p} rows of {p} numbers"
            )
    return np.array([row for _, row in rows], dtype=np.float64)


def _number(word: str, path: str | Path, line: int) -> float:
    try:
        value = float(word)
    except ValueError:
        raise MapError(f"{path}, line {line}: '{word}' is no number") from None
    if not np.isfinite(value) or value < 0:
        raise MapError(f"{path}, line {line}: {word} is out of range; give finite numbers of 0 and more")
    return value
