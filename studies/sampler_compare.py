"""Compares the shares of functions by palmette's samples with those of another sampler, on the same run.

    python studies/sampler_compare.py PROGRAM [ARGUMENT ...]      # native, beside `perf record -e cpu-clock`
    python studies/sampler_compare.py python SCRIPT [ARGUMENT ...]   # Python, beside py-spy (pip install py-spy)

The program runs once, as one rank without a launcher. Of the other sampler's samples those count that lie between
palmette's first and last one, since palmette begins in MPI_Init. Printed are functions with at least 2 % by either:
of native ones, where a thread stands, in the kernel for it too; of Python's, the innermost one. Then the largest
difference in points, and what two samplers that are right may differ by (two standard errors). Exit status 1: the
other sampler isn't there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from palmette import _core
from palmette.analysis import Trace
from palmette.record.reading import read_job

LEAST_SHARE = 0.02
HERTZ = 250
NOT_COMPARED = ("libmpi", "libpalmette", "[vdso]")
"""Beginnings of modules: MPI is one thing to palmette; palmette is seen by the other sampler alone."""
HEAD = re.compile(r"\s*(\d+)\s+(\d+\.\d+):")
FRAME = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)$")


def command(words: list[str], folder: Path) -> list[str]:
    """Return how palmette runs it."""
    run = [sys.executable, "-m", "palmette.cli.main", "run", "--off", f"--sample={HERTZ}", "--trace", str(folder)]
    return [*run, *words]


def by_palmette(folder: Path, *, python: bool) -> Counter[str]:
    """Return samples by function."""
    contexts = Trace(folder).contexts
    if contexts is None:
        sys.exit("palmette took no samples")
    found = Counter[str]()
    for site, seconds in contexts.sums_of(0):
        chain = [contexts.sites[site], *(contexts.sites[one] for one in contexts.callers(site))]
        one = next((one for one in chain if one.kind == "python"), None) if python else chain[0]
        if one is not None and one.kind != "mpi":
            found[one.function] += round(seconds * HERTZ)
    return found


def between(folder: Path) -> tuple[int, float, float]:
    """Return the process, and when its first and last samples were taken (CLOCK_MONOTONIC, seconds)."""
    process = read_job(folder).processes[0].recorded
    columns = _core.Recording.samples_of(str(next(folder.glob("*.palmette"))), 0)
    first, last = (float(at - process.node_offset_ns) * 1e-9 for at in columns["real_ns"][[0, -1]])
    return process.pid, first, last


def by_perf(words: list[str], folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Run it under perf; return samples by function, palmette's and perf's."""
    data, calls = folder / "perf.data", folder / "calls"
    record = ["perf", "record", "-q", "-g", "-k", "mono", "-e", "cpu-clock", "-F", str(HERTZ), "-o", str(data), "--"]
    subprocess.run([*record, *command(words, calls)], check=True, stdout=subprocess.DEVNULL)
    pid, first, last = between(calls)
    fields = ["-F", "pid,time,ip,sym,dso", "--ns", "--pid", str(pid)]
    script = ["perf", "script", "-i", str(data), *fields, "--no-demangle"]
    found = Counter[str]()
    counts = False
    for line in subprocess.run(script, check=True, capture_output=True, text=True).stdout.splitlines():
        if head := HEAD.match(line):
            counts = first <= float(head[2]) <= last
        elif counts and (frame := FRAME.match(line)) and not frame[2].startswith("[kernel"):
            # The innermost frame outside of the kernel; callers are of no use without frame pointers.
            counts = False
            if not Path(frame[2]).name.startswith(NOT_COMPARED):
                found[frame[1]] += 1
    return by_palmette(calls, python=False), found


def by_py_spy(words: list[str], folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Run it, with py-spy beside it from its first sample on; return samples by function, palmette's and py-spy's."""
    stacks, calls = folder / "stacks", folder / "calls"
    with subprocess.Popen(command(words, calls), stdout=subprocess.DEVNULL) as running:
        spy = ["py-spy", "record", "-r", str(HERTZ), "-f", "raw", "-o", str(stacks), "-p", str(running.pid)]
        subprocess.run([*spy, "-d", "100000"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = Counter[str]()
    for line in stacks.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        found[stack.rpartition(";")[2].partition(" (")[0]] += int(count)
    return by_palmette(calls, python=True), found


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
        ours, theirs = (by_py_spy if is_python else by_perf)(words, Path(folder))
    our_sum, their_sum = max(1, ours.total()), max(1, theirs.total())
    print(f"{'palmette':>9} {other:>9}  function ({os.cpu_count()} processors, load {os.getloadavg()[0]:.1f})")
    worst, error = 0.0, 0.0
    for name in sorted({**ours, **theirs}, key=lambda one: -ours[one]):
        our, their = ours[name] / our_sum, theirs[name] / their_sum
        if abs(our - their) >= worst:
            worst, share = abs(our - their), (our + their) / 2
            error = (share * (1 - share) * (1 / our_sum + 1 / their_sum)) ** 0.5
        if max(our, their) >= LEAST_SHARE:
            print(f"{our:>9.1%} {their:>9.1%}  {name}")
    print(f"samples: {our_sum} and {their_sum}")
    print(f"largest difference: {100 * worst:.1f} points, of which chance may make {200 * error:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
