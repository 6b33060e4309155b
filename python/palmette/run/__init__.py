"""Running MPI programs under palmette: which preload library a program needs, and how its launcher is told.

`prepare` turns a user's command line into the one to execute; `palmette run` executes it. Nothing is executed to find
out, except a launcher with `--version`: programs are read as ELF files.
"""

from __future__ import annotations

from palmette.mpi.abi import Abi
from palmette.mpi.errors import RunError
from palmette.run.choices import Choices, variables
from palmette.run.prepared import Prepared, prepare

__all__ = ["Abi", "Choices", "Prepared", "RunError", "prepare", "variables"]
