"""SimGrid, for the tests that need it."""

from __future__ import annotations

import pytest

from palmette.simulate import simgrid
from palmette.simulate.errors import SimulateError


@pytest.fixture(scope="session")
def smpirun() -> str:
    """The path of smpirun, of the version that times are pinned to."""
    try:
        found = simgrid.find_smpirun()
    except SimulateError as error:
        pytest.skip(str(error))
    version = simgrid.version(found)
    if version != simgrid.VERSION:
        pytest.skip(f"SimGrid {version} is here; these times are those of {simgrid.VERSION}")
    return found
