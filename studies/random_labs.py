"""Finds cells where palmette is slower on emulated clusters: random labs, each against the MPI underneath.

    .venv/bin/python studies/random_labs.py --draw 4 --seed 1                        # some 8 minutes
    .venv/bin/python studies/random_labs.py --draw 8 --mpi mpich,openmpi,impi --write-results labs.md
    .venv/bin/python studies/random_labs.py --lab 6leaf@50Mbit/s:2node@100Mbit/s:1core --collectives bcast,reduce

Rows of the table were measured on a few labs and a few sizes; this tests the space between them, as random_clusters.py
does for fast networks in simulation. The same seed draws the same labs: switches (even and uneven), hosts, ranks a
host, the rate of the uplinks, and sizes spread evenly on a logarithmic scale. Prints a line for each cell whose verdict
is `slower` or whose ratio is over 1.05, then a table by collective. Wants root, and an otherwise idle machine; a single
short cell (--seconds) has little significance. The exit status is 1 where a verdict is `slower`, and 2 where cells are
missing or wrong, which is reported.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palmette.bench.side_by_side import geometric_mean
from palmette.bench.text import size_text
from palmette.units import time_text

COLLECTIVES = "bcast,reduce,allreduce,allgather,gather,scatter,reduce_scatter_block,alltoall,scan"
MOST_RANKS = 18
"""With more ranks on two cores the scheduler is measured."""
BETWEEN = (64, 65536)
NEAR_RATIO = 1.05


@dataclass(frozen=True, slots=True)
class Cell:
    """A collective of a size under an MPI on a lab; ratio: palmette's median over the MPI's own."""

    lab: str
    mpi: str
    collective: str
    size_bytes: int
    alone_s: float
    palmette_s: float
    ratio: float
    verdict: str
    algorithm: str

    @property
    def line(self) -> str:
        """For people."""
        return (
            f"{self.collective} {size_text(self.size_bytes)}, {self.mpi}, {self.lab}: {self.ratio:.2f} {self.verdict}, "
            f"{time_text(self.palmette_s)} by {self.algorithm}, {time_text(self.alone_s)} without"
        )


def draw(seed: int, count: int) -> Iterator[str]:
    """Yield the specifications of `count` labs of 6 to 18 ranks."""
    chance = random.Random(seed)  # noqa: S311 - a draw that can be repeated, no secret
    while count > 0:
        cores, leaves = chance.choice([1, 2, 2, 3]), chance.choice([1, 2, 3, 4, 5])
        hosts = (
            [chance.randint(1, 4) for _ in range(leaves)] if chance.random() < 0.5 else [chance.randint(2, 4)] * leaves
        )
        if leaves == 1:
            hosts = [chance.randint(4, 9)]
        if not 6 <= sum(hosts) * cores <= MOST_RANKS:
            continue
        below = f"{'+'.join(map(str, hosts)) if len(set(hosts)) > 1 else hosts[0]}node@100Mbit/s:{cores}core"
        yield below if leaves == 1 else f"{leaves}leaf@{chance.choice([25, 50, 50, 100, 200])}Mbit/s:{below}"
        count -= 1


def sizes_of(seed: int, count: int) -> list[int]:
    """Return `count` sizes, multiples of 8: one from each of as many ranges of equal width on a logarithmic scale."""
    chance = random.Random(seed)  # noqa: S311
    low, high = (math.log(end) for end in BETWEEN)
    step = (high - low) / count
    return sorted({8 * round(math.exp(low + (i + chance.random()) * step) / 8) for i in range(count)})


def measured(lab: str, sizes: Sequence[int], options: argparse.Namespace) -> tuple[list[Cell], str]:
    """Return the cells of a lab that have a ratio, and a report of wrong or missing cells."""
    with tempfile.TemporaryDirectory(prefix="palmette-labs-") as folder:
        command = [
            str(Path(sys.executable).with_name("palmette-lab")), "bench", options.collectives,
            "--lab", lab, "--mpi", options.mpi,
            "--sizes", ",".join(map(str, sizes)), "--placement", options.placement, "--seconds", str(options.seconds),
            "--store", str(Path(folder) / "runs.sqlite"), "--json",
            *(word for one in options.env for word in ("--env", one)),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return [], done.stderr.strip()
    return taken(lab, document["cells"], len(options.collectives.split(",")) * len(sizes) * len(options.mpi.split(",")))


def taken(lab: str, all_rows: Sequence[dict[str, Any]], expected: int) -> tuple[list[Cell], str]:
    """Return one placement's cells of `palmette bench --json` with a ratio, and what is wrong with the rest."""
    rows = [row for row in all_rows if row["ratio"] and not row["wrong"]]
    cells = [
        Cell(
            lab, row["mpi"], row["collective"], row["size_bytes"],
            row["alone"]["median_s"], row["palmette"]["median_s"],
            row["ratio"], row["verdict"], row["algorithm"],
        )
        for row in rows
    ]  # fmt: skip
    wrong = [f"{row['collective']} of {row['size_bytes']} bytes is wrong" for row in all_rows if row["wrong"]]
    if len(cells) + len(wrong) < expected:
        wrong.append(
            f"{expected - len(cells) - len(wrong)} of {expected} cells weren't measured, or have too few pairs for a"
            " ratio"
        )
    return cells, "; ".join(wrong)


