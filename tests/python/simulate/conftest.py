"""SimGrid, for the tests that need it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from palmette.settings import force
from palmette_lab.simulate import cluster, job, parameters, run, simgrid, watch
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.traffic import Traffic

from .rivals import Rivals

VALUES = parameters.read()
Took = Callable[..., dict[int, float]]
"""took(platform, contender, collective, sizes, placement, ...): simulated seconds by size."""


@pytest.fixture(scope="session", autouse=True)
def _rivals_as_kept() -> Iterator[None]:
    """Rivals' times come from a file (rivals.py)."""
    simulate = run._run
    rivals = Rivals(simulate, os.environ.get("PALMETTE_TEST_RIVALS", ""))
    run._run = rivals
    yield
    run._run = simulate
    rivals.write()


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


@pytest.fixture(scope="session")
def took(smpirun: str) -> Took:
    """Times of right results, each simulated once in a session.

    `platform`: a stored platform or a synthetic machine. `contender`: palmette or a rival; `algorithm` forces one of
    palmette's, `factoring` one of its compositions. `share`: of the switches' uplinks. `traffic`: as in the benchmark.
    """

    def bed_of(platform: str, share: float) -> cluster.Cluster:
        made = cluster.from_spec(platform) if ":" in platform else cluster.from_stored(platform)
        return cluster.prepared(made, VALUES, share)

    @cache
    def beside(platform: str, share: float, traffic: str) -> job.Background:
        bed = bed_of(platform, share)
        return watch.watched(smpirun, bed, job.background_of(bed, Traffic.parse(traffic)), VALUES)

    @cache
    def simulated(
        platform: str,
        contender: str,
        collective: str,
        sizes: Sequence[int],
        placement: str = "block",
        share: float = 1.0,
        algorithm: str = "",
        traffic: str = "",
        factoring: str = "",
    ) -> dict[int, float]:
        bed = bed_of(platform, share)
        background = beside(platform, share, traffic) if traffic else None
        seats = job.make_job(bed, placement, None, background)
        more: dict[str, Any] = {"factoring": factoring}
        if algorithm:
            more["environment"] = force(**{collective: algorithm})
        found = run.simulate(smpirun, seats, VALUES, contender, collective, sizes, **more)
        assert not found.trouble
        assert not any(found.wrong_ranks.values())
        if algorithm:
            assert all(name == algorithm for name in found.algorithms.values())
        return found.times_s

    return simulated
