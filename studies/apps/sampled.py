"""What sampling costs programs of others, and how many of their stacks are whole: the programs of table.py by turns
with `palmette run --sample` and without, and what their recordings say. Prints a table.

`complete`: of samples, those whose stack reaches the thread's start. `CPU`: the processor time
of all the command's processes, median of the ratios of pairs and its 95 % interval.

Usage: sampled.py FOLDER [--rounds N] [--rate HZ] [--only NAME,...] [--python VENV/bin/python] [--mpich PREFIX]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import inputs
from table import HERE, RANKS, Program, programs

from palmette import _core
from palmette.record.reading import read_job

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eEdD][-+]?\d+)?")


@dataclass
class Stacks:
    """What a recording says of its stacks."""

    samples: int = 0
    incomplete: int = 0
    unmerged: int = 0
    calls: int = 0
    pathless: int = 0
    seconds: float = 0.0
    """Of taking the samples, without the signals."""

    def share(self) -> float:
        """Return how many samples reach a start."""
        return 1 - self.incomplete / max(1, self.samples)


def run(program: Program, folder: Path, rate: int, recording: Path | None) -> tuple[float, str]:
    """Return the processor time of a run, in seconds, and its output."""
    if program.prepare:
        subprocess.run(["sh", "-c", program.prepare], cwd=folder, check=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PALMETTE_ENABLE": "0"}
    if program.libraries:
        environment["LD_LIBRARY_PATH"] = program.libraries
    words = program.command
    if recording is not None:
        sampled = [sys.executable, "-m", "palmette.cli.main", "run", f"--sample={rate}", "--profile", str(recording)]
        words = [*sampled, *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=900)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"sampled.py: {program.name} ends with {done.returncode}: {done.stderr.strip()[-300:]}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.stdout


def differs(program: Program, one: str, other: str) -> bool:
    """Whether two outputs have other numbers, but for lines with times."""
    tolerance = float(program.tolerance)

    def numbers(text: str) -> list[float]:
        lines = [line for line in text.splitlines() if not any(re.search(part, line) for part in program.ignored)]
        return [float(word.lower().replace("d", "e")) for line in lines for word in NUMBER.findall(line)]

    first, second = numbers(one), numbers(other)
    return len(first) != len(second) or any(
        abs(a - b) > tolerance * max(1.0, abs(a), abs(b)) for a, b in zip(first, second, strict=True)
    )


def stacks_of(recording: Path, ends: Counter[str]) -> Stacks:
    """Return the sums of a job; `ends` counts by module where stacks end that don't reach a start."""
    out = Stacks()
    for process in read_job(recording).processes:
        sampling = process.recorded.sampling
        out.samples += sampling.samples
        out.incomplete += sampling.incomplete
        out.unmerged += sampling.unmerged
        out.seconds += sampling.seconds
        contexts = process.recorded.contexts
        below: dict[int, int] = {}
        for index in range(len(contexts) - 1, 0, -1):
            # Parents come first, so that sums go outwards.
            below[index] = below.get(index, 0) + contexts[index].samples
            parent = contexts[index].parent
            if parent:
                below[parent] = below.get(parent, 0) + below[index]
                if contexts[parent].kind == _core.ContextKind.lost:
                    ends[f"{Path(contexts[index].module).name}+{contexts[index].offset:#x}"] += below[index]
        out.calls += sum(row.calls for row in process.recorded.aggregates)
        out.pathless += sum(row.calls for row in process.recorded.aggregates if row.path == 0)
    return out


def main() -> None:
    """Prepare, run, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--mpich", default="/usr")
    options = parser.parse_args()
    folder = options.folder.resolve()
    inputs.main(folder, RANKS)
    for path in [*HERE.iterdir(), *(HERE.parent.parent / "examples/fft").iterdir()]:
        if path.is_file():
            shutil.copy(path, folder)
    rows: dict[str, object] = {}
    print("| program | | CPU alone | with samples | ratio | samples | complete | unmerged | us a sample | output |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for program in programs(options.python, options.mpich):
        if options.only and program.name not in options.only.split(","):
            continue
        pairs, stacks, ends, same = [], Stacks(), Counter[str](), True
        run(program, folder, options.rate, None)  # warms up
        for number in range(options.rounds):
            recording = folder / f"recording-{''.join(filter(str.isalnum, program.name))}"
            shutil.rmtree(recording, ignore_errors=True)
            order = [None, recording] if number % 2 else [recording, None]
            spent, texts = {}, {}
            for kind in order:
                spent[kind is None], texts[kind is None] = run(program, folder, options.rate, kind)
            pairs.append((spent[True], spent[False]))
            same = same and not differs(program, texts[True], texts[False])
            found = stacks_of(recording, ends)
            for name in ("samples", "incomplete", "unmerged", "calls", "pathless", "seconds"):
                setattr(stacks, name, getattr(stacks, name) + getattr(found, name))
        ratios = sorted(sampled / alone for alone, sampled in pairs)
        skipped = max(0, int(len(ratios) / 2 - 0.98 * len(ratios) ** 0.5))
        rows[program.name] = {"pairs": pairs, **vars(stacks), "ends": ends.most_common(10), "same": same}
        print(
            f"| {program.name} | {program.language} | {statistics.median(a for a, _ in pairs):.2f} s | "
            f"{statistics.median(b for _, b in pairs):.2f} s | {statistics.median(ratios):.3f} "
            f"({ratios[skipped]:.3f}-{ratios[-1 - skipped]:.3f}) | {stacks.samples:,} | {stacks.share():.2%} | "
            f"{stacks.unmerged} | {stacks.seconds / max(1, stacks.samples) * 1e6:.1f} | "
            f"{'same' if same else 'differs'} |",
            flush=True,
        )
        for name, count in ends.most_common(5):
            print(f"  ends behind {name}: {count}", file=sys.stderr)
    (folder / "sampled.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
