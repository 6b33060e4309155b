"""What would palmette take where the built-in table leaves calls to the MPI? Fills in the `mpi_ratio` of those rows.

    .venv/bin/python bench/rows_left_to_mpi.py --write          # some 15 minutes, as root, on a quiet machine
    .venv/bin/python bench/rows_left_to_mpi.py --rows 0,9,13    # these, and only say what comes out

For each such row of src/palmette/select/built_in.json a job is looked for that the row answers for: two ranks of this
machine where it is for one node, else emulated clusters (LABS) with ranks in their order or scattered, and a size in the
middle of the row's. There the candidates that the model finds fastest are measured beside the MPI alone, in turns in one
job; the ratio is that of the medians, palmette's best over the MPI's. Samples are kept in --store. Rows whose reason isn't
a time (ranks that don't know the sizes, operations that keep the order of ranks, nonblocking calls) get none. A ratio
below 1 tells that a row had better go.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from palmette import _core, mpi_install
from palmette.bench.machine import describe_machine
from palmette.bench.places import LabPlace, LocalPlace, Place, free_lab_name
from palmette.lab import Lab
from palmette.tune.decide import ranked, typical_s
from palmette.tune.forecast import forecasts
from palmette.tune.job import How, Question, measure
from palmette.tune.places import PlaceSite
from palmette.tune.plan import cells_of, job_on
from palmette.tune.results import MPI, TABLE
from palmette.tune.store import TuningStore, open_tunings

TABLE_FILE = Path(__file__).resolve().parents[1] / "src" / "palmette" / "select" / "built_in.json"
LABS = (
    "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core",
    "1leaf:8node@100Mbit/s:2core",
    "6leaf@50Mbit/s:2node@100Mbit/s:1core",
    "4leaf@50Mbit/s:3node@100Mbit/s:3core",
)
PLACEMENTS = ("block", "random:1")
MPIS = ("mpich", "openmpi", "impi")
CANDIDATES = 8


@dataclass(frozen=True)
class Try:
    """A job on which a row decides."""

    row: int
    function: str
    size_bytes: int
    mpi: str
    lab: str
    """Empty: this machine."""
    placement: str


def is_timed(row: dict[str, Any]) -> bool:
    """Whether a time is the reason of a row that leaves calls to the MPI."""
    because = ("nonblocking", "keeps the order", "don't know the sizes")
    return row["algorithm"] == "mpi" and not any(word in row["why"] for word in because)


def sizes_of(row: dict[str, Any]) -> list[int]:
    """Sizes of a row, the one in the middle first."""
    low, high = (_core.parse_size(str(row.get(key, default))) for key, default in (("min_bytes", 8), ("max_bytes", 0)))
    low = max(8, -(-low // 8) * 8)
    high = high or low * 16
    middle = max(8, round((low * high) ** 0.5) // 8 * 8)
    return list(dict.fromkeys(size for size in (middle, low, high // 8 * 8) if low <= size <= high))


def found_for(index: int, row: dict[str, Any], jobs: Sequence[tuple[str, str, _core.Job]]) -> Try | None:
    """The first job of `jobs` on which row `index` decides."""
    for lab, placement, job in jobs:
        for mpi in [row["mpi"]] if "mpi" in row else MPIS:
            for size in [0] if row["function"] == "barrier" else sizes_of(row):
                choice = _core.Table.built_in().choose(row["function"], job, 0, size, mpi=mpi)
                if choice.reason.startswith((f"table row {index}:", f"table row {index} ")):
                    return Try(index, row["function"], size, mpi, lab, placement)
    return None


def ratio_of(one: Try, place: Place, seconds: float, store: TuningStore) -> tuple[float, str]:
    """Palmette's best over the MPI alone, and how."""
    site = PlaceSite(place, mpi_install.find(one.mpi), one.placement if one.lab else "block")
    job = job_on(site.topology_path, site.hosts or [])[1]
    (cell,) = cells_of([one.function], [one.size_bytes], 0)
    asked = {each.spec: each.seconds for each in forecasts(job, cell)[:CANDIDATES]}
    measured = measure(site, [Question(cell, asked)], seconds, How(), "rows")
    store.begin(
        datetime.now(timezone.utc).isoformat(timespec="seconds"),
        describe_machine(),
        site.description,
        None,
        {"row": one.row},
    )
    store.add(measured)
    if not measured.results:
        raise SystemExit(f"row {one.row}: {measured.error}")
    (result,) = measured.results
    alone = result.of(MPI)
    ours = [each for each in ranked(result) if each.spec not in (TABLE, MPI)]
    if alone is None or not ours:
        # Given up beside the MPI: what there is of the best one tells at least how much slower it is.
        ours = sorted(
            (each for each in result.candidates if each.time_s and each.spec not in (TABLE, MPI)), key=typical_s
        )
    if alone is None or not ours:
        return 0.0, "nothing was measured"
    ratio = typical_s(ours[0]) / typical_s(alone)
    return ratio, f"{ours[0].spec}, {len(ours[0].time_s)} rounds, {typical_s(alone) * 1e6:.1f} us alone"


def main() -> int:
    """Measure, tell, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help="0,9,13: only these")
    parser.add_argument("--seconds", type=float, default=6.0, help="a row (6)")
    parser.add_argument("--store", type=Path, default=Path("rows_left_to_mpi.sqlite"), help="samples go there")
    parser.add_argument("--write", action="store_true", help="into the table's file")
    options = parser.parse_args()
    text = TABLE_FILE.read_text(encoding="utf-8")
    rows = json.loads(text)["rows"]
    wanted = [int(word) for word in options.rows.split(",")] if options.rows else range(len(rows))
    wanted = [index for index in wanted if is_timed(rows[index])]
    lines = text.split("\n")
    at = [number for number, line in enumerate(lines) if line.lstrip().startswith('{"function"')]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(open_tunings(options.store, create=True))
        places: dict[str, Place] = {"": LocalPlace(2, folder)}
        jobs: list[tuple[str, str, _core.Job]] = [("", "block", job_on(None, ["here", "here"])[1])]
        for spec in LABS:
            lab = stack.enter_context(Lab.up(spec, name=free_lab_name("rows")))
            places[spec] = LabPlace(lab)
            for placement in PLACEMENTS:
                hosts = places[spec].place(placement, None, None)
                jobs.append((spec, placement, job_on(places[spec].topology_path, hosts or [])[1]))
        for index in wanted:
            one = found_for(index, rows[index], jobs)
            if one is None:
                print(f"row {index}: no job here is one of its: {rows[index]}", flush=True)
                continue
            ratio, how = ratio_of(one, places[one.lab], options.seconds, store)
            where = f"{one.lab}, {one.placement}" if one.lab else "2 ranks of this machine"
            print(f"row {index}: {ratio:.2f}  {one.function} {one.size_bytes} {one.mpi}, {where}: {how}", flush=True)
            if options.write and ratio > 0:
                row = {**rows[index], "mpi_ratio": round(ratio, 2)}
                row["why"] = row.pop("why")  # stays the last
                comma = "," if lines[at[index]].rstrip().endswith(",") else ""
                lines[at[index]] = f"  {json.dumps(row, ensure_ascii=False)}{comma}"
    if options.write:
        partial = TABLE_FILE.with_suffix(".partial")
        partial.write_text("\n".join(lines), encoding="utf-8")
        partial.replace(TABLE_FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
