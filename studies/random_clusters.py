"""Finds cells where palmette is slower: random clusters, placements, collectives, sizes, against SimGrid's selectors.

    python studies/random_clusters.py --draw 40 --seed 1 --write cells.jsonl --write-results clusters.md
    python studies/random_clusters.py --draw 40 --seed 1 --env PALMETTE_TABLE=other.json   # another table
    python studies/random_clusters.py --parameters servers --cores 8,16,24,32,48,64 --most-ranks 512   # fat nodes

Rows of the table were found on a few machines and a few sizes; this tests the space between them. The same seed draws
the same clusters: switches (even and uneven), nodes, ranks a node, a job on part of it, links and uplink capacities,
placement, and sizes spread evenly on a logarithmic scale. Prints a line for each cell that is slower than the best
rival by more than 5 %, then a table by collective. A rival that ends before the physical bound (some of SimGrid's do
for a few bytes) is left out. Simulations show only what is modelled (docs/method/simulating.md). The exit status is 1
where any cell is slower.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from palmette.bench.side_by_side import geometric_mean
from palmette.bench.text import size_text
from palmette.units import time_text
from palmette_lab.simulate import parameters, simgrid
from palmette_lab.simulate.cluster import from_spec, prepared
from palmette_lab.simulate.compare import Cell, ComparisonRequest, compare
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.job import make_job
from palmette_lab.simulate.kept import SimulationCache
from palmette_lab.simulate.run import SELECTORS

COLLECTIVES = ("gather", "scatter", "bcast", "reduce", "allreduce", "allgather", "alltoall")
CORES = (1, 2, 4, 8, 12, 16, 24, 32)
BLOCKS_OF_ALL = ("allgather", "alltoall")
MOST_BYTES_OF_ALL = 16 << 20
"""Upper bound on the data of all ranks in an allgather or all-to-all: more takes the simulator minutes."""


@dataclass(frozen=True, slots=True)
class RandomCluster:
    """A cluster in the synthetic form, a job on it, and sizes in bytes."""

    spec: str
    placement: str
    ranks: int
    collective: str
    sizes: tuple[int, ...]


def draw(
    seed: int, count: int, collectives: Sequence[str], most_ranks: int, sizes: int, cores_of_node: Sequence[int] = CORES
) -> Iterator[RandomCluster]:
    """Yield `count` clusters with a job each, and of each job all collectives."""
    chance = random.Random(seed)  # noqa: S311
    for _ in range(count):
        nodes = max(1, min(round(2 ** chance.uniform(1, 6.5)), most_ranks // min(cores_of_node)))
        cores = chance.choice([c for c in cores_of_node if c * nodes <= most_ranks] or [min(cores_of_node)])
        leaves = min(chance.choice([1, 2, 2, 3, 4, 6]), nodes)
        link = chance.choice([1.5, 3, 6, 12.5])
        below = sorted((nodes - leaves, *(chance.randint(0, nodes - leaves) for _ in range(leaves - 1))))
        uneven = [1 + high - low for low, high in zip((0, *below), below, strict=False)]
        even = chance.random() < 0.5
        per_leaf = [math.ceil(nodes / leaves)] * leaves if even else uneven
        uplink = max(link, link * max(per_leaf) / chance.choice([1, 2, 4]))
        counts = str(per_leaf[0]) if len(set(per_leaf)) == 1 else "+".join(map(str, per_leaf))
        spec = f"{leaves}leaf@{uplink:g}GB/s:{counts}node@{link:g}GB/s:{cores}core"
        placement = chance.choice(["block", "cyclic", f"random:{chance.randint(1, 99)}"])
        places = sum(per_leaf) * cores
        ranks = places if chance.random() < 0.7 else max(2, chance.randint(places // 2, places))
        for collective in collectives:
            most = 256 << 10 if collective not in BLOCKS_OF_ALL else max(64, MOST_BYTES_OF_ALL // ranks**2)
            chosen = sorted({round(2 ** chance.uniform(0, math.log2(most))) for _ in range(sizes)})
            yield RandomCluster(spec, placement, ranks, collective, tuple(max(size, 4) // 4 * 4 for size in chosen))


def line_of(drawn: RandomCluster, cell: Cell) -> str:
    """A cell in one line."""
    assert cell.palmette_s is not None and cell.best_rival is not None and cell.ratio is not None
    return (
        f"{cell.ratio:.2f} {drawn.collective} {size_text(cell.size_bytes)}, {drawn.spec}, {drawn.ranks} ranks,"
        f" {drawn.placement}: {time_text(cell.palmette_s)} {cell.algorithm},"
        f" {cell.best_rival} {time_text(cell.rivals_s[cell.best_rival])}"
    )


def compared(smpirun: str, drawn: RandomCluster, options: argparse.Namespace) -> Sequence[Cell]:
    """Simulate one job with one collective. A job that can't be placed has no cells."""
    try:
        values = parameters.read(parameters.file_named(options.parameters) if options.parameters else parameters.FILE)
        job = make_job(prepared(from_spec(drawn.spec), values), drawn.placement, drawn.ranks)
        asked = ComparisonRequest(
            [job], [drawn.collective], sorted(set(drawn.sizes)), options.rivals.split(","),
            cpu_limit_s=options.cpu_limit, parallel=options.parallel,
            store=SimulationCache(Path(options.keep)) if options.keep else None,
            environment=dict(one.split("=", 1) for one in options.env),
        )  # fmt: skip
        found = compare(smpirun, asked, values, lambda _: None)
    except SimulateError as error:
        print(f"{drawn.spec}, {drawn.ranks} ranks, {drawn.placement}, {drawn.collective}: {error}", file=sys.stderr)
        return []
    for trouble in found.troubles:
        if trouble.contender == "palmette":
            print(f"{drawn.spec}, {drawn.placement}, {drawn.collective}: palmette {trouble.text}", file=sys.stderr)
    return found.cells


