"""Candidate MPIs of a program that isn't linked with one: inferred from the launcher or the enclosing job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from palmette.mpi.abi import ABIS, SONAMES, STARTS_ALL, Abi, Evidence, abis_of_launcher, built
from palmette.mpi.launch import LauncherKind
from palmette.run.choices import RECORDED

# Set in each rank by Open MPI's launchers, and by MPICH's and Intel's hydra. Slurm sets PMI_RANK for all MPIs, but none
# of these. Modules' variables (I_MPI_ROOT, MPI_HOME) and the mpiexec of PATH are no evidence: a script may load other
# modules, and Python may bring the MPI of a package.
_RANKS: tuple[tuple[str, LauncherKind], ...] = (
    ("OMPI_COMM_WORLD_RANK", "prrte"),
    ("MPI_LOCALRANKID", "hydra"),
)


def undecided(program: str, kind: LauncherKind | None, environment: Mapping[str, str], libraries: Path) -> Evidence:
    """Return the ABIs that a program may have which names no MPI, started by a launcher of that kind or by none.

    With one of RECORDED in `environment` only those whose calls can be recorded. Raises RunError when no preload
    library is built for any of them.
    """
    abis, why = _possible(kind, environment)
    found = built(abis, libraries, recorder=any(environment.get(name) for name in RECORDED))
    if len(found) == 1:
        return Evidence(found, f"{program} names no MPI{why}: the preload for {SONAMES[found[0]]} is given")
    listed = f"{', '.join(SONAMES[abi] for abi in found[:-1])} and {SONAMES[found[-1]]}"
    return Evidence(
        found,
        f"{program} names no MPI{why}: the preloads for {listed} are given, each inactive unless the MPI has its ABI",
    )


def _possible(kind: LauncherKind | None, environment: Mapping[str, str]) -> tuple[tuple[Abi, ...], str]:
    if kind is not None and kind not in STARTS_ALL:
        return abis_of_launcher(kind), " and its launcher starts programs of several"
    if kind is None:
        for variable, launcher in _RANKS:
            if variable in environment:
                return abis_of_launcher(launcher), f" but runs in a job that shows some ({variable})"
    return ABIS, " and none can be inferred"
