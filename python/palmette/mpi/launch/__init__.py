"""Command lines for the programs that start MPI jobs: hydra, Intel's hydra, PRRTE (Open MPI), srun, Flux, ALPS, PALS.

`identify` detects which one an mpiexec is; `launcher` returns the class with its options: how to put each rank on a
given host (`command`) and how to set variables in the ranks only, not in the launcher itself (`pass_environment`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palmette.mpi.launch.identify import LauncherKind, LauncherVersion, identify

if TYPE_CHECKING:
    from palmette.mpi.launch.job import Job, Launcher, LaunchError, with_variables

__all__ = [
    "Job", "LaunchError", "Launcher", "LauncherKind", "LauncherVersion", "identify", "launcher", "with_variables",
]  # fmt: skip


def launcher(kind: LauncherKind) -> Launcher:
    """Return the launcher of that kind."""
    # Imported lazily: only one is needed, and the import delays a program's start.
    if kind == "hydra":
        from palmette.mpi.launch.hydra import Hydra

        return Hydra()
    if kind == "intel_hydra":
        from palmette.mpi.launch.intel_hydra import IntelHydra

        return IntelHydra()
    if kind == "prrte":
        from palmette.mpi.launch.prrte import Prrte

        return Prrte()
    if kind == "srun":
        from palmette.mpi.launch.srun import Srun

        return Srun()
    if kind == "flux":
        from palmette.mpi.launch.flux import Flux

        return Flux()
    from palmette.mpi.launch.cray import Cray

    return Cray(kind)


def __getattr__(name: str) -> Any:
    """Return a name of the module `job`, imported on first use."""
    if name not in ("Job", "LaunchError", "Launcher", "with_variables"):
        raise AttributeError(f"module 'palmette.mpi.launch' has no attribute '{name}'")
    from palmette.mpi.launch import job

    return getattr(job, name)
