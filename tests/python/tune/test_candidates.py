"""What there is to try."""

from __future__ import annotations

import re

import pytest

from palmette import _core
from palmette.tune.candidates import NOT_TRIED, Levels, candidates, grids, segments
from palmette.tune.specs import written

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
FUNCTIONS = (
    "gather", "scatter", "allgather", "bcast", "reduce", "allreduce", "reduce_scatter", "alltoall", "barrier", "scan",
    "exscan", "gatherv", "alltoallv",
)  # fmt: skip


def job(placement: str = "random:1", spec: str = LAB) -> _core.Job:
    return _core.Job(_core.Machine.synthetic(spec), placement)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_candidate_serves_the_job(function: str) -> None:
    here = job()
    collective = _core.collective_of(function)
    found = candidates(here, function, 65536)
    assert found
    assert len(set(found)) == len(found)
    size = -1 if function in ("gatherv", "alltoallv") else 65536
    element = 4 if _core.is_reduction(collective) else 1
    for spec in found:
        assert _core.refusal(here, collective, spec, 0, size, shared_memory=True, element_bytes=element) is None, spec


def test_every_algorithm_of_the_registry_has_a_grid() -> None:
    levels = Levels.of(job())
    for row in _core.algorithms():
        assert row.name in grids(row.collective, levels, 65536), f"{row.collective} {row.name}"


def test_every_key_of_the_registry_is_tried_or_has_a_reason() -> None:
    here = job()
    levels = Levels.of(here)
    for row in _core.algorithms():
        tried = set(grids(row.collective, levels, 1 << 20)[row.name])
        keys = set(re.findall(r"\b([a-z]+)=", row.keys))
        for key in keys - tried - set(NOT_TRIED) - set(levels.leading):
            assert key in ("inside", "top", "level"), f"{row.collective} {row.name}: {key}"


def test_aggregators_are_tried_where_the_job_has_them() -> None:
    assert "in_network:window=1" in candidates(job("random:1", f"aggregator:{LAB}"), "allreduce", 1 << 20)
    assert not any("in_network" in spec for spec in candidates(job(), "allreduce", 1 << 20))


def test_one_node_brings_shared_memory() -> None:
    here = job("block", "1node:4core")
    assert "shared" in candidates(here, "allreduce", 1024)
    assert not any("level=" in spec for spec in candidates(here, "allreduce", 1024))


def test_a_rank_a_node_brings_no_shared_memory() -> None:
    here = job("block", "8node:1core")
    assert not any("shared" in spec for spec in candidates(here, "allreduce", 1024))


def test_functions_of_unknown_sizes_get_no_algorithm_that_forwards_blocks() -> None:
    relaying = {row.name for row in _core.algorithms() if row.collective == "gather" and row.relays}
    assert relaying
    assert not relaying & {spec.partition(":")[0] for spec in candidates(job(), "gatherv", 1024)}


def test_segments_fit_the_size() -> None:
    assert segments(1024) == (None,)
    assert segments(16 * 1024) == (None, "8K")
    assert segments(1 << 20) == (None, "32K", "128K")


def test_a_specification_is_written_without_what_is_left_out() -> None:
    assert written("ring", {"segment": None}) == "ring"
    assert written("leaders", {"leaders": "2", "inside": None, "level": "leaf"}) == "leaders:leaders=2,level=leaf"


def test_trees_of_vectors_go_through_memory_at_the_levels_of_a_node_only() -> None:
    found = candidates(job(spec="3leaf:3node:2socket:4core"), "bcast", 4096)
    trees = [spec for spec in found if spec.startswith("by_topology")]
    assert any("node=shared" in spec and "socket=shared" not in spec for spec in trees)
    assert any("node=shared" in spec and "socket=shared" in spec for spec in trees)
    assert not any("leaf=shared" in spec or "top=shared" in spec for spec in trees)
