"""Measures palmette's best alternative for rows of the built-in table that leave calls to the MPI: their `mpi_ratio`.

    .venv/bin/python studies/rows_left_to_mpi.py --write          # some 10 minutes, as root, on a quiet machine
    .venv/bin/python studies/rows_left_to_mpi.py --rows 0,9,13    # these, without writing

For each such row of src/palmette/select/built_in.json, jobs that it matches are searched for: two and four ranks of
this machine for a row on one node, else an emulated cluster (LABS) with ranks in their order or scattered. There
`palmette bench` compares the MPI alone with the table's choice if it left nothing to the MPI, at both ends of the row's
sizes and between. The ratio is the largest one, since that justifies the row. Samples are kept in --store. Rows whose
source is `reason` get none: they aren't based on times. A row whose ratio isn't above 1 should be removed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.tune.forecast import forecasts
from palmette.tune.plan import cells_of, job_on
from palmette_lab.lab import Lab
from palmette_lab.place import LabPlace, free_lab_name

TABLE_FILE = Path(__file__).resolve().parents[1] / "src" / "palmette" / "select" / "built_in.json"
LABS = (
    "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core",
    "1leaf:8node@100Mbit/s:2core",
    "6leaf@50Mbit/s:2node@100Mbit/s:1core",
    "4leaf@50Mbit/s:3node@100Mbit/s:3core",
)
PLACEMENTS = ("block", "random:1")
MPIS = ("mpich", "openmpi", "impi")
LOCAL_RANKS = (2, 4)
CORES = len(os.sched_getaffinity(0))
Jobs = dict[tuple[str, str, int], _core.Job]
"""Jobs by lab, placement and ranks."""


@dataclass(frozen=True)
class Try:
    """A job on which a row decides, and sizes for which it does."""

    row: int
    function: str
    sizes: tuple[int, ...]
    mpi: str
    lab: str
    """Empty: this machine."""
    placement: str
    ranks: int
    blocking: bool


def is_timed(row: dict[str, Any]) -> bool:
    """Whether a time is the reason of a row that leaves calls to the MPI."""
    return row["algorithm"] == "mpi" and row["source"] != "reason"


def sizes_of(row: dict[str, Any]) -> list[int]:
    """The ends of a row's sizes and one between; a barrier has none, and is measured once."""
    if row["function"] == "barrier":
        return [8]
    low, high = (
        _core.parse_size(str(row.get(key, default))) for key, default in (("min_bytes", 8), ("max_bytes", "1M"))
    )
    low = max(8, -(-low // 8) * 8)
    between = round((low * high) ** 0.5)
    return sorted({size // 8 * 8 for size in (low, between, high) if low <= size // 8 * 8 <= high})


def found_for(index: int, row: dict[str, Any], jobs: Jobs) -> list[Try]:
    """Jobs on which row `index` decides: all of this machine, or the first one of a lab."""
    found: list[Try] = []
    for (lab, placement, ranks), job in jobs.items():
        if lab and found:
            break
        for mpi in [row["mpi"]] if "mpi" in row else MPIS:
            decided = tuple(
                size
                for size in sizes_of(row)
                if _core.Table.built_in()
                .choose(
                    row["function"],
                    job,
                    0,
                    0 if row["function"] == "barrier" else size,
                    mpi=mpi,
                    oversubscribed=ranks > CORES,
                    blocking=row.get("blocking", True),
                )
                .reason.startswith((f"table row {index}:", f"table row {index} "))
            )
            if decided:
                blocking = row.get("blocking", True)
                found.append(Try(index, row["function"], decided, mpi, lab, placement, ranks, blocking))
                break
    return found


def palmettes_choice(one: Try, size: int, job: _core.Job, without: _core.Table) -> str:
    """Palmette's choice if no row left anything to the MPI."""
    choice = without.choose(
        one.function, job, 0, size, mpi=one.mpi, oversubscribed=one.ranks > CORES, blocking=one.blocking
    ).algorithm
    if choice is not None:
        return choice
    (cell,) = cells_of([one.function], [size], 0)
    return forecasts(job, cell)[0].spec


def measured(one: Try, size: int, algorithm: str, options: argparse.Namespace, lab_name: str) -> dict[str, Any]:
    """The cell of `palmette bench` for the algorithm against the MPI alone."""
    place = ["--lab", lab_name, "--placement", one.placement] if one.lab else ["-n", str(one.ranks)]
    name = one.function if one.blocking else f"i{one.function}"
    words = [
        str(Path(sys.executable).with_name("palmette-lab")), "bench", name, "--sizes", str(size), "--json",
        "--mpi", one.mpi, "--seconds", str(options.seconds), "--store", str(options.store), *place,
        "--env", f"PALMETTE_FORCE={one.function}={algorithm}", "--min-iterations", "15",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"row {one.row}: {done.stderr}")
    (cell,) = json.loads(done.stdout)["cells"]
    return dict(cell)


def main() -> int:
    """Measure, report, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help="0,9,13: only these")
    parser.add_argument("--seconds", type=float, default=1.0, help="a cell (1)")
    parser.add_argument("--store", type=Path, default=Path("rows_left_to_mpi.sqlite"), help="samples go there")
    parser.add_argument("--write", action="store_true", help="into the table's file")
    options = parser.parse_args()
    text = TABLE_FILE.read_text(encoding="utf-8")
    table = json.loads(text)
    rows = table["rows"]
    wanted = [int(word) for word in options.rows.split(",")] if options.rows else range(len(rows))
    wanted = [index for index in wanted if is_timed(rows[index])]
    lines = text.split("\n")
    at = [number for number, line in enumerate(lines) if line.lstrip().startswith('{"function"')]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bare = folder / "table.json"
        kept = [row for row in rows if row["algorithm"] != "mpi"]
        bare.write_text(json.dumps({**table, "rows": kept}), encoding="utf-8")
        without = _core.Table.from_file(bare)
        jobs: Jobs = {("", "block", ranks): job_on(None, ["here"] * ranks)[1] for ranks in LOCAL_RANKS}
        names: dict[str, str] = {"": ""}
        for number, spec in enumerate(LABS):
            lab = stack.enter_context(Lab.up(spec, name=free_lab_name(f"rows{number}")))
            names[spec] = lab.state.name
            for placement in PLACEMENTS:
                hosts = LabPlace(lab).place(placement, None, None) or []
                jobs[spec, placement, len(hosts)] = job_on(lab.topology_path, hosts)[1]
        for index in wanted:
            tries = found_for(index, rows[index], jobs)
            if not tries:
                print(f"row {index}: no job here is one of its: {rows[index]}", flush=True)
                continue
            worst = 0.0
            for one in tries:
                for size in one.sizes:
                    algorithm = palmettes_choice(one, size, jobs[one.lab, one.placement, one.ranks], without)
                    cell = measured(one, size, algorithm, options, names[one.lab])
                    worst = max(worst, cell["ratio"])
                    where = f"{one.lab}, {one.placement}" if one.lab else f"{one.ranks} ranks of this machine"
                    print(
                        f"row {index}: {cell['ratio']:.2f} ({cell['ratio_low']:.2f} to {cell['ratio_high']:.2f}), "
                        f"{one.function} {size} {one.mpi}, {where}: {cell['algorithm']}, {cell['pairs']} pairs",
                        flush=True,
                    )
            if options.write:
                row = {**rows[index], "mpi_ratio": round(worst, 2)}
                for last in ("why", "source"):
                    row[last] = row.pop(last)
                comma = "," if lines[at[index]].rstrip().endswith(",") else ""
                lines[at[index]] = f"  {json.dumps(row, ensure_ascii=False)}{comma}"
    if options.write:
        partial = TABLE_FILE.with_suffix(".partial")
        partial.write_text("\n".join(lines), encoding="utf-8")
        partial.replace(TABLE_FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
