"""Two builds of the preload library for MPICH, by turns: short collectives through shared memory on two ranks.

python studies/two_builds.py ONE.so OTHER.so

Prints medians of ONE and of the ratio OTHER / ONE over 15 pairs, with the ratio's quartiles.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from palmette.mpi.install import find

SIZES = {8: 200000, 1024: 50000, 65536: 2000, 1048576: 200}
"""Bytes, and how many calls of each are timed."""
PAIRS = 15
SETTINGS = {
    "PALMETTE_COMPARE": "0", "PALMETTE_ALLREDUCE": "shared", "PALMETTE_BCAST": "shared",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
}  # fmt: skip


def main(libraries: list[str]) -> None:
    """Compile the program and run the pairs."""
    mpi = find("mpich")
    environment = {**os.environ, **mpi.environment(), **SETTINGS}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "two_builds"
        words = ["cc", "-O2", f"-I{mpi.prefix}/include", Path(__file__).with_suffix(".c"), "-o", program]
        subprocess.run([*words, f"-L{mpi.library_dir}", "-l:libmpi.so.12"], check=True)
        for size, count in SIZES.items():
            times: list[dict[str, list[float]]] = []
            for _ in range(PAIRS):
                pair = {}
                for one in random.sample(libraries, 2):
                    command = [mpi.mpiexec, "-n", "2", "-genv", "LD_PRELOAD", one, program, str(count), str(size)]
                    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                    pair[one] = [float(word) for word in done.stdout.split()]
                times.append(pair)
            for which, name in enumerate(("allreduce", "bcast")):
                first = statistics.median(pair[libraries[0]][which] for pair in times)
                ratios = [pair[libraries[1]][which] / pair[libraries[0]][which] for pair in times]
                low, middle, high = statistics.quantiles(ratios, n=4)
                print(f"{name:9} {size:8} B {first:9.3f} us  ratio {middle:.3f}  {low:.3f}-{high:.3f}", flush=True)


if __name__ == "__main__":
    main([str(Path(word).resolve()) for word in sys.argv[1:3]])
