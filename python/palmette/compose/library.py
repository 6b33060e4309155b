"""ctypes bindings of the C functions of palmette.h."""

from __future__ import annotations

import ctypes
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from palmette.compose.errors import ComposeError
from palmette.mpi.abi import LIBRARIES
from palmette.mpi.errors import RunError
from palmette.mpi.installed import usable


def mpi() -> Any:
    """Return mpi4py's module MPI, which the caller has imported: palmette itself doesn't need it."""
    module = sys.modules.get("mpi4py.MPI")
    if module is None:
        raise ComposeError("no mpi4py here; import mpi4py.MPI and pass one of its communicators")
    return module


def _installed() -> tuple[str, str]:
    """Return the file and the ABI of this process's MPI. Raises ComposeError where there is none."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    files = re.findall(r"(/\S*/libmpi(?:_abi)?\.so\S*)$", maps, re.MULTILINE)
    if not files:
        raise ComposeError("this process has no MPI loaded; import mpi4py.MPI first")
    file = files[0]
    # Intel MPI's file may be called libmpi.so only, as Open MPI's.
    is_open_mpi = "Open MPI" in mpi().Get_library_version()
    return file, "abi" if Path(file).name.startswith("libmpi_abi") else "ompi" if is_open_mpi else "mpich"


def half_handle(name: str) -> int:
    """Return the MPI handle of `float16` or `bfloat16`, for which the standard has no names.

    Raises ComposeError where this MPI has none.
    """
    _, abi = _installed()
    intel = "Intel" in mpi().Get_library_version()
    known = {
        ("mpich", "float16"): 0x4C000246,
        ("mpich", "bfloat16"): 0x4C000247 if intel else 0x4C00024C,
        ("abi", "float16"): 0x2F8,
        ("abi", "bfloat16"): 0x2F9,
    }
    handle = known.get((abi, name))
    if handle is None:
        raise ComposeError(f"dtype {name}: this MPI has no such type")
    return handle


@cache
def library() -> ctypes.CDLL:
    """Load the library for the MPI of this process. Raises ComposeError where there is none."""
    file, abi = _installed()
    path = LIBRARIES / f"libpalmette_{abi}.so"
    if not path.is_file():
        raise ComposeError(f"{path.name} isn't built, which {file} needs; point the build at this MPI")
    try:
        path = usable(path)  # under the name by which it may be preloaded already
    except RunError as error:
        raise ComposeError(str(error)) from None
    # mpi4py loads the MPI with RTLD_LOCAL; the library resolves its symbols globally.
    ctypes.CDLL(file, mode=ctypes.RTLD_GLOBAL)
    return _declared(ctypes.CDLL(str(path)))


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    handle = {name: _handle_type(name) for name in ("Comm", "Datatype", "Op")}
    number, long, pointer, text = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
    longs = ctypes.POINTER(long)
    numbers = ctypes.POINTER(number)
    doubles = ctypes.POINTER(ctypes.c_double)
    out = ctypes.POINTER(pointer)
    signatures: dict[str, list[Any]] = {
        "composition_create": [number, long, longs, long, handle["Datatype"], out],
        "composition_buffer": [pointer, text, numbers],
        "composition_multicast": [pointer, number, numbers, number, number, long, long, number],
        "composition_reduce": [pointer, numbers, number, number, number, long, long, number, handle["Op"]],
        "composition_hold": [pointer, number, number, long, long],
        "composition_fence": [pointer],
        "plan_make": [pointer, handle["Comm"], text, out],
        "plan_buffer_bytes": [pointer, number, longs],
        "plan_scratch_bytes": [pointer, longs],
        "plan_single_copies": [pointer, longs],
        "plan_device_messages": [pointer, longs],
        "sparse_make": [
            longs,
            long,
            long,
            long,
            number,
            handle["Datatype"],
            handle["Op"],
            long,
            handle["Comm"],
            text,
            out,
        ],
        "sparse_size": [pointer, longs, longs, longs, longs, longs],
        "sparse_rows": [pointer, longs, longs],
        "sparse_plan": [pointer, number, out],
        "exchange": [numbers, longs, number, pointer, handle["Datatype"], handle["Comm"], out],
        "arrivals_size": [pointer, numbers, longs],
        "arrivals_take": [pointer, numbers, longs, pointer],
        "positions": [handle["Comm"], numbers],
        "comm_split": [handle["Comm"], text, number, pointer, pointer],
        "reorder": [handle["Comm"], text, doubles, pointer],
        "distances": [handle["Comm"], long, doubles],
        "bind": [pointer, out, number, out],
        "start": [pointer],
        "test": [pointer, numbers],
        "wait": [pointer],
    }
    for name, arguments in signatures.items():
        function = getattr(loaded, f"palmette_{name}")
        function.argtypes, function.restype = arguments, number
    for name in ("composition_free", "plan_free", "run_free", "sparse_free", "arrivals_free"):
        function = getattr(loaded, f"palmette_{name}")
        function.argtypes, function.restype = [pointer], None
    loaded.palmette_error.argtypes, loaded.palmette_error.restype = [], text
    return loaded


def _handle_type(name: str) -> Any:
    """The ctypes type of an MPI handle: int or pointer, by its size."""
    module = mpi()
    return ctypes.c_int if module._sizeof(getattr(module, name)) == ctypes.sizeof(ctypes.c_int) else ctypes.c_void_p


def handle_of(thing: Any) -> int:
    """Return the MPI handle of an mpi4py object."""
    return int(mpi()._handleof(thing))


def call(name: str, *arguments: Any) -> None:
    """Call a function of palmette.h. Raises ComposeError with the text of `palmette_error`."""
    loaded = library()
    if getattr(loaded, f"palmette_{name}")(*arguments) != 0:
        raise ComposeError(loaded.palmette_error().decode())
