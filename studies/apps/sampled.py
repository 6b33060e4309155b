"""What sampling costs programs of others, and how many of their stacks are whole.

Six programs of table.py, with longer inputs, by turns alone, with their calls recorded, and with samples at 100 Hz and
at 1,000 Hz besides: each round runs all four, in another order than the one before. What
`palmette run --sample` puts around a program is put around it here without that command's own start, which is measured
by itself, with a program that does nothing. Prints tables and writes all times to FOLDER/samples.json.

`wall`, `CPU`: medians, over rounds, of the ratio to the run alone of the same round, with 95 % intervals: of the time
of the whole command, and of the processor time of all its processes. `samples`: of the processor time, to the run with
calls alone of the same round. `taken`: of the processor time, what samples say
that they took, a signal's own time included. `stacks`, `calls`: samples and MPI calls whose path begins at the thread's
start.

Debian packages: lammps hpcc quantum-espresso gromacs gpaw gpaw-data; mpi4py-fft in a virtual environment with mpi4py;
cc and MPICH for the program that does nothing.

Usage: sampled.py FOLDER [--rounds N] [--only NAME,...] [--rates HZ,...] [--short] [--python VENV/bin/python]
[--mpich PREFIX]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import inputs
from table import HERE, RANKS, Program, programs

from palmette import _core
from palmette.record.reading import read_job
from palmette.run.prepared import prepare

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eEdD][-+]?\d+)?")
ALONE, CALLS = "alone", "calls"
LONGER = {
    "LAMMPS": ("droplet.lmp", "run 100", "run 250"),
    "HPCC": ("hpccinf.txt", "600  Ns", "2000  Ns"),
    "Quantum ESPRESSO": ("si.pw", "4 4 4 1 1 1", "10 10 10 1 1 1"),
    "GROMACS": ("water.mdp", "nsteps = 300", "nsteps = 1800"),
    "GPAW": ("gpaw_water.py", "h=0.22", "h=0.20"),
    "mpi4py-fft": ("", "", ""),
}
"""The six, and what is replaced in their inputs so that a run takes some seconds."""
NOTHING = "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0) | MPI_Finalize(); }\n"
TIMEOUT_S = 900


@dataclass
class Run:
    """What one run took."""

    wall_s: float
    cpu_s: float
    text: str


@dataclass
class Stacks:
    """What recordings say of their stacks."""

    samples: int = 0
    incomplete: int = 0
    unmerged: int = 0
    calls: int = 0
    incomplete_calls: int = 0
    taken_s: float = 0.0
    by: set[str] = field(default_factory=set)
    ends: Counter[str] = field(default_factory=Counter)
    """Samples by the place where their stacks end that don't reach a start."""
    call_ends: Counter[str] = field(default_factory=Counter)

    def add(self, recording: Path) -> None:
        """Count those of a job."""
        for process in read_job(recording).processes:
            self._add(process.recorded)

    def _add(self, process: _core.RecordedProcess) -> None:
        sampling = process.sampling
        self.samples += sampling.samples
        self.incomplete += sampling.incomplete
        self.unmerged += sampling.unmerged
        self.taken_s += sampling.seconds + sampling.samples * sampling.signal_s
        self.by.add(str(sampling.by).rpartition(".")[2])
        contexts = process.contexts
        starts: set[tuple[str, int]] = set()
        below = Counter[int]()
        for index in range(len(contexts) - 1, 0, -1):
            # Parents come first, so that sums go outwards.
            one = contexts[index]
            below[index] += one.samples
            if one.parent:
                below[one.parent] += below[index]
                if contexts[one.parent].kind == _core.ContextKind.lost:
                    self.ends[_place(one.module, one.offset)] += below[index]
            elif one.kind == _core.ContextKind.native:
                starts.add((one.module, one.offset))
        for row in process.aggregates:
            path = process.paths[row.path]
            self.calls += row.calls
            if not path or not _is_start(path[-1], starts):
                self.incomplete_calls += row.calls
                self.call_ends[_place(path[-1].module, path[-1].offset) if path else row.function] += row.calls


def _place(module: str, offset: int) -> str:
    return f"{Path(module).name}+{offset:#x}"


@cache
def _entry(module: str) -> int:
    """Return the address at which a program begins; -1: this is none."""
    try:
        with Path(module).open("rb") as file:
            head = file.read(64)
    except OSError:
        return -1
    return int(struct.unpack_from("<Q", head, 24)[0]) if head[:4] == b"\x7fELF" else -1


def _is_start(frame: _core.RecordedFrame, starts: set[tuple[str, int]]) -> bool:
    """Whether the outermost frame of a call is where samples begin, too, or the program's entry."""
    longest_entry = 64
    entry = _entry(frame.module)
    return (frame.module, frame.offset) in starts or (entry > 0 and 0 < frame.offset - entry < longest_entry)


