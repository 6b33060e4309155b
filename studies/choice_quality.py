"""Quality of the decision table's choices: exhaustive searches on randomly drawn cells of a lab, against the table.

    .venv/bin/python studies/choice_quality.py --store quality.sqlite              # 20 cells in 20 minutes at most
    .venv/bin/python studies/choice_quality.py --draw 5 --budget-min 5 --seed 7    # other cells
    .venv/bin/python studies/choice_quality.py --sizes 64-256K                     # any sizes between, not five
    .venv/bin/python studies/choice_quality.py --cells allreduce:64K,bcast:1K      # these, at every placement and MPI
    .venv/bin/python studies/choice_quality.py --traffic alltoall:half:64K         # under background traffic

Cells are drawn from collective x size x placement x MPI; the same seed draws the same ones. In each, all specifications
that serve the job are measured in turns in one job, the present choice and the MPI alone among them (the program of
`palmette tune`, slow ones dropped early; fastest by the model first, as many as the cell's share of the time allows,
and the output says how many that were). Then the best five and the present choice are measured once more with fresh
samples in the same rounds, against selection bias. A choice is good when its median is at most 10 % above that of the
best. The target is 9 of 10 cells. Cells in the store aren't measured again, so that an interrupted run can be resumed.
Wants an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from itertools import product
from pathlib import Path

from palmette import _core
from palmette.bench.loads import with_loads
from palmette.bench.results import LOADED
from palmette.measure.errors import BenchError
from palmette.measure.machine import describe_machine
from palmette.mpi import install as mpi_install
from palmette.tune.candidates import candidates
from palmette.tune.decide import ranked, typical_s
from palmette.tune.errors import TuneError
from palmette.tune.forecast import forecasts
from palmette.tune.job import Question, RoundOptions, Watcher, measure
from palmette.tune.places import PlaceSite
from palmette.tune.plan import cells_of, expected_s, job_on, present_choice_on
from palmette.tune.results import MPI, TABLE, Cell, CellResult
from palmette.tune.store import TuneJob, TuningStore, open_tunings
from palmette.units import time_text
from palmette_lab.lab import Lab, LabError
from palmette_lab.place import LabPlace, free_lab_name
from palmette_lab.sets import LAB
from palmette_lab.traffic import Traffic, background

FUNCTIONS = "gather,scatter,allgather,bcast,reduce,allreduce,reduce_scatter_block,alltoall,barrier,scan,exscan"
SIZES = "64,1K,16K,64K,256K"
DRAWN_SIZES = 40
"""Number of sizes drawn from a range."""
SEARCH, CONFIRM = "search quality", "confirm quality"
SEARCH_SHARE = 0.7
START_S = 3.0
"""Startup time of a job."""
AGREE_S = 5e-3
"""Overhead per call of agreeing on a common start, oversubscribed."""
WATCH_S = 1.0
"""Duration for which traffic is measured alone, before anything is measured under it."""
GOOD_RATIO = 1.10
TARGET = 0.9
FINALISTS = 5
MAX_CANDIDATES = 190
"""A cell takes 200 candidates at most."""


@dataclass(frozen=True)
class CellSample:
    """A cell under an MPI and a placement."""

    mpi: str
    placement: str
    cell: Cell

    @property
    def label(self) -> str:
        """A few words."""
        return f"{self.cell.label} {self.mpi} {self.placement}"


@dataclass(frozen=True)
class Quality:
    """Distance of the present choice from the best of a cell; seconds. `measured` of `candidates` specifications.

    `bound_s`: the physical limit, None where there is none.
    """

    mpi: str
    placement: str
    cell: str
    present: str
    present_s: float
    best: str
    best_s: float
    rounds: int
    measured: int
    candidates: int
    bound_s: float | None

    @property
    def ratio(self) -> float:
        """Time of the choice over that of the best."""
        return self.present_s / self.best_s

    @property
    def good(self) -> bool:
        """Whether the choice is within 10 % of the best."""
        return self.ratio <= GOOD_RATIO

    @property
    def multiple(self) -> float | None:
        """Time of the choice as a multiple of the physical bound."""
        return self.present_s / self.bound_s if self.bound_s else None


class Lines(Watcher):
    """A line for each job, on standard error."""

    def job_ends(self, label: str, job: TuneJob) -> None:
        """Say what was done."""
        done = f"{', '.join(result.cell.label for result in job.results)} in {job.seconds:.0f} s"
        print(f"{label}: {done}{', ' + job.error if job.error else ''}", file=sys.stderr, flush=True)


def drawn(options: argparse.Namespace) -> list[CellSample]:
    """Return the cells to evaluate: those that are named, or a random draw, in the order of MPIs and placements."""
    loaded = LOADED if options.traffic else ""
    places = [(mpi, where + loaded) for mpi, where in product(options.mpi.split(","), options.placement.split(","))]
    if options.cells:
        cells = [cell for word in options.cells.split(",") for cell in _named(word)]
        return [CellSample(*place, cell) for place in places for cell in cells]
    draw = random.Random(options.seed)  # noqa: S311 - a draw that can be repeated, no secret
    cells = cells_of(options.collectives.split(","), sizes_of(options.sizes, draw), 0)
    everything = [CellSample(*place, cell) for place in places for cell in cells]
    some = draw.sample(range(len(everything)), min(options.draw, len(everything)))
    return [everything[i] for i in sorted(some)]


def sizes_of(text: str, draw: random.Random) -> list[int]:
    """Return the sizes of a list, or, for LOW-HIGH, log-uniform ones between them, multiples of 8."""
    low, dash, high = text.partition("-")
    if not dash:
        return [_core.parse_size(word) for word in text.split(",")]
    ends = [math.log(max(8, _core.parse_size(end))) for end in (low, high)]
    return sorted({8 * max(1, round(math.exp(draw.uniform(*ends)) / 8)) for _ in range(DRAWN_SIZES)})


def _named(word: str) -> list[Cell]:
    function, _, size = word.partition(":")
    return cells_of([function], [_core.parse_size(size or "0")], 0)


def quality(
    result: CellResult, drawn_cell: CellSample, before: str, measured: int, total: int, bound_s: float | None = None
) -> Quality | None:
    """Return how far the present choice is from the best of a cell; None where one of them wasn't measured."""
    present = result.of(TABLE)
    others = [one for one in ranked(result) if one.spec not in (TABLE, MPI)]
    if present is None or not (others or measured):
        return None
    # Where none is left to confirm, the search dropped all of them against the present choice.
    present_s, best_s, best = typical_s(present), typical_s(present), before
    if others and typical_s(others[0]) < present_s:
        best_s, best = typical_s(others[0]), others[0].spec
    return Quality(
        drawn_cell.mpi, drawn_cell.placement, result.cell.label, before, present_s, best, best_s, len(present.time_s),
        measured, total, bound_s,
    )  # fmt: skip


