"""Intra-node transports on this machine: shared memory, process_vm_readv (CMA), XPMEM."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_XPMEM_DEVICE = Path("/dev/xpmem")
_XPMEM_LIBRARY = "libxpmem.so.0"


def shared_memory() -> tuple[bool, str]:
    """Return whether shared memory can be created as the preload library does it, and a sentence."""
    try:
        descriptor = os.memfd_create("palmette-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except (OSError, AttributeError) as error:
        return False, f"no memfd ({error}); ranks of a node use messages"
    try:
        os.ftruncate(descriptor, mmap.PAGESIZE)
        with mmap.mmap(descriptor, mmap.PAGESIZE):
            pass
        os.close(os.open(f"/proc/{os.getpid()}/fd/{descriptor}", os.O_RDWR))
    except OSError as error:
        return False, f"{error.strerror}: ranks of a node use messages"
    finally:
        os.close(descriptor)
    return True, "memfd: ranks of a node share it, and nothing is left behind"


def single_copy() -> tuple[bool, str]:
    """Return whether a rank can read another one's memory with process_vm_readv, and a sentence."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.process_vm_readv  # noqa: B018 - the lookup is the question
    except (OSError, AttributeError):
        return False, "this C library has no process_vm_readv"
    try:
        scope = int(_YAMA.read_text(encoding="ascii"))
    except (OSError, ValueError):
        scope = 0
    # At 1 a process may permit others to read it (PR_SET_PTRACER), which the preload library does.
    if scope <= 1:
        return True, "process_vm_readv: large data can be read where it is"
    return (
        False,
        f"{_YAMA} is {scope}: only the administrator may read other processes; data goes through shared memory",
    )


def xpmem() -> tuple[bool, str]:
    """Return whether XPMEM is available, and a sentence."""
    if not _XPMEM_DEVICE.exists():
        return False, "no /dev/xpmem: the module is not loaded; process_vm_readv is used where it pays"
    try:
        ctypes.CDLL(_XPMEM_LIBRARY)
    except OSError:
        return False, f"/dev/xpmem is there, but no {_XPMEM_LIBRARY}"
    return True, f"{_XPMEM_LIBRARY} and /dev/xpmem"
