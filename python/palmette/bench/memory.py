"""Benchmarks of buffers in a GPU's memory: which MPIs can read it by themselves, found out by a job of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Literal

from palmette.measure.errors import BenchError
from palmette.measure.job_output import error_line
from palmette.measure.places import Place, program
from palmette.measure.running import TIMED_OUT
from palmette.mpi import install as mpi_install
from palmette.mpi.install import Installation

Memory = Literal["host", "cuda", "managed"]
MEMORIES: tuple[Memory, ...] = ("host", "cuda", "managed")

_TRIAL_S = 60.0
_TRIAL_CELLS = "bcast:64,bcast:262144,allreduce:262144,alltoall:65536"
"""Short and long messages, moved and added: MPIs that know nothing of GPUs die in one of them, or return wrong data."""
_REFUSED = "'--memory': "


def mpis_that_need_copies(
    memory: str, names: Sequence[str], place: Place, hosts: Sequence[str], env: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the MPIs that can't read buffers in `memory`: they die of it, return wrong data, or hang.

    Raises BenchError where there is no GPU, or no memory of that kind.
    """
    if memory == "host":
        return ()
    return tuple(name for name in names if not _reads(place.mpi or mpi_install.find(name), memory, place, hosts, env))


def _reads(mpi: Installation, memory: str, place: Place, hosts: Sequence[str], env: Mapping[str, str]) -> bool:
    # First with copies: what fails then isn't the MPI's doing.
    done = _trial(mpi, [*_arguments(memory), "--copies"], place, hosts, env)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if _REFUSED in line]
        why = lines[0].split(_REFUSED)[1] if lines else error_line(done)
        raise BenchError(f"--memory {memory}: {why}")
    return _trial(mpi, _arguments(memory), place, hosts, env).returncode == 0


def _arguments(memory: str) -> list[str]:
    once = ["--min-iterations", "1", "--max-iterations", "1", "--warmup", "0", "--seconds", "0"]
    return ["--memory", memory, "--cells", _TRIAL_CELLS, *once]


def _trial(
    mpi: Installation, arguments: Sequence[str], place: Place, hosts: Sequence[str], env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    without_cores = ["sh", "-c", 'ulimit -c 0; exec "$0" "$@"', str(program(mpi.abi))]
    done = place.run(mpi, hosts, [*without_cores, *arguments], dict(env), _TRIAL_S)
    if done.returncode == TIMED_OUT:
        return subprocess.CompletedProcess(done.args, TIMED_OUT, done.stdout, f"no end within {_TRIAL_S:.0f} s")
    return done
