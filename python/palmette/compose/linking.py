"""Headers and libraries for C and C++ programs that use the composition API (palmette.h)."""

from __future__ import annotations

from pathlib import Path

from palmette.compose.errors import ComposeError
from palmette.mpi.abi import LIBRARIES

_ABI_OF = {"mpich": "mpich", "impi": "mpich", "openmpi": "ompi", "ompi": "ompi", "abi": "abi"}
HEADERS = LIBRARIES.parent / "include"
"""Where the build puts palmette.h and palmette.hpp."""


def headers() -> Path:
    """Return the folder of palmette.h and palmette.hpp. Raises ComposeError where it wasn't installed."""
    if not (HEADERS / "palmette.h").is_file():
        raise ComposeError("palmette.h isn't installed; run `make build` with an MPI")
    return HEADERS


def library_for(mpi: str) -> Path:
    """Return the library for an MPI or an ABI. Raises ComposeError."""
    if mpi not in _ABI_OF:
        raise ComposeError(f"--libs {mpi}: expected {', '.join(_ABI_OF)}")
    path = LIBRARIES / f"libpalmette_{_ABI_OF[mpi]}.so"
    if not path.is_file():
        raise ComposeError(f"{path.name} isn't built; run `make build` with an MPI of that ABI")
    return path