def searched(site: PlaceSite, cell: Cell, before: str, seconds: float, how: RoundOptions) -> list[TuneJob]:
    """Measure all candidates of a cell, as many as `seconds` allow, those first that the model finds fastest."""
    _, job = job_on(site.topology_path, site.hosts or [])
    found = [one for one in forecasts(job, cell) if one.spec != before]
    while (
        len(found) > FINALISTS
        and expected_s(Question(cell, {one.spec: one.seconds for one in found}), AGREE_S) > seconds
    ):
        found.pop()
    parts = [found[i : i + MAX_CANDIDATES] for i in range(0, len(found), MAX_CANDIDATES)]
    return [
        measure(
            site, [Question(cell, {one.spec: one.seconds for one in part})], seconds / len(parts), how, SEARCH, Lines()
        )
        for part in parts
    ]  # fmt: skip


class LoadedLab(LabPlace):
    """A lab with background traffic: its topology holds the traffic's load of each link."""

    def __init__(self, lab: Lab, topology_path: Path) -> None:
        super().__init__(lab)
        self._loaded = topology_path

    @property
    def topology_path(self) -> Path:
        """File of the topology with loads."""
        return self._loaded


@contextmanager
def place_of(lab: Lab, traffic: str | None) -> Iterator[LabPlace]:
    """Return the lab, quiet or with traffic until the context ends; its topology has the load of the traffic alone."""
    if traffic is None:
        yield LabPlace(lab)
        return
    with background(lab, Traffic.parse(traffic)) as running, tempfile.TemporaryDirectory() as folder:
        before = running.snapshot()
        time.sleep(WATCH_S)
        loads = running.load(before, running.snapshot())
        path = Path(folder) / "loaded.json"
        topology = json.loads(lab.topology_path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(with_loads(topology, loads)), encoding="utf-8")
        yield LoadedLab(lab, path)


def evaluate(one: CellSample, place: LabPlace, store: TuningStore, seconds: float, table: Path | None) -> None:
    """Search a cell and confirm the best; both are stored."""
    site = PlaceSite(place, mpi_install.find(one.mpi), one.placement.removesuffix(LOADED))
    site.placement = one.placement
    how = RoundOptions(table)
    before = chosen_before(one, site.topology_path, site.hosts or [], table)
    topology = json.loads(site.topology_path.read_text(encoding="utf-8")) if site.topology_path else None
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    store.begin(now, describe_machine(), site.description, topology, {"quality": one.label})
    left = max(seconds - 2 * START_S, 1.0)
    best: list[tuple[float, str]] = []
    for found in searched(site, one.cell, before, SEARCH_SHARE * left, how):
        store.add(found)
        for result in found.results:
            best += [(typical_s(each), each.spec) for each in ranked(result) if each.spec not in (TABLE, MPI)]
    finalists = [spec for _, spec in sorted(best)[:FINALISTS]]
    question = Question(one.cell, dict.fromkeys(finalists))
    store.add(measure(site, [question], (1 - SEARCH_SHARE) * left, how, CONFIRM, Lines()))


