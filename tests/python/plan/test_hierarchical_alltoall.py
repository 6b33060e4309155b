"""studies/hierarchical_alltoall.py: what an all-to-all's plans put between nodes, and how a crossover is found.

Kumar and Malakar, HiPar 2022: hierarchical all-to-all and sendrecv.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from palmette import _core

BLOCK = 24


@pytest.fixture(scope="module")
def study(bench_program: Callable[[str], ModuleType]) -> ModuleType:
    """The study."""
    return bench_program("hierarchical_alltoall")


@pytest.mark.parametrize("placement", ["block", "cyclic", "random:1"])
@pytest.mark.parametrize(("nodes", "g"), [(2, 1), (2, 3), (3, 4), (5, 4), (8, 2)])
def test_messages_between_nodes_are_the_formulas_and_bytes_stay(
    study: ModuleType, nodes: int, g: int, placement: str
) -> None:
    job = _core.Job(_core.Machine.synthetic(f"{nodes}node:{g}core"), placement)
    expected = {
        "sendrecv": g * g * (nodes - 1),
        "pairwise": g * g * (nodes - 1),
        "linear": g * g * (nodes - 1),
        "node_aware": g * (nodes - 1),
        "node_aware, 4 rounds": g * (nodes - 1),
        "leaders, one": nodes - 1,
        "leaders, all": nodes - 1,
    }
    assert {form.name for form in study.FORMS} == set(expected)
    for form in study.FORMS:
        algorithm = form.plan_of(g)
        assert _core.Plan(job, "alltoall", algorithm, block_bytes=BLOCK).verify() is None, form.name
        found = study.count(job, algorithm, BLOCK)
        assert found.messages_out == expected[form.name], form.name
        assert form.messages(nodes, g) == expected[form.name], form.name
        # What the ranks of a node have for those of others: no plan can send less.
        assert found.bytes_out == g * (job.size - g) * BLOCK, form.name


def test_nodes_that_differ_are_refused(study: ModuleType) -> None:
    job = _core.Job(_core.Machine.synthetic("3node:3core"), ranks=7)
    with pytest.raises(ValueError, match="nodes differ"):
        study.count(job, "linear", BLOCK)


def test_a_crossover_lies_between_the_sizes_where_the_faster_one_changes(study: ModuleType) -> None:
    flat = {8: 4.0, 32: 4.0, 128: 4.0, 512: 4.0}
    # From half to twice the time: halfway in the logarithms of 8 and 32.
    assert study.crossings({8: 2.0, 32: 8.0}, flat) == pytest.approx([16.0])
    assert study.crossover_text({8: 2.0, 32: 8.0, 128: 8.0}, flat) == "16"
    assert study.crossover_text({8: 2.0, 32: 3.0}, flat) == ">32"
    assert study.crossover_text({8: 5.0, 32: 6.0}, flat) == "<8"
    assert study.crossover_text({8: 2.0, 32: 8.0, 128: 2.0, 512: 8.0}, flat) == "16-64, 256"
    assert study.crossover_text({}, flat) == "-"