def table_of(cells: Sequence[Cell]) -> list[str]:
    """A Markdown table: by collective how many cells and verdicts, the largest ratio, and the geometric mean."""
    lines = [
        "| collective | cells | faster | same | ambiguous | slower | largest ratio | geometric mean |",
        "|---|---|---|---|---|---|---|---|",
    ]
    by_collective = {cell.collective: [one for one in cells if one.collective == cell.collective] for cell in cells}
    for name, some in [*by_collective.items(), ("all", list(cells))] if cells else []:
        counts = [
            sum(cell.verdict == verdict for cell in some) for verdict in ("faster", "same", "ambiguous", "slower")
        ]
        ratios = [cell.ratio for cell in some]
        lines.append(
            f"| {name} | {len(some)} | {' | '.join(map(str, counts))} | {max(ratios):.2f} |"
            f" {geometric_mean(ratios):.2f} |"
        )
    return lines


def page_of(
    labs: Sequence[str], sizes: Sequence[int], cells: Sequence[Cell], troubles: Sequence[str], command: str
) -> str:
    """The results page, for docs/results."""
    high = sorted((cell for cell in cells if is_high(cell)), key=lambda cell: -cell.ratio)
    return "\n".join(
        [
            "# Labs drawn at random", "",
            f"{len(labs)} emulated clusters, {', '.join(map(size_text, sizes))}; palmette's time over that of the",
            "MPI underneath. [How it is measured](../method/measuring.md). Made by", "", f"    {command}", "",
            *table_of(cells), "", "## Slower, or a ratio over 1.05", "", *(f"- {cell.line}" for cell in high), "",
            *(["## Missing or wrong", "", *(f"- {line}" for line in troubles), ""] if troubles else []),
            "## Labs", "", *(f"- `{lab}`" for lab in labs), "",
        ]
    )  # fmt: skip


def is_high(cell: Cell) -> bool:
    """Whether the cell is listed as slower or nearly so."""
    return cell.verdict == "slower" or cell.ratio > NEAR_RATIO


def positive(text: str) -> int:
    """Return a number of things. Raises argparse.ArgumentTypeError."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 on")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, measure, report slower cells; status 1 where a verdict is `slower`, 2 where cells are missing or wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=positive, default=4, help="number of labs (4)")
    parser.add_argument("--seed", type=int, default=1, help="which ones, and which sizes (1)")
    parser.add_argument("--lab", action="append", default=[], metavar="SPEC", help="this one instead; repeatable")
    parser.add_argument("--collectives", default=COLLECTIVES)
    parser.add_argument("--sizes", type=positive, default=6, help="sizes of each collective (6)")
    parser.add_argument("--placement", default="random:1")
    parser.add_argument("--mpi", default="mpich,openmpi")
    parser.add_argument("--seconds", type=float, default=0.4, help="a cell (0.4)")
    parser.add_argument("--env", action="append", default=[], metavar="K=V", help="a variable of palmette's")
    parser.add_argument("--write", metavar="FILE", help="append a JSON line for each cell")
    parser.add_argument("--write-results", metavar="FILE", help="write what came out as Markdown")
    options = parser.parse_args(arguments)
    labs = options.lab or list(draw(options.seed, options.draw))
    sizes = sizes_of(options.seed, options.sizes)
    cells: list[Cell] = []
    troubles: list[str] = []
    for number, lab in enumerate(labs):
        print(f"{number + 1} of {len(labs)}: {lab}", file=sys.stderr, flush=True)
        found, wrong = measured(lab, sizes, options)
        cells += found
        for cell in filter(is_high, found):
            print(cell.line, flush=True)
        if wrong:
            troubles.append(f"{lab}: {wrong}")
            print(f"random_labs: {troubles[-1]}", file=sys.stderr)
        if options.write:
            with Path(options.write).open("a", encoding="utf-8") as file:
                for cell in found:
                    file.write(json.dumps({name: getattr(cell, name) for name in Cell.__slots__}) + "\n")
    print("\n".join(table_of(cells)))
    if options.write_results:
        words = " ".join(sys.argv[1:] if arguments is None else arguments)
        page = page_of(labs, sizes, cells, troubles, f".venv/bin/python studies/random_labs.py {words}".strip())
        Path(options.write_results).write_text(page, encoding="utf-8")
    return 2 if troubles else 1 if any(cell.verdict == "slower" for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
