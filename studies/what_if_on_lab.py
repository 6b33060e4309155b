"""What `palmette what-if` expects of changes, against the same program run with them on an emulated cluster.

    .venv/bin/python studies/what_if_on_lab.py [--python PYTHON] [--write SAMPLES.json]

As root; wants `make build` and an otherwise idle machine. Programs are recorded on 16 ranks, and each change is
expected from that recording, then run: tests/mpi/steps.cpp, and with a PYTHON that has mpi4py, mpi4py-fft, shift-fft
and scipy the FFTs and the tomography of examples/. Prints a row of Markdown for each change, and what the errors are.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from palmette import _core
from palmette import settings as palmette_settings
from palmette.mpi.abi import LIBRARIES
from palmette.record.findings import trace_files
from palmette.record.machine import seats_of
from palmette.record.reading import Job, read_job
from palmette.record.what_if import Alternative, auto_placement, with_changes
from palmette_lab.lab import Lab
from palmette_lab.place import free_lab_name

ROOT = Path(__file__).resolve().parents[1]
SPEC = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
STEPS = str(ROOT / "build" / "release" / "tests" / "mpi" / "steps.mpich")
FFT, TOMOGRAPHY = ROOT / "examples" / "fft", ROOT / "examples" / "tomography"
PYTHON = "python"
"""Stands for --python."""
AUTO = "auto"


@dataclass(frozen=True)
class Case:
    """A run, and what is changed: algorithms by collective, or placements."""

    name: str
    words: tuple[str, ...]
    placement: str
    force: dict[str, str]
    changes: tuple[dict[str, str] | str, ...]


def steps(collective: str, size: int, halo: int) -> tuple[str, ...]:
    """Return the words that start six rounds of it."""
    return STEPS, collective, str(size), str(halo), "6"


CASES = (
    Case("allgather of 16 KB", steps("allgather", 16384, 0), "block", {"allgather": "ring"},
         tuple({"allgather": spec} for spec in ("linear", "recursive_doubling", "bruck"))),
    Case("bcast of 256 KB", steps("bcast", 262144, 0), "block", {"bcast": "linear"},
         ({"bcast": "k_nomial"}, {"bcast": "node_pieces"})),
    Case("allreduce of 256 KB", steps("allreduce", 262144, 0), "random:1", {"allreduce": "recursive_doubling"},
         ({"allreduce": "ring"}, "block")),
    Case("halo of 60 KB", steps("none", 0, 60000), "cyclic", {}, ("block", "random:1", AUTO)),
    Case("allgather of 8 KB, halo of 30 KB", steps("allgather", 8192, 30000), "random:2",
         {"allgather": "ring:order=rank"}, ("block", "cyclic", {"allgather": "ring"})),
    Case("FFT in a grid, vortex.py 64 1", (PYTHON, str(FFT / "vortex.py"), "64", "1"), "random:1", {},
         ("block", "cyclic")),
    Case("FFT in slabs, slab.py", (PYTHON, str(FFT / "slab.py")), "random:1", {"alltoall": "linear"},
         ({"alltoall": "leaders"}, "block")),
    Case("tomography, reconstruct.py",
         (PYTHON, str(TOMOGRAPHY / "reconstruct.py"), "--by", "allreduce", "--cells", "64", "--slices", "2",
          "--iterations", "5"),
         "random:1", {"allreduce": "recursive_doubling"}, ({"allreduce": "ring"}, {"allreduce": "rabenseifner"})),
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A change, in seconds of the program between MPI_Init and MPI_Finalize."""

    program: str
    recorded: str
    changed: str
    recorded_s: float
    expected_s: float
    range_s: tuple[float, float]
    then_s: float

    @property
    def error(self) -> float:
        """Error of the expected time, relative to what came out."""
        return self.expected_s / self.then_s - 1

    @property
    def row(self) -> str:
        """A row of the table."""
        times = [self.recorded_s, self.expected_s, *self.range_s, self.then_s]
        was, now, low, high, then = map(_core.format_duration, times)
        changed = f"| {self.program} | {self.recorded} | {self.changed} | {was} | {now} | {low} to {high} |"
        return f"{changed} {then} | {100 * self.error:+.0f} % |"


