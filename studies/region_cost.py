"""What a region takes, a begin and its end: without a recorder, under --profile, and one of Python's.

Usage: region_cost.py [--batches N] [--json FILE]

The least of N batches of 1,000 pairs, which is what the machine takes without anything else on it; in nanoseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from palmette.mpi.abi import LIBRARIES
from palmette.record.reading import read_job
from palmette.run.prepared import prepare

ROOT = Path(__file__).resolve().parents[1]
MPICH = ROOT / ".mpi" / "mpich"
SCRIPT = """import sys, time
import mpi4py.MPI
from palmette import region
one = region("solve")
def around():
    with one: pass
def bare():
    with None_: pass
class Nothing:
    def __enter__(self): return self
    def __exit__(self, *error): return None
None_ = Nothing()
for name, run in (("Python, with", around), ("Python, with of nothing", bare)):
    least = 1e18
    for _ in range(int(sys.argv[1]) // 10 + 1):
        begin = time.perf_counter_ns()
        for _ in range(1000): run()
        least = min(least, time.perf_counter_ns() - begin)
    print(f"{name}: {least / 1000:.1f}")
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program, script = folder / "region_cost", folder / "region_cost.py"
        script.write_text(SCRIPT, encoding="utf-8")
        subprocess.run(
            ["cc", "-O2", "-finstrument-functions", "-Wl,--no-as-needed",
             f"-I{MPICH / 'include'}", f"-I{LIBRARIES.parent / 'include'}",
             str(ROOT / "studies" / "region_cost.c"), "-o", str(program), str(LIBRARIES / "libpalmette_mpich.so"),
             f"-L{MPICH / 'lib'}", "-lmpi", f"-Wl,-rpath,{MPICH / 'lib'}:{LIBRARIES}", "-Wl,--allow-shlib-undefined"],
            check=True,
        )  # fmt: skip
        for way in ("none", "profile"):
            for number, words in enumerate(([str(program)], [sys.executable, str(script)])):
                recording = folder / f"{way}-{number}"
                variables = {"PALMETTE_PROFILE": str(recording)} if way == "profile" else {}
                command = [str(MPICH / "bin" / "mpiexec"), "-n", "1", *words, str(asked.batches)]
                environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
                if variables:
                    prepared = prepare(command, variables, environment)
                    command, environment = list(prepared.command), {**environment, **prepared.environment}
                out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
                for line in out.splitlines():
                    name, _, value = line.rpartition(": ")
                    found.setdefault(name, {})[way] = float(value)
                if variables and number == 0:
                    measured_s = read_job(recording).processes[0].recorded.region_cost_s
                    found["as the recording states it"] = {"profile": round(measured_s * 1e9, 1)}
    print(f"{'ns for a begin and its end':<30} {'no recorder':>12} {'--profile':>12}")
    for name, row in found.items():
        print(f"{name:<30} " + " ".join(f"{row.get(way, ''):>12}" for way in ("none", "profile")))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
