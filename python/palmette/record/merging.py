"""Merges the samples of a big job by an MPI program: `mpiexec -n 8 python -m palmette.record.merging DIR`.

Each process merges its share of the job's processes on all of its processors; then pairs of neighbours merge what both
have, then pairs of those, until the first one has all, and writes it into the recording's folder, where `palmette
report` and the others find it. Shares are merged in the order of the job's processes: the file is the same, to the
byte, for any number of processes. Messages go by mpi4py.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.record.reading import Job, RecordError, read_job

MERGED = "samples.merged"
"""The file's name."""
MAGIC = b"palmette merged samples 1\n"
HEAD_BYTES = len(MAGIC) + hashlib.sha256().digest_size
LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
"""What launchers tell a process: how many there are."""
PIECE = 1 << 30
"""Bytes of a message: counts of older MPIs have 31 bits."""


def sampled_files(job: Job) -> list[str]:
    """Return the files of a job; none where it has no samples."""
    if not any(process.recorded.sampling.samples for process in job.processes):
        return []
    return list(dict.fromkeys(str(process.file) for process in job.processes if process.file))


def read_contexts(job: Job) -> _core.ReadContexts | None:
    """Return the calling contexts of a job, as they were merged or else by merging them; None where it has no samples.
    Raises _core.Error.
    """
    files = sampled_files(job)
    if not files:
        return None
    with suppress(OSError):
        written = (job.folder / MERGED).read_bytes()
        packed = written[HEAD_BYTES:]
        if written[:HEAD_BYTES] == _head(job, packed):
            found = _core.read_contexts([])
            found.append(packed)
            return found
    return _core.read_contexts(files)


def _head(job: Job, packed: bytes) -> bytes:
    """Return what tells a job's samples from those of others, from fewer of the same that still runs, and from what is
    damaged.
    """
    taken = sorted(
        (one.host, one.recorded.pid, one.recorded.begin_real_ns, one.recorded.rank, one.recorded.sampling.samples)
        for one in job.processes
    )
    found = hashlib.sha256(json.dumps(taken).encode())
    found.update(packed)
    return MAGIC + found.digest()


def merge(folder: Path, world: Any) -> int | None:
    """Merge a recording's samples by all processes of a communicator of mpi4py's (None: alone); collective. Return the
    number of ranks on the first process, None on the others, which have ended their part even where it raises
    RecordError.
    """
    rank, size = (world.rank, world.size) if world else (0, 1)
    error, job, found = "", None, None
    try:
        job = read_job(folder, with_tables=False)
        files = sampled_files(job)
        if not files:
            raise RecordError(f"{folder}: it has no samples; `palmette run --sample` takes some")
        found = _core.read_contexts(files, share=rank, shares=size)
    except (RecordError, _core.Error) as raised:
        error = str(raised)
    step = 1
    while step < size:
        if rank % (2 * step):
            _send(world, rank - step, error, found)
            return None
        if rank + step < size:
            theirs, packed = _receive(world, rank + step)
            error = error or theirs
            if found and not error:
                found.append(packed)
        step *= 2
    if error or not found or not job:
        raise RecordError(error)
    packed = found.packed()
    half = folder / f".{MERGED}.{os.getpid()}"
    try:
        half.write_bytes(_head(job, packed) + packed)
        half.replace(folder / MERGED)
    except OSError as raised:
        half.unlink(missing_ok=True)
        raise RecordError(f"{folder / MERGED}: {raised.strerror}") from None
    return len(found.ranks)


def _send(world: Any, to: int, error: str, found: _core.ReadContexts | None) -> None:
    packed = found.packed() if found and not error else b""
    world.send((error, len(packed)), to)
    for begin in range(0, len(packed), PIECE):
        world.Send(packed[begin : begin + PIECE], to)


def _receive(world: Any, source: int) -> tuple[str, bytes]:
    error, size = world.recv(source=source)
    packed = bytearray(size)
    for begin in range(0, size, PIECE):
        world.Recv(memoryview(packed)[begin : begin + PIECE], source)
    return error, bytes(packed)


def _world() -> Any:
    """Return all processes that a launcher has started; None: there is no mpi4py, and this one is alone."""
    started = max((int(os.environ[name]) for name in LAUNCHED if os.environ.get(name, "").isdigit()), default=1)
    try:
        # Not needed: one process merges without it.
        mpi = import_module("mpi4py.MPI")
    except (ImportError, RuntimeError):
        if started == 1:
            return None
        raise RecordError(f"{started} processes share out the merging by mpi4py: install it, or start one") from None
    if mpi.COMM_WORLD.size < started:
        raise RecordError(
            f"{started} processes were started, and mpi4py's MPI sees {mpi.COMM_WORLD.size}: use that MPI's mpiexec"
        )
    return mpi.COMM_WORLD


def main(words: Sequence[str]) -> int:
    """Merge the samples of the recording that is named. Return the exit status."""
    if len(words) != 1:
        print("usage: mpiexec -n 8 python -m palmette.record.merging RECORDING", file=sys.stderr)
        return 2
    try:
        ranks = merge(Path(words[0]), _world())
    except RecordError as error:
        print(f"palmette: {error}", file=sys.stderr)
        return 2
    if ranks is not None:
        print(f"{Path(words[0]) / MERGED}: samples of {ranks:,} ranks, which palmette report takes from here")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
