"""Time and memory of one rank's program in jobs of up to a million ranks.

Usage: program_million.py [--json]

Every case runs in a process of its own, so that memory is that case's: the growth of the resident set while the program
is made, above what the job itself took. Time is the median of 21 makings.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from palmette import _core

TREES = ((16, 16, 16), (128, 64, 16), (1024, 64, 16))
"""Leaves, nodes a leaf, cores a node."""
CASES = (
    ("gather", "by_topology"),
    ("gather", "by_topology:node=linear,leaf=linear"),
    ("allgather", "leaders:between=recursive_doubling"),
    ("allgather", "leaders:between=bruck"),
    ("allgather", "leaders:leaders=4,between=bruck"),
    ("allgather", "bruck"),
)
RANKS = ("leader", "member")
REPEATS = 21
LIMIT_S = 0.050


def measure(tree: tuple[int, int, int], collective: str, algorithm: str, which: str) -> dict[str, Any]:
    """Make one rank's program; return its time and size."""
    leaves, nodes, cores = tree
    job = _core.Job.regular([("leaf", leaves), ("node", nodes), ("core", cores)])
    rank = cores * nodes if which == "leader" else cores * nodes + 1
    small = _core.Job.regular([("leaf", 2), ("node", 2), ("core", cores)])
    _core.make_program(small, 1, collective, algorithm, 0, 1024)  # loads the code itself into memory
    before = resident_peak(reset=True)
    program = _core.make_program(job, rank, collective, algorithm, 0, 1024)
    growth = resident_peak() - before
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        program = _core.make_program(job, rank, collective, algorithm, 0, 1024)
        times.append(time.perf_counter() - begin)
    return {
        "ranks": job.size,
        "collective": collective,
        "algorithm": algorithm,
        "rank": rank,
        "role": which,
        "seconds": statistics.median(times),
        "steps": len(program),
        "program_bytes": program.size_bytes,
        "resident_growth_bytes": growth,
    }


def resident_peak(*, reset: bool = False) -> int:
    """Return the peak of the resident set in bytes since the last reset; 5 in clear_refs resets it (proc(5))."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


def in_a_process(tree: tuple[int, int, int], collective: str, algorithm: str, which: str) -> dict[str, Any]:
    """Run one case in a fresh interpreter."""
    words = [sys.executable, __file__, "--case", json.dumps([tree, collective, algorithm, which])]
    found: dict[str, Any] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return found


def table(results: list[dict[str, Any]]) -> list[str]:
    """A heading for each case, a line for each number of ranks and role."""
    lines: list[str] = []
    for row in results:
        heading = f"{row['collective']} {row['algorithm']}"
        if heading not in lines:
            lines += ["" for _ in lines[:1]] + [heading]
            lines.append(
                f"  {'ranks':>9}  {'role':<6}  {'time us':>9}  {'steps':>6}  {'program KB':>10}  {'memory KB':>9}"
            )
        lines.append(
            f"  {row['ranks']:>9,}  {row['role']:<6}  {row['seconds'] * 1e6:>9,.1f}  {row['steps']:>6,}  "
            f"{row['program_bytes'] / 1024:>10,.1f}  {row['resident_growth_bytes'] / 1024:>9,.0f}"
        )
    return lines


def main() -> int:
    """Run all cases; exit status 1 when one takes more than 50 ms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        tree, collective, algorithm, which = json.loads(arguments.case)
        print(json.dumps(measure(tuple(tree), collective, algorithm, which)))
        return 0
    results = [
        in_a_process(tree, collective, algorithm, which)
        for collective, algorithm in CASES
        for tree in TREES
        for which in RANKS
    ]
    print(json.dumps(results, indent=2) if arguments.json else "\n".join(table(results)))
    slow = [row for row in results if row["seconds"] > LIMIT_S]
    for row in slow:
        print(f"more than 50 ms: {row['collective']} {row['algorithm']}, {row['ranks']:,} ranks", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
