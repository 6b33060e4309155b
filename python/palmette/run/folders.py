"""The folder that a job's calls are recorded in: whether it may be used.

Nothing is decided by what one rank of a job finds in it: ranks that are started by `palmette run` themselves
(`mpiexec -n 4 palmette run --trace t ./app`) come one after the other, and those that refuse leave the others waiting.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from pathlib import Path

RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "PMI_RANK")
"""Set in each rank by the launchers of Open MPI, and of MPICH and Intel MPI."""
_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_MAGIC = b"PALMREC\0"
_FILE_HEADER, _SECTION_HEADER = "=8sIIQ", "=8sQ"
"""The beginnings of FileHeader and SectionHeader (src/palmette/trace/format.hpp)."""


def is_rank(environment: Mapping[str, str]) -> bool:
    """Whether this process is one rank of a job, started by a launcher."""
    # Slurm's batch script has a SLURM_PROCID, too, but is no task of a step.
    in_step = "SLURM_PROCID" in environment and "SLURM_LOCALID" in environment and "SLURM_STEP_ID" in environment
    return in_step or any(name in environment for name in RANK_VARIABLES)


def unmappable(folder: Path) -> str:
    """Return why processes of a node can't share a file there, and what to do; nothing where they can."""
    import mmap  # most jobs aren't recorded, and wait for this module

    trial = folder / f".trial-{os.uname().nodename}-{os.getpid()}"
    try:
        handle = os.open(trial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return f"{error.strerror}; give a folder that can be written to"
    try:
        # Room for the page, too: writing to one that finds none ends the process.
        os.write(handle, bytes(mmap.PAGESIZE))
        with mmap.mmap(handle, mmap.PAGESIZE) as memory:
            memory[0] = 1
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            return f"{error.strerror}; give a folder with room for a recording"
        return (
            f"its file system can't share a file's pages between processes ({error.strerror}), which a recording needs;"
            " give a folder on another one, such as /tmp"
        )
    finally:
        os.close(handle)
        trial.unlink(missing_ok=True)
    return ""


def holds_calls(path: Path) -> bool:
    """Whether some process has begun to record into a file; also for a file of another kind, which isn't ours."""
    from struct import calcsize, unpack

    with path.open("rb") as file:
        head = file.read(calcsize(_FILE_HEADER))
        if not head.strip(b"\0"):
            return False
        if len(head) < calcsize(_FILE_HEADER) or not head.startswith(_MAGIC):
            return True
        _, _, at, end = unpack(_FILE_HEADER, head)
        while at < end:
            file.seek(at)
            section = file.read(calcsize(_SECTION_HEADER))
            if len(section) < calcsize(_SECTION_HEADER):
                break
            magic, length = unpack(_SECTION_HEADER, section)
            if magic == _MAGIC:
                return True
            if length == 0:
                break
            at += length
    return False


def trouble_of_rank(folder: Path) -> str:
    """Return why this rank can't record there; another rank of its job may have begun to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        own = folder / f"{os.uname().nodename}.palmette"
        if own.exists() and _begun_before_job(own):
            return "it holds the recording of another job; give another folder, or remove it first"
    except OSError as error:
        return error.strerror or str(error)
    return unmappable(folder)


def _begun_before_job(recording: Path) -> bool:
    """Whether the first process that recorded there did so before this job was started on this node."""
    from palmette import _core

    started = _job_start_s()
    if started is None:
        return False
    try:
        processes = _core.Recording.read(str(recording), False).processes
    except _core.Error:
        return False
    return any(one.begin_real_ns < started * 1e9 for one in processes)


def _job_start_s() -> float | None:
    """Return when what starts the ranks of this node was started itself, by CLOCK_REALTIME; None: not known.

    That is the nearest ancestor that is no rank. It is there before any of them.
    """
    pid, uptime_s = os.getppid(), time.clock_gettime(time.CLOCK_BOOTTIME)
    for _ in range(16):
        try:
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        names = {word.partition(b"=")[0].decode("ascii", "replace") for word in words}
        if not is_rank(dict.fromkeys(names, "")):
            return time.time() - uptime_s + int(fields[19]) / os.sysconf("SC_CLK_TCK")
        pid = int(fields[1])
    return None


def speaks_for_node(environment: Mapping[str, str]) -> bool:
    """Whether this rank is the first on its node, or isn't counted."""
    known = [environment[name] for name in _LOCAL_RANKS if name in environment]
    return not known or known[0] == "0"
