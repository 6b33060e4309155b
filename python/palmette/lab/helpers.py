"""Finding the compiled helpers that stand in palmette/bin."""

from __future__ import annotations

import os
from pathlib import Path

import palmette
from palmette.lab.errors import LabError


def helper(name: str) -> Path:
    """Return the path of a compiled helper. PALMETTE_LAB_BIN names another folder to take them from. Raises LabError."""
    override = os.environ.get("PALMETTE_LAB_BIN")
    folders = [Path(override)] if override else [Path(place) / "bin" for place in palmette.__path__]
    for folder in folders:
        if os.access(folder / name, os.R_OK):
            return (folder / name).absolute()
    raise LabError(f"{name} is not in {', '.join(map(str, folders))}; build palmette on Linux (`make build`)")
