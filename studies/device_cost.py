"""What it costs calls on host memory that a GPU's driver may be there (device_cost.c), under each MPI.

python studies/device_cost.py OUT.json [--turns 31] [--jobs 3]

One process calls MPI_Allreduce of 8 bytes on MPI_COMM_SELF, which palmette passes on, and PMPI_Allreduce by turns, in
four surroundings: without palmette; with it; with a driver's library loaded that answers at once (device_stub.c), so
that palmette's part is seen; and with a context on the test driver, which is asked nothing about known pages then.
Prints medians of the differences in ns and their 95 % intervals, over all jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from outside_collectives import interval

from palmette.mpi.install import NAMES, Installation, find

ROOT = Path(__file__).resolve().parents[1]
DRIVER = ROOT / "build" / "release" / "tests" / "fakes" / "libcuda.so.1"
SURROUNDINGS = ("no palmette", "no driver", "driver", "driver and context")
LIBRARY = {"mpich": "libmpi.so.12", "impi": "libmpi.so.12", "openmpi": "libmpi.so.40"}


def measure(mpi: Installation, program: Path, stub: Path, surroundings: str, turns: int) -> list[float]:
    """Return the differences of one job, in ns."""
    driver = {"driver": ["--driver", stub], "driver and context": ["--driver", DRIVER, "--context"]}
    abi = "ompi" if mpi.name == "openmpi" else "mpich"
    preload = "" if surroundings == "no palmette" else str(ROOT / "python/palmette/lib" / f"libpalmette_{abi}.so")
    environment = {**os.environ, **mpi.environment(), "FI_PROVIDER": "tcp", "I_MPI_FABRICS": "shm", "I_MPI_PIN": "0",
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # fmt: skip
    words = [mpi.mpiexec, "-n", "1", "env", f"LD_PRELOAD={preload}", program, *driver.get(surroundings, []), str(turns)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return [float(word) for word in done.stdout.split()]


def main() -> None:
    """Measure all, write the samples, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.json")
    parser.add_argument("--turns", type=int, default=31)
    parser.add_argument("--jobs", type=int, default=3)
    arguments = parser.parse_args()
    samples: dict[str, dict[str, list[list[float]]]] = {}
    print("| MPI | " + " | ".join(SURROUNDINGS) + " |\n|---|" + "---:|" * len(SURROUNDINGS))
    with tempfile.TemporaryDirectory() as folder:
        stub = Path(folder) / "libcuda.so.1"
        words = ["cc", "-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", ROOT / "studies/device_stub.c"]
        subprocess.run([*words, "-o", stub], check=True)
        for name in NAMES:
            mpi = find(name)
            program = Path(folder) / f"device_cost.{name}"
            words = ["cc", "-O2", f"-I{mpi.prefix}/include", ROOT / "studies/device_cost.c", "-o", program]
            subprocess.run([*words, f"-L{mpi.library_dir}", f"-l:{LIBRARY[name]}", "-ldl"], check=True)
            of = samples.setdefault(name, {how: [] for how in SURROUNDINGS})
            for _ in range(arguments.jobs):
                for how in SURROUNDINGS:
                    of[how].append(measure(mpi, program, stub, how, arguments.turns))
            cells = []
            for how in SURROUNDINGS:
                every = [one for job in of[how] for one in job]
                low, high = interval(every)
                cells.append(f"{statistics.median(every):.1f} [{low:.1f} {high:.1f}]")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    arguments.out.write_text(json.dumps(samples), encoding="utf-8")


if __name__ == "__main__":
    main()
