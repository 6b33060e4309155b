"""Gather and scatter on the gather paper's test bed, simulated: many random placements, uplinks at full, half, quarter share.

    python bench/simulated_placements.py --placements 30 --keep simulations --write docs/results/placements.md

As in Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010, section 6: 296 ranks, quiet and with the other half of the
places in an all-to-all. For each cell the gain over the best rival is told, 1 - palmette / rival: its median and best over the
placements, and in how many palmette is slower by more than 5 %. The exit status is 1 where it is in any.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from palmette.bench.text import size_text
from palmette.bench.traffic import Traffic
from palmette.simulate import parameters, simgrid
from palmette.simulate.cluster import from_stored, prepared
from palmette.simulate.compare import Asked, Cell, compare
from palmette.simulate.errors import SimulateError
from palmette.simulate.job import background_of, make_job
from palmette.simulate.kept import Kept

SHARES = (1.0, 0.5, 0.25)
COLLECTIVES = ("gather", "scatter")


def cells_of(share: float, traffic: str, options: argparse.Namespace, sizes: Sequence[int]) -> list[Cell]:
    """Simulate one share of the uplinks."""
    values = parameters.read()
    bed = prepared(from_stored("gather-paper"), values, share)
    load = background_of(bed, Traffic.parse(traffic)) if traffic else None
    jobs = [make_job(bed, f"random:{seed}", None, load) for seed in range(1, options.placements + 1)]
    store = Kept(Path(options.keep)) if options.keep else None
    asked = Asked(jobs, COLLECTIVES, sizes, options.rivals.split(","), parallel=options.parallel, store=store)

    def done(what: str) -> None:
        print(f"\r\x1b[K{traffic or 'quiet'}, share {share:g}: {what}", end="", file=sys.stderr, flush=True)

    found = compare(simgrid.find_smpirun(), asked, values, done)
    for trouble in found.troubles:
        print(f"\n{trouble.contender} {trouble.collective}, {trouble.placement}: {trouble.text}", file=sys.stderr)
    return found.cells


def page(found: dict[tuple[str, float], list[Cell]], options: argparse.Namespace) -> Iterator[str]:
    """A Markdown table for each collective."""
    yield from (f"# Gather and scatter on {options.placements} random placements, simulated", "")
    yield "The gather paper's test bed, 296 ranks; rivals: SimGrid's " + " and ".join(options.rivals.split(",")) + "."
    yield "Gain: 1 - palmette / best rival, median over the placements (best one; slower by more than 5 % in so many)."
    yield from (
        "Made by",
        "",
        f"    python bench/simulated_placements.py --placements {options.placements} --write FILE",
    )
    for collective in COLLECTIVES:
        yield from ("", f"## {collective}", "", "| size | " + " | ".join(map(_column, found)) + " |")
        yield "|---" * (len(found) + 1) + "|"
        sizes = sorted({cell.size_bytes for cells in found.values() for cell in cells})
        for size in sizes:
            texts = [_text([cell for cell in cells if (cell.collective, cell.size_bytes) == (collective, size)])
                     for cells in found.values()]  # fmt: skip
            yield f"| {size_text(size)} | " + " | ".join(texts) + " |"


def _column(key: tuple[str, float]) -> str:
    return f"{key[0] or 'quiet'}, share {key[1]:g}"


def _text(cells: Sequence[Cell]) -> str:
    gains = [1 - cell.ratio for cell in cells if cell.ratio is not None]
    slower = sum(cell.is_slower for cell in cells)
    return f"{100 * statistics.median(gains):.0f} % ({100 * max(gains):.0f} %; {slower})" if gains else "-"


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--placements", type=int, default=30)
    parser.add_argument("--sizes", default="64,1024,8192", help="bytes, with commas")
    parser.add_argument("--rivals", default="mpich,ompi")
    parser.add_argument("--traffic", default="alltoall:half:16K", help="empty: quiet only")
    parser.add_argument("--keep", help="folder for simulations done before")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--write", help="Markdown page; default: print it")
    options = parser.parse_args()
    try:
        sizes = [int(size) for size in options.sizes.split(",")]
        kinds = ["", options.traffic] if options.traffic else [""]
        found = {(kind, share): cells_of(share, kind, options, sizes) for kind in kinds for share in SHARES}
    except (SimulateError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    text = "\n".join(page(found, options)) + "\n"
    if options.write:
        Path(options.write).write_text(text, encoding="utf-8")
    else:
        print(text)
    return 1 if any(cell.is_slower for cells in found.values() for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
