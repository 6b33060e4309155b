"""An FFT on the emulated cluster: time in exchanges under each MPI alone and with palmette, ranks scattered.

Runs examples/fft/vortex.py by `palmette bench app` on the lab, several times; calls of each variant are recorded once a
time. Root is needed, as for every lab, and a Python with mpi4py and mpi4py-fft.

Usage: fft.py OUTPUT.json --python PYTHON [--cells 64] [--steps 1] [--repeats 4] [--mpi mpich,openmpi,impi]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
RANKS = 16
VARIANTS = {
    "ranks in order": "PALMETTE_REORDER=off",
    "grids for exchanges": "PALMETTE_REORDER=exchange",
}
EXCHANGES = ("MPI_Alltoallw", "MPI_Alltoallw_c")


def main() -> None:
    """Measure, write all samples, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--cells", type=int, default=64)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--mpi", default="mpich,openmpi,impi")
    parser.add_argument("--placement", default="random:1")
    asked = parser.parse_args()
    if asked.repeats < 1 or not asked.output.absolute().parent.is_dir():
        parser.error("--repeats is 1 or more, and the output's folder must be there")
    samples: list[dict[str, object]] = []
    for _ in range(asked.repeats):
        for mpi in asked.mpi.split(","):
            for variant in measured(mpi, asked):
                functions = variant["by_function_s"]
                exchange_s = sum(functions.get(name, 0.0) for name in EXCHANGES) / RANKS
                samples.append(
                    {"mpi": mpi, "variant": variant["name"], "exchange_s": exchange_s, "whole_s": variant["seconds"],
                     "same_output": variant["same_output"], "served_calls": variant["served_calls"]}
                )  # fmt: skip
                print(f"{mpi}, {variant['name']}: {exchange_s:.2f} s in exchanges", file=sys.stderr, flush=True)
    asked.output.write_text(json.dumps({"lab": LAB, "placement": asked.placement, "cells": asked.cells,
                                        "steps": asked.steps, "samples": samples}, indent=1) + "\n")  # fmt: skip
    print(table(samples))


def measured(mpi: str, asked: argparse.Namespace) -> list[dict[str, object]]:
    """Return the variants of one run of `bench app`."""
    words = [str(ROOT / ".venv/bin/palmette-lab"), "bench", "app", "--lab", LAB, "--placement", asked.placement]
    words += ["--mpi", mpi, "--rounds", "1", "--ignore", "time", "--json"]
    for name, setting in VARIANTS.items():
        words += ["--variant", f"{name}:{setting}"]
    words += ["--", asked.python, str(ROOT / "examples/fft/vortex.py"), str(asked.cells), str(asked.steps)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"fft.py: {' '.join(words)}: {done.stderr.strip().splitlines()[-1]}")
    found: list[dict[str, object]] = json.loads(done.stdout)["variants"]
    return found


def table(samples: list[dict[str, object]]) -> str:
    """Return a Markdown table of medians, and ranges over the repeats of ratios within one."""
    lines = ["| MPI | variant | in exchanges | alone / this | range | output |", "|---|---|---|---|---|---|"]
    for mpi in dict.fromkeys(sample["mpi"] for sample in samples):
        of = {
            name: [s for s in samples if s["mpi"] == mpi and s["variant"] == name]
            for name in dict.fromkeys(s["variant"] for s in samples)
        }
        alone = [float(str(s["exchange_s"])) for s in of["alone"]]
        for name, found in of.items():
            times = [float(str(s["exchange_s"])) for s in found]
            gains = [a / t for a, t in zip(alone, times, strict=True)]
            same = "right" if all(s["same_output"] for s in found) else "differs"
            lines.append(
                f"| {mpi} | {name} | {statistics.median(times):.2f} s | {statistics.median(gains):.2f} | "
                f"{min(gains):.2f}-{max(gains):.2f} | {same} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