def chosen_before(one: CellSample, topology: Path | None, hosts: Sequence[str], table: Path | None) -> str:
    """Return the table's choice for a cell."""
    rules = _core.Table.from_file(table) if table else _core.Table.built_in()
    return present_choice_on(rules, job_on(topology, hosts)[1], one.cell, one.mpi, oversubscribed=False)


def rows_of(
    wanted: Sequence[CellSample], store: TuningStore, table: Path | None, topology: Path | None
) -> list[Quality]:
    """Return what the store holds of the wanted cells."""
    counts: dict[CellSample, int] = {}
    for job in store.jobs(SEARCH):
        for result in job.results:
            key = CellSample(job.mpi, job.placement, result.cell)
            counts[key] = counts.get(key, 0) + sum(bool(each.time_s) for each in result.candidates) - 2
    rows: dict[CellSample, Quality] = {}
    for job in store.jobs(CONFIRM):
        for result in job.results:
            one = CellSample(job.mpi, job.placement, result.cell)
            if one not in wanted:
                continue
            before = chosen_before(one, topology, job.hosts, table)
            made = job_on(topology, job.hosts)[1]
            cell = one.cell
            total = len(candidates(made, cell.function, cell.size_bytes, cell.root))
            collective = _core.collective_of(cell.function)
            limit = _core.bound(made, collective, cell.size_bytes, cell.root).seconds or None
            row = quality(result, one, before, counts.get(one, 0), total, limit)
            if row is not None:
                rows[one] = row
    return [rows[one] for one in wanted if one in rows]


def lines_of(rows: Sequence[Quality], wanted: int) -> list[str]:
    """Return a row a cell, and the verdict."""
    lines = []
    for row in rows:
        times = f"  {row.multiple:.2f} x bound" if row.multiple else ""
        lines.append(
            f"{'good' if row.good else 'BAD '} {row.cell} {row.mpi} {row.placement}: {row.ratio:.2f} of the best{times}"
        )
        lines.append(f"     {time_text(row.present_s):>8} {row.present}, chosen")
        lines.append(
            f"     {time_text(row.best_s):>8} {row.best}, best of {row.measured} of {row.candidates} candidates"
        )
    good = sum(row.good for row in rows)
    lines.append(f"{good} of {len(rows)} cells within 10 % of the best (target {TARGET:.0%})")
    if len(rows) < wanted:
        lines.append(
            f"{wanted - len(rows)} more cells are not measured yet: run it again with the same --store and --seed"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, compare, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", help="allreduce:64K,bcast:1K instead of a draw")
    parser.add_argument("--draw", type=int, default=20, help="cells (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--collectives", default=FUNCTIONS)
    parser.add_argument("--sizes", default=SIZES, help=f"a list ({SIZES}), or LOW-HIGH: any between")
    parser.add_argument("--placement", default="block,cyclic,random:1")
    parser.add_argument("--mpi", default="mpich")
    parser.add_argument("--lab", default=LAB)
    parser.add_argument("--traffic", help="as of palmette bench, such as alltoall:half:64K")
    parser.add_argument("--budget-min", type=float, default=20.0, help="minutes for all cells (20)")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--store", type=Path, default=Path("choice_quality.sqlite"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    ends = time.monotonic() + 60 * options.budget_min
    try:
        wanted = drawn(options)
        with (
            Lab.up(options.lab, name=free_lab_name("choice")) as lab,
            open_tunings(options.store, create=True) as store,
            place_of(lab, options.traffic) as place,
        ):
            there = {
                CellSample(job.mpi, job.placement, result.cell) for job in store.jobs(CONFIRM) for result in job.results
            }
            left = [one for one in wanted if one not in there]
            for number, one in enumerate(left):
                seconds = (ends - time.monotonic()) / (len(left) - number)
                if seconds < 2 * START_S:
                    break
                evaluate(one, place, store, seconds, options.table)
            rows = rows_of(wanted, store, options.table, place.topology_path)
    except (BenchError, TuneError, LabError, mpi_install.MpiNotFoundError, _core.Error) as error:
        print(f"choice_quality: {error}", file=sys.stderr)
        return 2
    good = sum(row.good for row in rows)
    if options.json:
        cells = [asdict(row) | {"ratio": row.ratio, "good": row.good, "multiple": row.multiple} for row in rows]
        document = {"cells": cells, "good": good, "of": len(rows), "drawn": len(wanted), "target": TARGET}
        print(json.dumps(document, indent=2))
    else:
        print("\n".join(lines_of(rows, len(wanted))))
    return 0 if rows and good >= TARGET * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
