"""The three MPI ABIs: how a program's ABI is detected from its libraries, and which preload library serves it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from palmette.mpi.errors import RunError
from palmette.mpi.installed import usable
from palmette.mpi.launch.identify import LauncherKind

Abi = Literal["mpich", "ompi", "abi"]
ABIS: tuple[Abi, ...] = get_args(Abi)

SONAMES: dict[Abi, str] = {"mpich": "libmpi.so.12", "ompi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}
MEANING: dict[Abi, str] = {
    "mpich": "MPICH, Intel MPI, MVAPICH, Cray MPICH",
    "ompi": "Open MPI 4 and 5",
    "abi": "the standard ABI of MPI 5",
}

# Cray and others name MPICH's library after the compiler that made it, Debian after MPICH.
_MPICH = re.compile(r"libmpi(?:ch|_(?:cray|gnu|intel|nvidia|amd|aocc|pgi)\w*)?\.so\.12$")
# libmpi of any other kind: old Open MPI (.so.1, .so.20), MPI with 64-bit integers. Not the Fortran or C++ layers.
_UNKNOWN = re.compile(r"libmpi(?:ch|_ilp64)?\.so(?:\.\d+)*$")

_OF_LAUNCHER: dict[LauncherKind, tuple[Abi, ...]] = {
    "hydra": ("mpich", "abi"),
    "intel_hydra": ("mpich", "abi"),
    "prrte": ("ompi", "abi"),
    "srun": ABIS,
    "flux": ABIS,
    "aprun": ABIS,
    "pals": ABIS,
}
STARTS_ALL: tuple[LauncherKind, ...] = ("srun", "flux", "aprun", "pals")
"""Launchers that belong to no MPI."""

LIBRARIES = Path(__file__).resolve().parent.parent / "lib"
"""Where the build puts the preload libraries."""
PROGRAMS = LIBRARIES.with_name("bin")
"""Where the build puts the measuring MPI programs."""


class Evidence(NamedTuple):
    """The ABI of a program's MPI and its provenance, as half a sentence: `app needs libmpi.so.12`.

    Where nothing names it, several ABIs are possible. Their preloads are given together: each detects at run time
    whether the MPI has its ABI, and passes every call through where it hasn't.
    """

    abis: tuple[Abi, ...]
    because: str

    @property
    def abi(self) -> Abi | None:
        """The ABI where it is known, None where there are several."""
        return self.abis[0] if len(self.abis) == 1 else None


def is_mpi(name: str) -> bool:
    """Return whether a library of that name is an MPI itself, of a known ABI or not."""
    return abi_of(name) is not None or _UNKNOWN.match(name) is not None


def abi_of(name: str) -> Abi | None:
    """Return the ABI of the MPI library called `name`, or None when it is no MPI or one of another ABI."""
    for abi, soname in SONAMES.items():
        if name == soname:
            return abi
    return "mpich" if _MPICH.match(name) else None


def abi_of_launcher(kind: LauncherKind) -> Abi | None:
    """Return the ABI of the MPI that brings that launcher; None for srun and flux, which start all."""
    return None if kind in ("srun", "flux") else _OF_LAUNCHER[kind][0]


def abis_of_launcher(kind: LauncherKind) -> tuple[Abi, ...]:
    """Return the ABIs that programs may have which that launcher starts, its own MPI's first."""
    return _OF_LAUNCHER[kind]


def fits_launcher(abi: Abi, kind: LauncherKind) -> bool:
    """Return whether that launcher can start programs of that ABI as one job."""
    return kind in STARTS_ALL or (abi == "ompi") == (kind == "prrte")


def preload_library(abi: Abi, folder: Path = LIBRARIES) -> Path:
    """Return the preload library for `abi`, by a name that LD_PRELOAD takes. Raises RunError where it isn't built."""
    path = folder / f"libpalmette_{abi}.so"
    if not path.is_file():
        raise RunError(
            f"{path.name}, the preload for {SONAMES[abi]}, is not built: configure with PALMETTE_MPI_{abi.upper()} "
            "pointed at such an MPI and build again (`palmette doctor` lists what there is)"
        )
    return usable(path)


def record_library(abi: Abi, folder: Path = LIBRARIES) -> Path:
    """Return the library that records calls and counts messages for `abi`, as `preload_library`. Raises RunError."""
    path = folder / f"libpalmette_record_{abi}.so"
    if not path.is_file():
        raise RunError(
            f"{path.name}, which records calls, is not built: build again, or leave --profile and --trace out"
        )
    return usable(path)


def built(abis: Sequence[Abi], folder: Path = LIBRARIES, *, recorder: bool = False) -> tuple[Abi, ...]:
    """Return those of `abis` for which there is a preload library, and with `recorder` the one that records.

    Raises RunError when there is none.
    """
    found = tuple(
        abi
        for abi in abis
        if (folder / f"libpalmette_{abi}.so").is_file()
        and (not recorder or (folder / f"libpalmette_record_{abi}.so").is_file())
    )
    if not found:
        preload_library(abis[0], folder)
        record_library(abis[0], folder)
    return found


def measuring_program(name: str, abi: str, error_type: type[Exception]) -> Path:
    """Return the program of that name for an ABI: `collbench.mpich`. Raises `error_type` when it isn't built."""
    path = PROGRAMS / f"{name}.{abi}"
    if not path.is_file():
        raise error_type(f"{path.name} is not built; run `make build` with an MPI of that ABI")
    try:
        return usable(path)
    except RunError as error:
        raise error_type(str(error)) from None