def honest(cell: Cell) -> Cell:
    """Return the cell without rivals that are faster than the physical bound."""
    return replace(
        cell, rivals_s={name: time for name, time in cell.rivals_s.items() if time >= 0.99 * cell.bound.seconds}
    )


def table_of(cells: Sequence[Cell]) -> list[str]:
    """A Markdown table: by collective how many cells, how many of them slower, the worst, and the geometric mean."""
    lines = ["| collective | cells | slower by over 5 % | worst | geometric mean |", "|---|---|---|---|---|"]
    by_collective = {cell.collective: [one for one in cells if one.collective == cell.collective] for cell in cells}
    for name, some in [*by_collective.items(), ("all", list(cells))]:
        ratios = [cell.ratio for cell in some if cell.ratio is not None]
        slower = sum(cell.is_slower for cell in some)
        lines.append(f"| {name} | {len(ratios)} | {slower} | {max(ratios):.2f} | {geometric_mean(ratios):.2f} |")
    return lines


def page_of(
    drawn: Sequence[RandomCluster], cells: Sequence[Cell], slower: Sequence[str], version: str, command: str
) -> str:
    """The results page, for docs/results. `version`: SimGrid's."""
    clusters = list(dict.fromkeys((one.spec, one.ranks, one.placement) for one in drawn))
    return "\n".join(
        [
            "# Clusters drawn at random, simulated", "",
            f"{len(clusters)} clusters with a job each, any sizes between 4 B and 256 KB (less where all have blocks"
            " for all); palmette's time over that of the",
            f"best of SimGrid's selectors. SimGrid {version}; [how it is simulated](../method/simulating.md). Made by",
            "",
            f"    {command}", "",
            *table_of(cells), "",
            "## Slower by more than 5 %", "", *(f"- {line}" for line in slower), "", "## Clusters", "",
            *(f"- `{spec}`, {ranks} ranks, {placement}" for spec, ranks, placement in clusters), "",
        ]
    )  # fmt: skip


def main() -> int:
    """Draw, simulate, report slower cells; status 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, default=10, help="number of clusters (10)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument(
        "--collectives", default=",".join(COLLECTIVES), help="with commas; all that SimGrid's selectors know"
    )
    parser.add_argument("--sizes", type=int, default=8, help="sizes of each collective (8)")
    parser.add_argument("--most-ranks", type=int, default=256, help="places of a cluster at most (256)")
    parser.add_argument("--rivals", default=",".join(SELECTORS), help="selectors or algorithms of SimGrid's")
    parser.add_argument("--cpu-limit", type=int, default=60, help="seconds of CPU for a simulation (60)")
    parser.add_argument("--parallel", type=int, default=1, help="simulations at once (1)")
    parser.add_argument("--parameters", metavar="FILE", help="of the simulator, as those of `palmette-lab simulate`")
    parser.add_argument(
        "--cores", default=",".join(map(str, CORES)), metavar="N,...", help="ranks of a node to draw from (%(default)s)"
    )
    parser.add_argument("--env", action="append", default=[], metavar="K=V", help="a variable of palmette's")
    parser.add_argument("--keep", metavar="FOLDER", help="cache simulations there")
    parser.add_argument("--write", metavar="FILE", help="append a JSON line for each cell")
    parser.add_argument("--write-results", metavar="FILE", help="write what came out as Markdown")
    options = parser.parse_args()
    smpirun = simgrid.find_smpirun()
    cores = [int(word) for word in options.cores.split(",")]
    all_drawn = list(
        draw(options.seed, options.draw, options.collectives.split(","), options.most_ranks, options.sizes, cores)
    )
    cells: list[Cell] = []
    slower: list[str] = []
    with simgrid.ended_with():
        for number, drawn in enumerate(all_drawn):
            print(
                f"\r\x1b[K{number + 1} of {len(all_drawn)}: {drawn.spec}, {drawn.collective}",
                end="",
                file=sys.stderr,
                flush=True,
            )
            for cell in map(honest, compared(smpirun, drawn, options)):
                if cell.ratio is None:
                    continue
                cells.append(cell)
                if options.write:
                    with open(options.write, "a", encoding="utf-8") as stream:
                        stream.write(json.dumps({"spec": drawn.spec, "ranks": drawn.ranks, **cell.to_json()}) + "\n")
                if cell.is_slower:
                    slower.append(line_of(drawn, cell))
                    print(f"\r\x1b[K{slower[-1]}", flush=True)
    print("\r\x1b[K", end="", file=sys.stderr)
    if not cells:
        print("nothing was simulated; see above", file=sys.stderr)
        return 1
    print("\n".join(table_of(cells)))
    if options.write_results:
        command = " ".join(["python", "studies/random_clusters.py", *(word for word in sys.argv[1:])])
        Path(options.write_results).write_text(
            page_of(all_drawn, cells, slower, simgrid.version(smpirun), command), encoding="utf-8"
        )
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
