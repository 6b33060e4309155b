"""Two builds of the preload library for MPICH, by turns: short collectives through shared memory on two ranks.

python studies/two_builds.py ONE.so OTHER.so [--pairs 15] [--rounds 3] [--json OUT.json]

Prints medians of ONE and of the ratio OTHER / ONE with its 95 % interval, round by round. A cell is slower where the
median is above 1.02 and the interval above 1 in most rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from outside_collectives import interval

from palmette.mpi.install import find

SIZES = {8: 200000, 1024: 50000, 65536: 2000, 1048576: 200}
"""Bytes, and how many calls of each are timed."""
SETTINGS = {
    "PALMETTE_COMPARE": "0", "PALMETTE_FORCE": "allreduce=shared;bcast=shared",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
}  # fmt: skip


def measure(libraries: list[str], pairs: int, rounds: int) -> list[dict[str, Any]]:
    """Compile the program and run the pairs: a row for each round, size and function, times in microseconds."""
    mpi = find("mpich")
    environment = {**os.environ, **mpi.environment(), **SETTINGS}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "two_builds"
        words = ["cc", "-O2", f"-I{mpi.prefix}/include", Path(__file__).with_suffix(".c"), "-o", program]
        subprocess.run([*words, f"-L{mpi.library_dir}", "-l:libmpi.so.12"], check=True)

        def run(library: str, count: int, size: int) -> list[float]:
            command = [mpi.mpiexec, "-n", "2", "-genv", "LD_PRELOAD", library, program, str(count), str(size)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            return [float(word) for word in done.stdout.split()]

        for turn in range(rounds):
            for size, count in SIZES.items():
                times: list[list[list[float]]] = [[], []]
                for pair in range(pairs):
                    for which in (0, 1) if pair % 2 else (1, 0):
                        times[which].append(run(libraries[which], count, size))
                for function, name in enumerate(("allreduce", "bcast")):
                    one, other = ([each[function] for each in build] for build in times)
                    rows.append({"round": turn, "function": name, "bytes": size, "one": one, "other": other})
                print(f"round {turn + 1} of {rounds}: {size} B", file=sys.stderr, flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the cells with the ratios of all rounds."""
    out = ["| function | block | first, us | second / first by round | |", "|---|---:|---:|---|---|"]
    for function, size in dict.fromkeys((row["function"], row["bytes"]) for row in rows):
        cell = [row for row in rows if (row["function"], row["bytes"]) == (function, size)]
        first = statistics.median(time for row in cell for time in row["one"])
        texts, slower = [], 0
        for row in cell:
            ratios = [b / a for a, b in zip(row["one"], row["other"], strict=True)]
            middle, (low, high) = statistics.median(ratios), interval(ratios)
            texts.append(f"{middle:.3f} [{low:.3f} {high:.3f}]")
            slower += middle > 1.02 and low > 1
        verdict = "slower" if slower > len(cell) / 2 else ""
        out.append(f"| {function} | {size} B | {first:.3f} | {', '.join(texts)} | {verdict} |")
    return "\n".join(out)


def main() -> None:
    """Measure and print, or print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="OUT.json", help="where rows go, or without libraries come from")
    arguments = parser.parse_args()
    if len(arguments.libraries) == 2:
        rows = measure([str(Path(word).resolve()) for word in arguments.libraries], arguments.pairs, arguments.rounds)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows), encoding="utf-8")
    elif arguments.json and not arguments.libraries:
        rows = json.loads(arguments.json.read_text(encoding="utf-8"))
    else:
        parser.error("give two libraries, or --json with the rows of a measurement")
    print(table(rows))


if __name__ == "__main__":
    main()
