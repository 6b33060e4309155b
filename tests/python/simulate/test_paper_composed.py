"""Composed broadcasts, simulated: what each part of the composition gains, and how deep a pipeline should be.

Hidayetoglu et al., HiCCL, 2024: direct, hierarchical, striped and pipelined broadcasts, each faster than the one
before; a ring of n in k parts takes (a + d / (f k)) (k + n - 2), best for k = sqrt(d (n - 2) / (f a)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from palmette import _core
from palmette_lab.simulate import cluster, job, parameters, run

pytestmark = [pytest.mark.slow, pytest.mark.long]
Took = Callable[..., dict[int, float]]
FOUR_ADAPTERS = "8leaf@4GB/s~10us:4node@1GB/s~10us:1core"
"""A simulated host has one link: the nodes with several adapters are switches here, their ranks hosts with an adapter
each."""
MEGABYTE = 1 << 20


def test_a_broadcast_gains_by_its_levels_by_stripes_and_by_a_pipeline(took: Took) -> None:
    direct, by_levels, striped, pipelined = (
        took(FOUR_ADAPTERS, run.PALMETTE, "bcast", (MEGABYTE,), "random:1", factoring=factoring)[MEGABYTE]
        for factoring in (
            "hierarchy=32 method=direct",
            "method=direct/1,direct",
            "method=direct,direct stripes=4",
            "method=ring,ring stripes=4 pipeline=32",
        )
    )
    assert by_levels < 0.5 * direct
    assert striped < 0.65 * by_levels
    assert pipelined < 0.65 * striped
    # What must leave the root's adapter.
    assert pipelined > MEGABYTE / 1e9


@pytest.mark.parametrize(("nodes", "size"), [(8, 65_536), (8, MEGABYTE), (16, MEGABYTE)])
def test_a_ring_takes_what_its_formula_says_and_is_best_at_the_depth_where_that_is(
    nodes: int, size: int, smpirun: str
) -> None:
    # The formula's cost of a message, a + bytes / f, is a time for which its sender is busy: so messages follow each
    # other. Those that are only on a simulated link at the same time share it instead, and arrive together.
    busy_s, bytes_per_s = 4e-6, 1e9
    values = replace(
        parameters.read(),
        send_between_message_s=busy_s,
        send_between_byte_s=1 / bytes_per_s,
        receive_between_message_s=0.0,
        receive_between_byte_s=0.0,
        eager_bytes=1e9,
    )
    bed = cluster.prepared(cluster.from_spec(f"{nodes}node@1TB/s~4us:1core"), values)
    seats = job.make_job(bed, "block", None)
    times = {}
    for depth in (2, 4, 8, 16, 32, 64, 128):
        factoring = f"method=ring pipeline={depth}"
        found = run.simulate(smpirun, seats, values, run.PALMETTE, "bcast", (size,), factoring=factoring)
        assert found.wrong_ranks == {size: 0}
        times[depth] = found.times_s[size]
        by_formula_s = (busy_s + size / (bytes_per_s * depth)) * (depth + nodes - 2)
        assert times[depth] == pytest.approx(by_formula_s, rel=0.01), depth
    best = min(times, key=lambda depth: times[depth])
    wanted = _core.best_depth(nodes, size, busy_s, bytes_per_s)
    assert wanted / 2 <= best <= wanted * 2
