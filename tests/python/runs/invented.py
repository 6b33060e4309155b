"""Runs of an invented program in an archive, for tests and for the example lines of the guide.

Usage: invented.py ARCHIVE
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from palmette.runs.archive import open_archive
from palmette.runs.entry import Calls, Entry

ROWS = {"MPI_Allreduce": 2.0, "MPI_Bcast": 0.5, "MPI_Alltoall": 1.0, "MPI_Send": 0.3, "MPI_Wait": 0.02}
"""Seconds per rank of an invented program."""
COMPUTING_S = 6.0


def entry(
    number: int, rows: Mapping[str, float] = ROWS, *, ranks: int = 8, computing_s: float = COMPUTING_S,
    placement: str = "a", day: str = "11-01", size_class: int = 10, program: str = "app",
) -> Entry:  # fmt: skip
    calls = {
        (name, f"{name[4:].lower()}.c:7", "main;step", size_class, "node"): Calls(
            set(range(ranks)), 100 * ranks, 102_400 * ranks, seconds * ranks, seconds / 10
        )
        for name, seconds in rows.items()
    }
    return Entry(
        f"run {number}", f"2026-{day}T{number // 60 % 24:02}:{number % 60:02}:00+00:00", program, "b0", "profile",
        ranks, 2, placement, [], "", computing_s + sum(rows.values()), computing_s * ranks, None, "/recorded", {},
        calls, {}, {},
    )  # fmt: skip


def noisy(random: np.random.Generator, spread: float, rows: Mapping[str, float] = ROWS) -> dict[str, float]:
    """Rows around their times."""
    return {name: seconds * random.lognormal(0, spread) for name, seconds in rows.items()}


def filled(path: Path, repeats: int = 1) -> Path:
    """Make an archive: alltoall grows with the ranks, allreduce with their logarithm."""
    with open_archive(path, create=True) as archive:
        for number in range(4 * repeats):
            ranks = 4 << number % 4
            rows = {"MPI_Allreduce": 0.1 * np.log2(ranks), "MPI_Alltoall": 0.02 * ranks}
            archive.add(entry(
                number, rows, ranks=ranks, computing_s=10.0 / ranks, size_class=8 + number % 4,
                day="10-10" if number < 2 * repeats else "11-20",
            ))  # fmt: skip
    return path


if __name__ == "__main__":
    filled(Path(sys.argv[1]), 12)
