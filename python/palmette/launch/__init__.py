"""Command lines for the programs that start MPI jobs: hydra, Intel's hydra, PRRTE (Open MPI) and srun.

`identify` tells which one an mpiexec is; `launcher` returns what knows its options: how to put each rank on a given host
(`command`) and how to give variables to the ranks alone, not to the launcher itself (`pass_environment`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palmette.launch.identify import Identified, LauncherKind, identify

if TYPE_CHECKING:
    from palmette.launch.job import Job, Launcher, LaunchError

__all__ = ["Identified", "Job", "LaunchError", "Launcher", "LauncherKind", "identify", "launcher"]


def launcher(kind: LauncherKind) -> Launcher:
    """Return the launcher of that kind."""
    # One is needed at a time, and a program's start waits for it.
    if kind == "hydra":
        from palmette.launch.hydra import Hydra

        return Hydra()
    if kind == "intel_hydra":
        from palmette.launch.intel_hydra import IntelHydra

        return IntelHydra()
    if kind == "prrte":
        from palmette.launch.prrte import Prrte

        return Prrte()
    from palmette.launch.srun import Srun

    return Srun()


def __getattr__(name: str) -> Any:
    """Return what stands in `job`, for those who start jobs of their own."""
    if name not in ("Job", "LaunchError", "Launcher"):
        raise AttributeError(f"module 'palmette.launch' has no attribute '{name}'")
    from palmette.launch import job

    return getattr(job, name)
