"""What a sample of --sample takes, the signal included: by depth of the stack, of C alone and with Python's frames.

Usage: sample_cost.py [--frames N] [--python-frames N] [--samples N] [--json FILE]

A stack of N native frames, or of N and as many Python ones as asked for, sends itself the signal that samples are taken
by: each time alike, with 8 innermost frames or all of them others than before, and with all caches emptied before. The
least of all is what the machine takes without anything else on it; `none` is the same without a recorder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from palmette.record.reading import read_job
from palmette.run.prepared import prepare

ROOT = Path(__file__).resolve().parents[1]
MPICH = ROOT / ".mpi" / "mpich"
SOURCE = ROOT / "studies" / "sample_cost.c"
RATE_HZ = 1
"""Rate of the timers, which aren't what is measured."""
SCRIPT = """import ctypes, sys
import mpi4py.MPI
library = ctypes.CDLL(sys.argv[1])
native, python, count = map(int, sys.argv[2:])
cases = [("same", 0, count, 0), ("8-change", 8, count, 0), ("all-change", native, count, 0),
         ("same-cold", 0, count // 100, 1), ("all-change-cold", native, count // 100, 1)]
def outer(left):
    if left: return outer(left - 1)
    for kind, changing, times, cold in cases:
        library.take_samples(kind.encode(), native, changing, times, cold)
outer(python - 2)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--python-frames", type=int, default=20)
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program, library, script = folder / "sample_cost", folder / "sample_cost.so", folder / "stack.py"
        link = [f"-I{MPICH / 'include'}", f"-L{MPICH / 'lib'}", "-lmpi", f"-Wl,-rpath,{MPICH / 'lib'}"]
        flags = ["cc", "-O2", "-fno-optimize-sibling-calls", str(SOURCE)]
        subprocess.run([*flags, "-o", str(program), *link], check=True)
        subprocess.run([*flags, "-DLIBRARY", "-shared", "-fPIC", "-o", str(library)], check=True)
        script.write_text(SCRIPT, encoding="utf-8")
        native = [str(program), str(asked.frames), str(asked.samples)]
        mixed = [sys.executable, str(script), str(library), str(asked.frames), str(asked.python_frames)]
        for name, words in (("C", native), ("Python", [*mixed, str(asked.samples)])):
            for recorded in (False, True):
                rows[name if recorded else f"{name}, none"] = measured(words, folder / name if recorded else None)
    for name, row in rows.items():
        for kind, values in row.items():
            print(f"{name:14} {kind:18}" + "".join(f" {value:9.0f}" for value in values))
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def measured(words: list[str], folder: Path | None) -> dict[str, list[float]]:
    """Return least, median and mean nanoseconds of each kind; of the recording, what it says of a sample itself."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(MPICH / "lib"), "PALMETTE_ENABLE": "0"}
    command = [str(MPICH / "bin" / "mpiexec"), "-n", "1", *words]
    if folder is not None:
        settings = {"PALMETTE_PROFILE": str(folder), "PALMETTE_SAMPLE": str(RATE_HZ)}
        prepared = prepare(command, settings, environment)
        command, environment = list(prepared.command), {**environment, **prepared.environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
    rows = {}
    for line in done.stdout.splitlines():
        kind, *values = line.split()
        rows[kind] = [float(value) for value in values]
    if folder is not None:
        sampling = read_job(folder).processes[0].recorded.sampling
        rows["itself"] = [sampling.seconds / max(1, sampling.samples) * 1e9, sampling.signal_s * 1e9]
        if sampling.incomplete or sampling.unmerged:
            print(f"{sampling.samples} samples: {sampling.incomplete} incomplete, {sampling.unmerged} unmerged")
    return rows


if __name__ == "__main__":
    main()
