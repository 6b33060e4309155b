"""How good the table's choices are: an exhaustive search over all candidates of some cells on a lab, against what the
table chooses.

    bench/choice_quality.py [--cells allreduce:64K,bcast:1K] [--placement random:1] [--mpi mpich] [--budget-min 40] [--json]

For each cell all specifications that serve the job are measured in turns (the program of `palmette tune`, hopeless
ones given up early), then the best five and the present choice once more with fresh samples: the best of many is the
luckiest of many, too. A choice is good when its median is at most 10 % above that of the best. The target is 9 of 10
cells. Takes minutes a cell, and wants a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from palmette import _core, mpi_install
from palmette.bench.places import LabPlace, free_lab_name
from palmette.bench.sets import LAB
from palmette.lab import Lab
from palmette.tune.candidates import candidates
from palmette.tune.decide import ranked, typical_s
from palmette.tune.job import How, Question, Watcher, measure
from palmette.tune.places import PlaceSite
from palmette.tune.plan import job_on, present_choice_on
from palmette.tune.results import MPI, TABLE, Cell, CellResult
from palmette.tune.rows import duration
from palmette.tune.store import TuneJob, open_tunings

CELLS = (
    "gather:64,gather:16K,gather:256K,scatter:1K,scatter:64K,allgather:64,allgather:16K,allgather:64K,"
    "bcast:64,bcast:16K,bcast:256K,reduce:1K,reduce:64K,allreduce:64,allreduce:16K,allreduce:256K,"
    "reduce_scatter_block:256,reduce_scatter_block:16K,alltoall:256,alltoall:16K"
)
GOOD = 1.10
TARGET = 0.9
FINALISTS = 5


class Lines(Watcher):
    """A line for each job, on standard error."""

    def job_ends(self, label: str, job: TuneJob) -> None:
        """Say what was done."""
        print(
            f"{label}: {len(job.results)} cells in {job.seconds:.0f} s {job.error or ''}", file=sys.stderr, flush=True
        )


def cell_of(word: str) -> Cell:
    """Return the cell of `allreduce:64K`."""
    function, _, size = word.partition(":")
    _core.collective_of(function)
    return Cell(function, _core.parse_size(size or "0"))


def quality(result: CellResult, before: str) -> dict[str, object] | None:
    """Return how far the present choice is from the best of a cell; None where one of them wasn't measured."""
    present = result.of(TABLE)
    others = [one for one in ranked(result) if one.spec not in (TABLE, MPI)]
    if present is None or not others:
        return None
    present_s, best_s = typical_s(present), min(typical_s(others[0]), typical_s(present))
    best = others[0].spec if best_s < present_s else before
    return {
        "cell": result.cell.label, "present": before, "present_s": present_s, "best": best, "best_s": best_s,
        "ratio": present_s / best_s, "good": present_s <= GOOD * best_s, "rounds": len(present.time_s),
    }  # fmt: skip


def main() -> int:
    """Search, compare, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default=CELLS)
    parser.add_argument("--placement", default="random:1")
    parser.add_argument("--mpi", default="mpich")
    parser.add_argument("--lab", default=LAB)
    parser.add_argument("--budget-min", type=float, default=40.0, help="minutes for all cells")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--store", type=Path, default=Path("choice_quality.sqlite"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cells = [cell_of(word) for word in options.cells.split(",")]
    with Lab.up(options.lab, name=free_lab_name("choice")) as lab, open_tunings(options.store, create=True) as store:
        site = PlaceSite(LabPlace(lab), mpi_install.find(options.mpi), options.placement)
        _, job = job_on(site.topology_path, site.hosts or [])
        table = _core.Table.from_file(options.table) if options.table else _core.Table.built_in()
        before = {cell: present_choice_on(table, job, cell, site.mpi, crowded=False) for cell in cells}
        store.begin("choice quality", {}, site.description, None, {"cells": options.cells})
        share_s = options.budget_min * 60 / len(cells)
        rows, searched = [], 0
        for cell in cells:
            specs = [
                spec for spec in candidates(job, cell.function, cell.size_bytes, cell.root) if spec != before[cell]
            ]
            searched += len(specs)
            how = How(options.table)
            # A cell takes 200 candidates at most.
            parts = [specs[i : i + 190] for i in range(0, len(specs), 190)]
            best: list[tuple[float, str]] = []
            for part in parts:
                found = measure(
                    site, [Question(cell, dict.fromkeys(part))], 0.75 * share_s / len(parts), how, "search", Lines()
                )
                store.add(found)
                for result in found.results:
                    best += [(typical_s(one), one.spec) for one in ranked(result) if one.spec not in (TABLE, MPI)]
            finalists = [spec for _, spec in sorted(best)[:FINALISTS]]
            again = measure(site, [Question(cell, dict.fromkeys(finalists))], 0.25 * share_s, how, "confirm", Lines())
            store.add(again)
            rows += [row for result in again.results if (row := quality(result, before[cell])) is not None]
    good = sum(bool(row["good"]) for row in rows)
    if options.json:
        print(json.dumps({"cells": rows, "good": good, "searched": searched, "target": TARGET}, indent=2))
    else:
        for row in rows:
            mark = "good" if row["good"] else "BAD "
            print(
                f"{mark} {row['cell']!s:26} {duration(float(str(row['present_s']))):>8} {row['present']}"
                f" | best {duration(float(str(row['best_s']))):>8} {row['best']} ({float(str(row['ratio'])):.2f})"
            )
        print(f"{good} of {len(rows)} choices within 10 % of the best of {searched} candidates (target {TARGET:.0%})")
    return 0 if rows and good >= TARGET * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
