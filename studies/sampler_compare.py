"""Compares the shares of functions by palmette's samples with those of another sampler, on the same kind of run.

    python studies/sampler_compare.py PROGRAM [ARGUMENT ...]      # native, by `perf record -e cpu-clock`
    python studies/sampler_compare.py python SCRIPT [ARGUMENT ...]   # Python, by py-spy (pip install py-spy)

Each runs once, alone, as one rank without a launcher. Printed are functions with at least 2 % by either, and the
largest difference in points. Exit status 1: the other sampler isn't there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from palmette.analysis import Trace

LEAST = 0.02
HERTZ = 250


def by_palmette(words: list[str], folder: Path) -> dict[str, float]:
    """Return shares of own processor time by function, MPI calls as one."""
    run = ["palmette", "run", "--off", f"--sample={HERTZ}", "--trace", str(folder), *words]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    contexts = Trace(folder).contexts
    if contexts is None:
        sys.exit("palmette took no samples")
    return shares({site.function: own for site, _, own in contexts.functions() if site.kind != "mpi"})


def by_perf(words: list[str], folder: Path) -> dict[str, float]:
    """Return the same by perf."""
    data = folder / "perf.data"
    record = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", str(HERTZ), "-o", str(data), *words]
    subprocess.run(record, check=True, stdout=subprocess.DEVNULL)
    report = ["perf", "report", "-i", str(data), "--stdio", "--no-children", "-F", "overhead,sym,dso", "-t", "\t"]
    sums: dict[str, float] = defaultdict(float)
    for line in subprocess.run(report, check=True, capture_output=True, text=True).stdout.splitlines():
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) == 3 and parts[0].endswith("%") and not parts[2].startswith(("libmpi", "libpalmette")):
            sums[parts[1].removeprefix("[.] ")] += float(parts[0].removesuffix("%"))
    return shares(sums)


def by_py_spy(words: list[str], folder: Path) -> dict[str, float]:
    """Return the same by py-spy."""
    stacks = folder / "stacks"
    record = ["py-spy", "record", "-r", str(HERTZ), "-f", "raw", "-o", str(stacks), "--", *words]
    subprocess.run(record, check=True, stdout=subprocess.DEVNULL)
    sums: dict[str, float] = defaultdict(float)
    for line in stacks.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        sums[stack.rpartition(";")[2].partition(" (")[0]] += float(count)
    return shares(sums)


def shares(sums: dict[str, float]) -> dict[str, float]:
    """Return them as shares of their sum."""
    whole = sum(sums.values()) or 1.0
    return {name: value / whole for name, value in sums.items()}


def main(words: list[str]) -> int:
    """Compare them."""
    if not words:
        sys.exit(__doc__)
    is_python = Path(words[0]).name.startswith("python")
    other = "py-spy" if is_python else "perf"
    if shutil.which(other) is None:
        print(f"{other} isn't installed")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        ours = by_palmette(words, Path(folder) / "calls")
        theirs = (by_py_spy if is_python else by_perf)(words, Path(folder))
    print(f"{'palmette':>9} {other:>9}  function ({os.cpu_count()} processors, load {os.getloadavg()[0]:.1f})")
    for name in sorted({**ours, **theirs}, key=lambda one: -ours.get(one, 0.0)):
        if max(ours.get(name, 0.0), theirs.get(name, 0.0)) >= LEAST:
            print(f"{ours.get(name, 0.0):>9.1%} {theirs.get(name, 0.0):>9.1%}  {name}")
    print(
        f"largest difference: {100 * max(abs(ours.get(n, 0.0) - theirs.get(n, 0.0)) for n in {**ours, **theirs}):.1f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
