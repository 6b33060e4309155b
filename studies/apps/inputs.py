"""Inputs of programs that are too long to keep: reads of a random genome, settings of HPCC, a topology for GROMACS.

Usage: inputs.py FOLDER [RANKS]
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

BASES = "ACGT"


def reads(genome_length: int, count: int, length: int) -> str:
    """Return reads of a random genome."""
    draw = random.Random(11)  # noqa: S311 - reproducible, not secret
    genome = "".join(draw.choice(BASES) for _ in range(genome_length))
    lines = []
    for number in range(count):
        start = draw.randrange(genome_length - length)
        lines.append(f">r{number}\n{genome[start : start + length]}")
    return "\n".join(lines) + "\n"


def hpcc(size: int, rows: int, columns: int) -> str:
    """Return hpccinf.txt for a grid of processes."""
    values = [
        ("HPL.out", "file"), ("8", "device"), ("1", "sizes"), (str(size), "Ns"), ("1", "blocks"), ("64", "NBs"),
        ("0", "mapping"), ("1", "grids"), (str(rows), "Ps"), (str(columns), "Qs"), ("16.0", "threshold"),
        ("1", "panel facts"), ("2", "PFACTs"), ("1", "stopping criteria"), ("4", "NBMINs"), ("1", "panels"),
        ("2", "NDIVs"), ("1", "recursive facts"), ("1", "RFACTs"), ("1", "broadcasts"), ("1", "BCASTs"),
        ("1", "lookaheads"), ("1", "DEPTHs"), ("2", "swap"), ("64", "swapping threshold"), ("0", "L1"), ("0", "U"),
        ("1", "equilibration"), ("8", "alignment"), ("0", "sizes of PTRANS"), ("", "values"), ("0", "blocks of PTRANS"),
        ("", "values"),
    ]  # fmt: skip
    return "two lines\nof a title\n" + "\n".join(f"{value}  {name}" for value, name in values) + "\n"


def main(folder: Path, ranks: int = 2) -> None:
    """Write all inputs, for so many ranks: a square or twice a square of them."""
    rows = int(ranks**0.5)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reads.fa").write_text(reads(20_000, 6_000, 60), encoding="ascii")
    (folder / "hpccinf.txt").write_text(hpcc(600, rows, ranks // rows), encoding="ascii")
    (folder / "water.top").write_text(
        '#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spce.itp"\n[ system ]\nwater\n[ molecules ]\n',
        encoding="ascii",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