def run(lab: Lab, folder: Path, words: tuple[str, ...], placement: str, force: Mapping[str, str]) -> Job:
    """Run and record the program."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    preload = [LIBRARIES / "libpalmette_record_mpich.so", LIBRARIES / "libpalmette_mpich.so"]
    settings = {
        "LD_PRELOAD": ":".join(map(str, preload)), "PALMETTE_TRACE": str(folder), "PALMETTE_SERVE_AFTER": "0",
        "PALMETTE_TOPOLOGY": str(lab.topology_path), "PALMETTE_ENABLE": "1" if force else "0",
    } | palmette_settings.force(**force)  # fmt: skip
    done = lab.run(list(words), mpi="mpich", env=settings, placement=placement, capture=True, timeout_s=300)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr}")
    shutil.copy(lab.topology_path, folder / "topology.json")
    return read_job(folder)


def time_of(job: Job) -> float:
    """Return the time from the end of MPI_Init to the begin of MPI_Finalize."""
    return _core.causes_of(trace_files(job)).measured.measured_s


def told(force: Mapping[str, str], placement: str) -> str:
    """Return a run's settings in a few words."""
    return ", ".join(
        [*(f"`{spec}`" for spec in force.values()), "best that is found" if placement == AUTO else placement]
    )


def main() -> None:
    """Record, expect, run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="runs the FFTs and the tomography; they are left out without it")
    parser.add_argument("--write", type=Path, metavar="FILE", help="all samples, as JSON")
    asked = parser.parse_args()
    samples: list[Sample] = []
    print(
        "| program | recorded | changed to | run time | expected | range | then | error |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as temporary, Lab.up(SPEC, name=free_lab_name("what-if")) as lab:
        for case in CASES:
            if PYTHON in case.words and not asked.python:
                continue
            words = tuple(asked.python if word == PYTHON else word for word in case.words)
            job = run(lab, Path(temporary) / "recorded", words, case.placement, case.force)
            seats, _ = seats_of(job)
            assert seats is not None
            for change in case.changes:
                if isinstance(change, dict):
                    placement, force, wanted = case.placement, case.force | change, Alternative(change)
                else:
                    placement, force = change, case.force
                    if change == AUTO:
                        hosts = [seats.job.host_of(place) for place in auto_placement(job, seats).order]
                        placement = f"hosts={','.join(hosts)}"
                    machine = _core.Machine.from_file(str(job.folder / "topology.json"))
                    wanted = Alternative(job=_core.Job(machine, placement, job.size))
                expected = with_changes(job, seats, wanted)
                then_s = time_of(run(lab, Path(temporary) / "changed", words, placement, force))
                changed = told(change, case.placement) if isinstance(change, dict) else told(case.force, change)
                samples.append(
                    Sample(case.name, told(case.force, case.placement), changed, expected.time_s, expected.expected_s,
                           expected.range_s, then_s)
                )  # fmt: skip
                print(samples[-1].row, flush=True)
    errors = [abs(sample.error) for sample in samples]
    right = sum((s.expected_s < s.recorded_s) == (s.then_s < s.recorded_s) for s in samples)
    within = sum(sample.range_s[0] <= sample.then_s <= sample.range_s[1] for sample in samples)
    low, _, high = quantiles(errors, n=4)
    print(
        f"\n{len(errors)} changes: median error {median(errors):.0%}, quartiles {low:.0%} and {high:.0%}, largest "
        f"{max(errors):.0%}; {right} in the right direction, {within} within the range"
    )
    if asked.write:
        asked.write.write_text(json.dumps([asdict(sample) for sample in samples], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
