"""Which MPIs a program may use that names none: what the launcher tells, or the job that this process belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from palmette.mpi.abi import ABIS, SONAMES, Abi, Evidence, abis_of_launcher, built
from palmette.mpi.launch import LauncherKind

# What Open MPI's launchers give to each rank, and hydra's, MPICH's and Intel's. Slurm sets PMI_RANK for all MPIs, but
# none of the others. Modules' variables (I_MPI_ROOT, MPI_HOME) and the mpiexec of PATH tell less than they seem to: a
# script may load other modules, and Python brings the MPI of a package.
_RANKS: tuple[tuple[str, LauncherKind], ...] = (
    ("OMPI_COMM_WORLD_RANK", "prrte"),
    ("MPI_LOCALRANKID", "hydra"),
)


def undecided(program: str, kind: LauncherKind | None, environment: Mapping[str, str], libraries: Path) -> Evidence:
    """Return the ABIs that a program may have which names no MPI, started by a launcher of that kind or by none.

    With `PALMETTE_MATRIX` in `environment` only those are meant whose messages can be counted. Raises RunError when no
    preload library is built for any of them.
    """
    abis, why = _possible(kind, environment)
    found = built(abis, libraries, matrix=bool(environment.get("PALMETTE_MATRIX")))
    if len(found) == 1:
        return Evidence(found, f"{program} names no MPI{why}: the preload for {SONAMES[found[0]]} is given")
    listed = f"{', '.join(SONAMES[abi] for abi in found[:-1])} and {SONAMES[found[-1]]}"
    return Evidence(
        found,
        f"{program} names no MPI{why}: the preloads for {listed} are given, each steps aside unless the MPI is its own",
    )


def _possible(kind: LauncherKind | None, environment: Mapping[str, str]) -> tuple[tuple[Abi, ...], str]:
    if kind is not None and kind != "srun":
        return abis_of_launcher(kind), " and its launcher starts programs of several"
    if kind is None:
        for variable, launcher in _RANKS:
            if variable in environment:
                return abis_of_launcher(launcher), f" but is in a job that tells some ({variable})"
    return ABIS, " and nothing tells one"
