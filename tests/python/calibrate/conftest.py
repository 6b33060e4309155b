"""Fixtures of the calibration's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from calibrate.invented import LAB, TRUTH, InventedJob, layout_of
from palmette.discover.run import discover
from palmette.topology.model import Topology


@pytest.fixture
def lab_topology() -> Topology:
    """The machine of the lab, with capacities as typed."""
    return discover([("synthetic", LAB)])


@pytest.fixture
def invented() -> Callable[..., InventedJob]:
    """Return a job on a topology, whose links are as fast as it says."""

    def make(topology: Topology, hosts: list[str] | None = None, noise: float = 0.01) -> InventedJob:
        layout = layout_of(topology, hosts)
        capacity = {n.name: n.up_bytes_per_s for n in topology.machine.tree.walk() if n.up_bytes_per_s}
        return InventedJob(layout, dict(TRUTH), capacity, noise)

    return make
