"""Overhead of palmette outside of collectives: startup, communicators, datatypes, calls passed through.

    python studies/outside_collectives.py [--pairs 15] [--mpi mpich,openmpi,impi] [--json]

Two ranks on this machine, alternately with and without palmette, default settings. Evaluated are the difference and the
ratio of each pair of runs: medians with 95 % bootstrap intervals over the pairs. `start` is the whole command,
`palmette run mpiexec ...` against `mpiexec ...`; the rest is timed inside of the program, without its launch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from palmette.mpi.install import Installation, MpiNotFoundError, find

SOURCE = Path(__file__).with_suffix(".c")
KINDS = {"start": 0, "communicators": 1000, "duplicates": 1000, "types": 20000, "broadcasts": 20000, "calls": 2000000}
"""The timed operations, and the number of each in one run."""
UNIT = {"start": "ms", "communicators": "us", "duplicates": "us", "types": "us", "broadcasts": "us", "calls": "ns"}
SCALE = {"ms": 1e3, "us": 1.0, "ns": 1e3}
MEANING = {
    "start": "a job's start and end",
    "communicators": "MPI_Comm_dup, one MPI_Allreduce of 4 B, MPI_Comm_free",
    "duplicates": "MPI_Comm_dup, MPI_Comm_free",
    "types": "MPI_Type_vector, MPI_Type_commit, MPI_Type_free",
    "broadcasts": "MPI_Type_contiguous, MPI_Type_commit, MPI_Bcast of ten, MPI_Type_free",
    "calls": "MPI_Allreduce of 4 B on MPI_COMM_SELF, which the MPI keeps",
}
POLITE = {
    "mpich": {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"},
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm"},
    "impi": {"I_MPI_FABRICS": "shm", "FI_PROVIDER": "tcp", "I_MPI_PIN": "0"},
}


@dataclass(frozen=True)
class Row:
    """One comparison: medians alone and with palmette, difference and ratio with 95 % intervals, and all samples."""

    mpi: str
    kind: str
    unit: str
    alone: float
    palmette: float
    more: float
    more_interval: tuple[float, float]
    ratio: float
    ratio_interval: tuple[float, float]
    samples: list[tuple[float, float]]


def compiled(mpi: Installation, folder: Path) -> Path:
    """Compile the program for an MPI."""
    assert mpi.library_dir is not None
    target = folder / f"outside_collectives.{mpi.name}"
    library = "libmpi.so.40" if mpi.name == "openmpi" else "libmpi.so.12"
    compiler = shutil.which("cc") or sys.exit("no C compiler")
    words = [compiler, "-O2", f"-I{mpi.prefix}/include", SOURCE, "-o", target, f"-L{mpi.library_dir}", f"-l:{library}"]
    subprocess.run([*map(str, words)], check=True)
    return target


def run(mpi: Installation, program: Path, kind: str, with_palmette: bool) -> float:
    """Return the time of one operation, in the kind's unit."""
    palmette = [str(Path(sys.executable).with_name("palmette")), "run"] if with_palmette else []
    options = ["--oversubscribe", "--bind-to", "none"] if mpi.name == "openmpi" else []
    if mpi.name == "openmpi" and os.geteuid() == 0:
        options.append("--allow-run-as-root")
    words = [*palmette, str(mpi.mpiexec), *options, "-n", "2", str(program), kind, str(KINDS[kind])]
    environment = mpi.environment({k: v for k, v in os.environ.items() if not k.startswith("PALMETTE_")})
    environment = {**os.environ, **environment, **POLITE[mpi.name]}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.perf_counter()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=True)
    seconds = time.perf_counter() - begin
    return (seconds if kind == "start" else float(done.stdout.split()[0])) * SCALE[UNIT[kind]]


def interval(values: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median, by a bootstrap with a fixed seed."""
    chance = random.Random(1)  # noqa: S311
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[1949]


def compare(mpi: Installation, program: Path, kind: str, pairs: int) -> Row:
    """Run `pairs` pairs, in alternating order, after a warm-up pair."""
    samples: list[tuple[float, float]] = []
    for number in range(pairs + 1):
        first = run(mpi, program, kind, number % 2 == 1)
        second = run(mpi, program, kind, number % 2 == 0)
        if number > 0:
            samples.append((second, first) if number % 2 == 1 else (first, second))
    more = [with_it - alone for alone, with_it in samples]
    ratios = [with_it / alone for alone, with_it in samples]
    alone, palmette = (statistics.median(values) for values in zip(*samples, strict=True))
    middle = statistics.median
    return Row(mpi.name, kind, UNIT[kind], alone, palmette, middle(more), interval(more), middle(ratios),
               interval(ratios), samples)  # fmt: skip


def text(rows: list[Row], pairs: int) -> str:
    """Return the table as Markdown."""
    lines = [
        f"{platform.system()} {platform.release()}, {os.cpu_count()} processors, two ranks, {pairs} pairs a row.",
        "",
        "| MPI | what | alone | with palmette | more (95 %) | ratio (95 %) |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        low, high = row.more_interval
        lines.append(
            f"| {row.mpi} | {MEANING[row.kind]} | {row.alone:.3g} {row.unit} | {row.palmette:.3g} {row.unit} | "
            f"{row.more:.2g} {row.unit} ({low:.2g} to {high:.2g}) | {row.ratio:.2f} ({row.ratio_interval[0]:.2f} to "
            f"{row.ratio_interval[1]:.2f}) |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Compare everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--mpi", default="mpich,openmpi,impi")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--json", action="store_true", help="with all samples")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.mpi.split(","):
            try:
                mpi = find(name)
            except MpiNotFoundError as error:
                print(error, file=sys.stderr)
                continue
            program = compiled(mpi, Path(folder))
            for kind in options.kinds.split(","):
                print(f"{name}: {kind}", file=sys.stderr)
                rows.append(compare(mpi, program, kind, options.pairs))
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else text(rows, options.pairs), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
