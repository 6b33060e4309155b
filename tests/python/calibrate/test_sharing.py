"""The capacity of an edge, from what 1, 2, 4, ... flows move over it."""

from __future__ import annotations

import numpy as np
import pytest

from palmette.calibrate.sharing import fit
from palmette.calibrate.steps import flow_counts


def rates(stream: float, capacity: float, counts: list[int], noise: float, repeats: int = 4) -> dict[int, list[float]]:
    random = np.random.default_rng(3)
    return {
        k: [min(k * stream, capacity) * float(np.exp(noise * random.standard_normal())) for _ in range(repeats)]
        for k in counts
    }


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.04])
@pytest.mark.parametrize("capacity", [0.5, 0.9, 1.0, 1.7, 3.0, 7.0])
def test_an_edge_that_flows_fill_gets_its_capacity(capacity: float, noise: float) -> None:
    found = fit(rates(1e9, capacity * 1e9, flow_counts(16), noise))
    assert found.filled
    assert found.bytes_per_s == pytest.approx(capacity * 1e9, rel=max(noise, 0.005))
    assert found.error < 0.1


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.04])
def test_flows_that_do_not_fill_an_edge_tell_what_it_has_at_least(noise: float) -> None:
    found = fit(rates(1e9, 100e9, [1, 2, 4, 6], noise))
    assert not found.filled
    assert found.bytes_per_s == pytest.approx(6e9, rel=0.05)


def test_one_flow_fills_nothing_that_could_be_seen() -> None:
    assert not fit({1: [1e9, 1e9, 1e9]}).filled


def test_two_flows_show_an_edge_that_one_fills() -> None:
    assert fit({1: [1e9, 1.01e9], 2: [1e9, 0.99e9]}).filled
    assert not fit({1: [1e9, 1.01e9], 2: [2e9, 1.98e9]}).filled


def test_numbers_of_flows_double_up_to_the_most() -> None:
    assert flow_counts(1) == [1]
    assert flow_counts(6) == [1, 2, 4, 6]
    assert flow_counts(32) == [1, 2, 4, 8, 16, 32]


def test_without_rates_there_is_nothing_to_fit() -> None:
    with pytest.raises(ValueError, match="no rates"):
        fit({})
