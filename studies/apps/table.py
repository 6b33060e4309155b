"""Programs of others with and without palmette: prepares inputs, runs `palmette bench app` on each, prints a table.

Debian packages: lammps hpcc quantum-espresso nwchem-openmpi mpb-mpi elk-lapw abyss gromacs gpaw
gpaw-data python3-meep-openmpi scalapack-mpi-test mpich; mpi4py-fft and shift-fft in a virtual environment with mpi4py.

With --lab, programs that run under the MPIs of an emulated cluster run there, on 16 scattered ranks.

Usage: table.py FOLDER [--rounds N] [--only NAME,...] [--python VENV/bin/python] [--mpich PREFIX] [--lab]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import inputs

HERE = Path(__file__).resolve().parent
RANKS = 2
OPEN_MPI = ["mpirun.openmpi", "--oversubscribe", "-n", str(RANKS)]
MPICH = ["mpiexec.mpich", "-n", str(RANKS)]
LAB = ["--lab", "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "--placement", "random:1", "--timeout", "5min"]
LAB_RANKS = 16
SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests"


@dataclass(frozen=True)
class Program:
    """One program: how it is started, and which lines of its output are times."""

    name: str
    language: str
    mpi: str
    command: list[str]
    ignored: list[str] = field(default_factory=list)
    tolerance: str = "1e-9"
    prepare: str = ""
    checker: str = ""
    lab: str = ""
    """The lab's MPI that it runs under: it needs that MPI's C library alone."""
    libraries: str = ""
    """Folder of its MPI's library, if the loader doesn't find it."""


def programs(python: str, prefix: str) -> list[Program]:
    """Return all of them."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    openmpi = [OPEN_MPI[0], *root, *OPEN_MPI[1:]]
    wheel = [f"{prefix}/bin/mpiexec", "-n", str(RANKS), python]
    return [
        Program("LAMMPS", "C++", "Open MPI 4.1", [*openmpi, "lmp", "-in", "droplet.lmp", "-log", "none"],
                ["time", "CPU", "Loop|Performance|proc", "^(Pair|Neigh|Comm|Output|Modify|Other) "], lab="openmpi"),
        Program("HPCC", "C", "Open MPI 4.1", [*openmpi, "hpcc"], prepare="rm -f hpccoutf.txt",
                checker="python3 check.py hpcc", lab="openmpi"),
        Program("Quantum ESPRESSO", "Fortran", "Open MPI 4.1", [*openmpi, "pw.x", "-in", "si.pw"],
                ["CPU", "WALL", "starts on", "terminated on", "cpu time"], "1e-6"),
        Program("NWChem", "Fortran", "Open MPI 4.1", [*openmpi, "nwchem.openmpi", "water.nw"],
                ["[Tt]ime", "date", "wall", "cpu", "prefix", "^ *[0-9 ]*$", "bytes|memory|heap|stack|allocat"], "1e-6"),
        Program("MPB", "C, Scheme", "Open MPI 4.1", [*openmpi, "mpb-mpi", "rods.ctl"],
                ["elapsed", "time", "iteration", "trace ="], "1e-5", lab="openmpi"),
        Program("Elk", "Fortran", "Open MPI 4.1", [*openmpi, "elk-lapw"]),
        Program("ABySS", "C++", "Open MPI 4.1",
                [*openmpi, "/usr/lib/abyss/ABYSS-P", "-k", "25", "-o", "contigs.fa", "reads.fa"],
                ["[Mm]emory|[Rr]eserv|[Ll]oad|hash|vm|[0-9]+: "], lab="openmpi"),
        Program("GROMACS", "C++", "Open MPI 4.1",
                [*openmpi, "gmx_mpi", "mdrun", "-s", "water.tpr", "-ntomp", "1", "-nb", "cpu", "-reprod"],
                checker="python3 check.py gromacs", lab="openmpi", prepare=(
                    "rm -f energies.txt md.log '#'*; sed -i /^SOL/d water.top; "
                    "gmx_mpi solvate -cs spc216 -box 2.5 2.5 2.5 -o box.gro -p water.top >/dev/null 2>&1; "
                    "gmx_mpi grompp -f water.mdp -c box.gro -p water.top -o water.tpr -maxwarn 2 >/dev/null 2>&1")),
        Program("GPAW", "Python, C", "Open MPI 4.1", [*openmpi, "/usr/bin/python3", "gpaw_water.py"], lab="openmpi"),
        Program("Meep", "Python, C++", "Open MPI 4.1", [*openmpi, "/usr/bin/python3", "meep_guide.py"],
                ["time", "on time step"], "1e-6", lab="openmpi"),
        Program("ScaLAPACK xdlu", "Fortran", "MPICH 4.0", [*MPICH, f"{SCALAPACK}/xdlu"], ["WALL|CPU|TIME"]),
        Program("ScaLAPACK xdqr", "Fortran", "MPICH 4.0", [*MPICH, f"{SCALAPACK}/xdqr"], ["WALL|CPU|TIME"]),
        Program("mpi4py-fft", "Python, C", "MPICH 5.0", [*wheel, "vortex.py", "64", "5"], ["time"], lab="mpich",
                libraries=f"{prefix}/lib"),
        Program("shift-fft", "Python", "MPICH 5.0", [*wheel, "slab.py"], ["time"], lab="mpich",
                libraries=f"{prefix}/lib"),
    ]  # fmt: skip


