"""The lab's compiled helper programs."""

from __future__ import annotations

from pathlib import Path

from palmette.mpi import helpers
from palmette.mpi.errors import RunError
from palmette_lab.lab.errors import LabError


def helper(name: str) -> Path:
    """Return the path of a compiled helper; PALMETTE_LAB_BIN names another folder. Raises LabError."""
    try:
        return helpers.helper(name)
    except RunError as error:
        raise LabError(str(error)) from None
