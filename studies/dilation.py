"""By how much a program's processor time grows by instrumented functions and by samples.

Usage: dilation.py [--runs N] [--json FILE]

One program, built plainly and with -finstrument-functions, which palmette run --profile counts; the plain one also
under --sample=100 --profile. By turns; medians of the ratios to the plain run beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from palmette.run.prepared import prepare

ROOT = Path(__file__).resolve().parents[1]
MPICH = ROOT / ".mpi" / "mpich"
WAYS: dict[str, tuple[list[str], dict[str, str]]] = {
    "plain": ([], {}),
    "instrumented, --profile": (["-finstrument-functions"], {"PALMETTE_PROFILE": "profile"}),
    "--sample=100 --profile": ([], {"PALMETTE_PROFILE": "samples", "PALMETTE_SAMPLE": "100"}),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    ratios: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for number, (flags, _) in enumerate(WAYS.values()):
            subprocess.run(
                ["cc", "-O2", *flags, f"-I{MPICH / 'include'}", str(ROOT / "studies" / "dilation.c"), "-o",
                 str(folder / f"program{number}"), f"-L{MPICH / 'lib'}", "-lmpi", f"-Wl,-rpath,{MPICH / 'lib'}"],
                check=True,
            )  # fmt: skip
        for run in range(asked.runs):
            plain: dict[str, float] = {}
            for number, (way, (_, variables)) in enumerate(WAYS.items()):
                command = [str(MPICH / "bin" / "mpiexec"), "-n", "1", str(folder / f"program{number}")]
                environment = dict(os.environ)
                if variables:
                    there = {**variables, "PALMETTE_PROFILE": str(folder / f"{variables['PALMETTE_PROFILE']}{run}")}
                    prepared = prepare(command, there, environment)
                    command, environment = list(prepared.command), {**environment, **prepared.environment}
                out = subprocess.run(
                    command, env=environment, cwd=folder, check=True, capture_output=True, text=True
                ).stdout  # fmt: skip
                took = {name: float(seconds) for name, seconds in (line.split() for line in out.splitlines())}
                plain = plain or took
                for name, seconds in took.items():
                    ratios.setdefault(way, {}).setdefault(name, []).append(seconds / plain[name])
    names = ("nanoseconds", "microsecond")
    print(f"{'processor time, of the plain':<30}" + "".join(f"{f'functions of {name}':>26}" for name in names))
    for way, row in ratios.items():
        print(f"{way:<30}" + "".join(f"{median(row[name]):>26.3f}" for name in names))
    if asked.json:
        asked.json.write_text(json.dumps(ratios, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