def measured(program: Program, folder: Path, rounds: int, lab: bool) -> dict[str, object] | str:
    """Return what `palmette bench app` says of a program, or its complaint."""
    if program.prepare:
        subprocess.run(["sh", "-c", program.prepare], cwd=folder, check=True)
    program_of = "palmette_lab.cli.main" if lab else "palmette.cli.main"
    words = [sys.executable, "-m", program_of, "bench", "app", "--rounds", str(rounds), "--json"]
    words += ["--tolerance", program.tolerance, *(part for one in program.ignored for part in ("--ignore", one))]
    words += ["--check", program.checker] if program.checker else []
    fixed = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    environment = {**os.environ, **fixed}
    command = program.command
    if lab:
        # The words behind the launcher's `-n RANKS`; ranks get no environment but this.
        command = command[command.index("-n") + 2 :]
        command = ["env", *(f"{name}={value}" for name, value in fixed.items()), *command]
        words += [*LAB, "--mpi", program.lab]
    elif program.libraries:
        environment["LD_LIBRARY_PATH"] = program.libraries
    done = subprocess.run(
        [*words, "--", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if not done.stdout.startswith("{"):
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}"
    return dict(json.loads(done.stdout))


def row(program: Program, result: dict[str, object] | str) -> str:
    """Return a line of the table."""
    if isinstance(result, str):
        return f"| {program.name} | {program.language} | {program.mpi} | {result} | | | | |"
    alone, palmette = result["variants"]  # type: ignore[misc]
    same = "same" if palmette["same_output"] else palmette["difference"]
    compared = "its own check" if program.checker else f"{result['compared_numbers']} number(s)"
    return (
        f"| {program.name} | {program.language} | {program.mpi} | {sum(alone['calls'].values()):,} | "
        f"{palmette['served_calls']:,} | {alone['median_s']:.2f} s | {palmette['median_s']:.2f} s | "
        f"{palmette['ratio']:.2f} ({palmette['ratio_low']:.2f}-{palmette['ratio_high']:.2f}) | {same}, {compared} |"
    )


def main() -> None:
    """Prepare, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--mpich", default="/usr")
    parser.add_argument("--lab", action="store_true")
    options = parser.parse_args()
    folder = options.folder
    inputs.main(folder, LAB_RANKS if options.lab else RANKS)
    for path in [*HERE.iterdir(), *(HERE.parent.parent / "examples/fft").iterdir()]:
        if path.is_file():
            shutil.copy(path, folder)
    for data in Path("/usr/share/scalapack").glob("*.dat"):
        shutil.copy(data, folder)
    print("| program | | MPI | calls | served | alone | with palmette | ratio | output |")
    print("|---|---|---|---|---|---|---|---|---|")
    for program in programs(options.python, options.mpich):
        if options.only and program.name not in options.only.split(","):
            continue
        if options.lab and not program.lab:
            continue
        result = measured(program, folder, options.rounds, options.lab)
        if not isinstance(result, str):
            result["name"] = program.name  # instead of a command with paths of this machine
        kept = "".join(char if char.isalnum() else "_" for char in program.name.lower())
        kept += "_lab" if options.lab else ""
        (folder / f"{kept}.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
        print(row(program, result), flush=True)


if __name__ == "__main__":
    main()
