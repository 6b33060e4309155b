"""Running MPI programs under palmette: which preload library a program needs, and how the launcher passes it on.

`prepare` turns a user's command line into the one to execute; `palmette run` executes it. Programs are only
read as ELF files; the one thing executed to prepare is the launcher, with `--version`.
"""

from __future__ import annotations

from palmette.mpi.abi import Abi
from palmette.mpi.errors import RunError
from palmette.run.choices import Choices, variables
from palmette.run.prepared import LaunchPlan, prepare, starts_job

__all__ = ["Abi", "Choices", "LaunchPlan", "RunError", "prepare", "starts_job", "variables"]
