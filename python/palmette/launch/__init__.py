"""Command lines for the programs that start MPI jobs: hydra, Intel's hydra, PRRTE (Open MPI) and srun.

`identify` tells which one an mpiexec is; `launcher` returns what knows its options: how to put each rank on a given host
(`command`) and how to give variables to the ranks alone, not to the launcher itself (`pass_environment`).
"""

from __future__ import annotations

from palmette.launch.hydra import Hydra
from palmette.launch.identify import Identified, LauncherKind, identify
from palmette.launch.intel_hydra import IntelHydra
from palmette.launch.job import Job, Launcher, LaunchError
from palmette.launch.prrte import Prrte
from palmette.launch.srun import Srun

__all__ = ["Identified", "Job", "LaunchError", "Launcher", "LauncherKind", "identify", "launcher"]


def launcher(kind: LauncherKind) -> Launcher:
    """Return the launcher of that kind."""
    launchers: dict[LauncherKind, Launcher] = {
        "hydra": Hydra(),
        "intel_hydra": IntelHydra(),
        "prrte": Prrte(),
        "srun": Srun(),
    }
    return launchers[kind]
