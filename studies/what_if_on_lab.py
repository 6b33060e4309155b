"""What `palmette what-if` expects of changes, against the same program run with them on an emulated cluster.

    .venv/bin/python studies/what_if_on_lab.py

As root; wants `make build` and an otherwise idle machine. tests/mpi/steps.cpp is recorded on 16 ranks, and each change
is expected from that recording, then run. Prints a line for each, and the median error.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from palmette import _core
from palmette.lab import Lab
from palmette.measure.places import free_lab_name
from palmette.mpi.abi import LIBRARIES
from palmette.record.findings import trace_files
from palmette.record.machine import seats_of
from palmette.record.reading import Job, read_job
from palmette.record.what_if import Wanted, auto_placement, with_changes

SPEC = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
PROGRAM = Path(__file__).resolve().parents[1] / "build" / "release" / "tests" / "mpi" / "steps.mpich"
AUTO = "auto"


class Case(NamedTuple):
    """A run, and what is changed: algorithms by collective, or placements."""

    collective: str
    size: int
    halo: int
    placement: str
    force: dict[str, str]
    changes: tuple[dict[str, str] | str, ...]


CASES = (
    Case("allgather", 16384, 0, "block", {"allgather": "ring"},
         tuple({"allgather": spec} for spec in ("linear", "recursive_doubling", "bruck"))),
    Case("bcast", 262144, 0, "block", {"bcast": "linear"}, ({"bcast": "k_nomial"}, {"bcast": "node_pieces"})),
    Case("allreduce", 262144, 0, "random:1", {"allreduce": "recursive_doubling"}, ({"allreduce": "ring"}, "block")),
    Case("none", 0, 60000, "cyclic", {}, ("block", "random:1", AUTO)),
    Case("allgather", 8192, 30000, "random:2", {"allgather": "ring:order=rank"},
         ("block", "cyclic", {"allgather": "ring"})),
)  # fmt: skip


def run(lab: Lab, folder: Path, case: Case, placement: str, force: Mapping[str, str]) -> Job:
    """Run and record the program."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    preload = [LIBRARIES / "libpalmette_record_mpich.so", LIBRARIES / "libpalmette_mpich.so"]
    settings = {
        "LD_PRELOAD": ":".join(map(str, preload)), "PALMETTE_TRACE": str(folder), "PALMETTE_SERVE_AFTER": "0",
        "PALMETTE_TOPOLOGY": str(lab.topology_path), "PALMETTE_ENABLE": "1" if force else "0",
    } | {f"PALMETTE_{name.upper()}": spec for name, spec in force.items()}  # fmt: skip
    words = [str(PROGRAM), case.collective, str(case.size), str(case.halo), "6"]
    done = lab.run(words, mpi="mpich", env=settings, placement=placement, capture=True, timeout_s=120)
    if done.returncode:
        raise SystemExit(f"{case}: status {done.returncode}\n{done.stderr}")
    shutil.copy(lab.topology_path, folder / "topology.json")
    return read_job(folder)


def time_of(job: Job) -> float:
    """Return the time from the end of MPI_Init to the begin of MPI_Finalize."""
    return _core.causes_of(trace_files(job)).measured.measured_s


def main() -> None:
    """Record, expect, run."""
    errors = []
    with tempfile.TemporaryDirectory() as temporary, Lab.up(SPEC, name=free_lab_name("what-if")) as lab:
        for case in CASES:
            job = run(lab, Path(temporary) / "recorded", case, case.placement, case.force)
            seats, _ = seats_of(job)
            assert seats is not None
            for change in case.changes:
                if isinstance(change, dict):
                    placement, force, wanted = case.placement, case.force | change, Wanted(change)
                else:
                    placement, force = change, case.force
                    if change == AUTO:
                        hosts = [seats.job.host_of(place) for place in auto_placement(job, seats).order]
                        placement = f"hosts={','.join(hosts)}"
                    machine = _core.Machine.from_file(str(job.folder / "topology.json"))
                    wanted = Wanted(job=_core.Job(machine, placement, job.size))
                expected = with_changes(job, seats, wanted)
                real_s = time_of(run(lab, Path(temporary) / "changed", case, placement, force))
                error = expected.expected_s / real_s - 1
                errors.append(abs(error))
                times = [expected.time_s, expected.expected_s, *expected.range_s, real_s]
                was, now, low, high, then = map(_core.format_duration, times)
                print(f"{case.collective} {case.size}, halo {case.halo}, {case.placement}, {case.force}: {was}")
                print(f"  {change}: expected {now} ({low} to {high}), then {then}, {error:+.0%}", flush=True)
    print(f"{len(errors)} changes: median error {median(errors):.0%}, largest {max(errors):.0%}")


if __name__ == "__main__":
    main()