class FailedError(Exception):
    """A program ends otherwise than it should."""


def run(program: Program, folder: Path, settings: dict[str, str]) -> Run:
    """Run it once. Raises FailedError."""
    if program.prepare:
        subprocess.run(["sh", "-c", program.prepare], cwd=folder, check=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PALMETTE_ENABLE": "0"}
    if program.libraries:
        environment["LD_LIBRARY_PATH"] = program.libraries
    words = program.command
    if settings:
        prepared = prepare(words, settings, environment, directory=folder)
        words, environment = list(prepared.command), {**environment, **prepared.environment}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    wall_s, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or [""]
        raise FailedError(f"ends with {done.returncode}: {lines[-1][:200]}")
    text = done.stdout
    if program.checker:
        text = subprocess.run(program.checker.split(), cwd=folder, capture_output=True, text=True, check=False).stdout
    return Run(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, text)


def differs(program: Program, one: str, other: str) -> bool:
    """Whether two outputs have other numbers, but for lines with times."""
    tolerance = float(program.tolerance)
    if program.checker:
        return one != other

    def numbers(text: str) -> list[float]:
        lines = [line for line in text.splitlines() if not any(re.search(part, line) for part in program.ignored)]
        return [float(word.lower().replace("d", "e")) for line in lines for word in NUMBER.findall(line)]

    first, second = numbers(one), numbers(other)
    return len(first) != len(second) or any(
        abs(a - b) > tolerance * max(1.0, abs(a), abs(b)) for a, b in zip(first, second, strict=True)
    )


def ratio(pairs: Iterable[tuple[float, float]]) -> str:
    """Return the median of second over first, less one, in percent, with its 95 % interval."""
    found = sorted(100 * (second / first - 1) for first, second in pairs)
    skipped = max(0, int(len(found) / 2 - 0.98 * len(found) ** 0.5))
    return f"{statistics.median(found):+.2f} % ({found[skipped]:+.2f} to {found[-1 - skipped]:+.2f})"


def measure(program: Program, folder: Path, rates: list[str], rounds: int) -> dict[str, object]:
    """Measure one program and print its lines."""
    recordings = {f"{rate} Hz": folder / f"recording-{rate}" for rate in rates}
    stacks = {name: Stacks() for name in recordings}
    calls = folder / "recording-calls"
    variants: dict[str, dict[str, str]] = {ALONE: {}, CALLS: {"PALMETTE_PROFILE": str(calls)}}
    for (name, recording), rate in zip(recordings.items(), rates, strict=True):
        variants[name] = {"PALMETTE_PROFILE": str(recording), "PALMETTE_SAMPLE": str(rate)}
    found: list[dict[str, Run]] = []
    run(program, folder, {})
    for number in range(rounds):
        for recording in (calls, *recordings.values()):
            shutil.rmtree(recording, ignore_errors=True)
        names = list(variants)
        turn = names[number % len(names) :] + names[: number % len(names)]
        if number // len(names) % 2:
            turn.reverse()
        found.append({name: run(program, folder, variants[name]) for name in turn})
        for name, recording in recordings.items():
            stacks[name].add(recording)
    columns = [program.name, program.language, CALLS, f"{statistics.median(row[ALONE].wall_s for row in found):.2f} s",
               ratio((row[ALONE].wall_s, row[CALLS].wall_s) for row in found),
               ratio((row[ALONE].cpu_s, row[CALLS].cpu_s) for row in found), *[""] * 7]  # fmt: skip
    print(f"| {' | '.join(columns)} |", flush=True)
    for name, sums in stacks.items():
        same = not any(differs(program, row[ALONE].text, row[name].text) for row in found)
        cpu_s = sum(row[name].cpu_s for row in found)
        columns = [
            program.name, program.language, name, f"{statistics.median(row[ALONE].wall_s for row in found):.2f} s",
            ratio((row[ALONE].wall_s, row[name].wall_s) for row in found),
            ratio((row[ALONE].cpu_s, row[name].cpu_s) for row in found),
            ratio((row[CALLS].cpu_s, row[name].cpu_s) for row in found),
            f"{sums.taken_s / cpu_s:.2%}", f"{sums.samples:,} by {'+'.join(sums.by)}",
            f"{1 - sums.incomplete / max(1, sums.samples):.3%}",
            f"{1 - sums.incomplete_calls / max(1, sums.calls):.3%} of {sums.calls:,}",
            f"{sums.unmerged}", "same" if same else "differs",
        ]  # fmt: skip
        print(f"| {' | '.join(columns)} |", flush=True)
        for what, ends in (("stacks end", sums.ends), ("calls end", sums.call_ends)):
            for place, count in ends.most_common(5):
                print(f"  {program.name}, {name}: {what} at {place}: {count}", file=sys.stderr)
    return {
        "rounds": [{name: [one.wall_s, one.cpu_s] for name, one in row.items()} for row in found],
        "stacks": {name: {**vars(sums), "by": sorted(sums.by)} for name, sums in stacks.items()},
    }


def measure_start(folder: Path, prefix: Path, rates: list[str], rounds: int) -> dict[str, object]:
    """Measure a program that does nothing, and print what each way to start it adds."""
    source, program = folder / "nothing.c", folder / "nothing"
    source.write_text(NOTHING, encoding="utf-8")
    link = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", "-lmpi", f"-Wl,-rpath,{prefix / 'lib'}"]
    subprocess.run(["cc", "-O2", str(source), "-o", str(program), *link], check=True)
    launch = [str(prefix / "bin" / "mpiexec"), "-n", str(RANKS), str(program)]
    nothing = Program("start", "C", "MPICH", launch, libraries=str(prefix / "lib"))
    recording = folder / "recording-start"
    profile = {"PALMETTE_PROFILE": str(recording)}
    ways: dict[str, tuple[Program, dict[str, str]]] = {ALONE: (nothing, {}), "calls": (nothing, profile)}
    for rate in rates:
        ways[f"{rate} Hz"] = nothing, {**profile, "PALMETTE_SAMPLE": str(rate)}
    command = [sys.executable, "-m", "palmette.cli.main", "run", "--off", f"--sample={rates[0]}", "--profile"]
    ways["palmette run"] = replace(nothing, command=[*command, str(recording), *launch]), {}
    found: list[dict[str, Run]] = []
    for number in range(rounds + 1):
        row = {}
        for name in sorted(ways, key=list(ways).index, reverse=bool(number % 2)):
            shutil.rmtree(recording, ignore_errors=True)
            row[name] = run(ways[name][0], folder, ways[name][1])
        found.append(row)
    del found[0]  # warmed up
    alone_ms = 1e3 * statistics.median(row[ALONE].wall_s for row in found)
    for name in (name for name in ways if name != ALONE):
        added = sorted(1e3 * (row[name].wall_s - row[ALONE].wall_s) for row in found)
        skipped = max(0, int(len(added) / 2 - 0.98 * len(added) ** 0.5))
        interval = f"{added[skipped]:+.1f} to {added[-1 - skipped]:+.1f}"
        print(f"start, {name}: {statistics.median(added):+.1f} ms ({interval}) to {alone_ms:.0f} ms", flush=True)
    return {"rounds": [{name: [one.wall_s, one.cpu_s] for name, one in row.items()} for row in found]}


def main() -> None:
    """Prepare, run, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rates", default="100,1000:events")
    parser.add_argument("--only", default=",".join(LONGER))
    parser.add_argument("--short", action="store_true", help="the inputs of table.py: for shares alone")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--mpich", default=str(HERE.parents[1] / ".mpi" / "mpich"))
    options = parser.parse_args()
    folder, rates = options.folder.resolve(), options.rates.split(",")
    inputs.main(folder, RANKS)
    for path in [*HERE.iterdir(), *(HERE.parent.parent / "examples/fft").iterdir()]:
        if path.is_file():
            shutil.copy(path, folder)
    rows: dict[str, object] = {}
    out = folder / "samples.json"
    begin = time.monotonic()
    wanted = options.only.split(",")
    if "start" in wanted or options.only == ",".join(LONGER):
        rows["start"] = measure_start(folder, Path(options.mpich), rates, options.rounds)
    print("| program | | rate | alone | wall | CPU | samples | taken | number | stacks | calls | unmerged | output |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for program in programs(options.python, options.mpich):
        if program.name not in wanted:
            continue
        name, old, new = LONGER.get(program.name, ("", "", ""))
        if name and not options.short:
            text = (folder / name).read_text(encoding="utf-8")
            if old not in text:
                sys.exit(f"sampled.py: {name} has no {old!r}: correct LONGER")
            (folder / name).write_text(text.replace(old, new), encoding="utf-8")
        if program.name == "mpi4py-fft" and not options.short:
            program = replace(program, command=[*program.command[:-2], "96", "10"])
        if not _is_there(program):
            print(f"| {program.name} | {program.language} | isn't installed |", flush=True)
            continue
        try:
            rows[program.name] = measure(program, folder, rates, options.rounds)
        except (FailedError, subprocess.SubprocessError) as error:
            print(f"| {program.name} | {program.language} | {error} |", flush=True)
        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"{out}: all times; {time.monotonic() - begin:.0f} s, load {os.getloadavg()[1]:.1f}")


def _is_there(program: Program) -> bool:
    """Whether its launcher and its program can be executed."""
    at = program.command.index("-n") + 2
    return all(shutil.which(word) for word in (program.command[0], program.command[at]))


if __name__ == "__main__":
    main()
