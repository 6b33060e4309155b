"""`palmette bench compose`: measured plans beside the MPI, what is chosen by what, tuning within a budget."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from palmette import _core
from palmette.compose import ComposeError, named
from palmette.compose.auto import ablation, equal_links
from palmette.compose.bench import (
    BenchCase,
    Cell,
    NamedFactoring,
    PlanCounts,
    Row,
    Settings,
    composition_of,
    plan_counts,
    program,
)
from palmette.compose.bench_svg import svg
from palmette.compose.bench_text import cell_lines
from palmette.compose.factoring import Factoring
from palmette.compose.tuning import DROP, MIN_CANDIDATES, candidates, choose_seconds
from palmette.measure.statistics import compare_groups, summarize
from palmette.mpi import install as mpi_install

Call = Callable[..., Any]
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
FLAT = "16node@100Mbit/s~1ms"


def job(spec: str, placement: str = "block") -> _core.Job:
    return _core.Job(_core.Machine.synthetic(spec), placement)


@pytest.mark.parametrize(
    "factoring",
    [
        Factoring(),
        Factoring(methods=("ring/1", "tree.3"), stripes=2, pipeline=16, landings=2),
        Factoring(hierarchy="2:4+3", methods=("direct",)),
    ],
)
def test_the_text_that_the_runtime_takes_reads_back(factoring: Factoring) -> None:
    assert Factoring.parse(factoring.runtime_text()) == factoring


@pytest.mark.parametrize("text", ["ring", "method=", "stripes=0", "pipeline=many", "depth=3"])
def test_a_factoring_that_cant_be_read_names_the_word(text: str) -> None:
    with pytest.raises(ComposeError, match=text):
        Factoring.parse(f"method=ring {text}")


def test_equal_links_are_left_to_the_closed_formulas() -> None:
    """One switch, one rank a host: the depth is the formula's, not a power of two."""
    size = 1 << 20
    *_, pipelined = ablation(named("broadcast", 16, size), job(FLAT))
    assert pipelined.basis == "closed formula"
    assert pipelined.factoring.methods == ("ring",)
    assert pipelined.factoring.pipeline == _core.best_depth(16, size, 1e-3, 12.5e6)
    assert abs(pipelined.factoring.pipeline - (size * 14 / (12.5e6 * 1e-3)) ** 0.5) <= 1
    # Eight bytes: nothing to cut, and a tree of few stages.
    *_, tiny = ablation(named("broadcast", 16, 8), job(FLAT))
    assert tiny.factoring.methods[0].startswith(("tree", "direct"))
    assert tiny.factoring.pipeline == 1


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("broadcast", LAB),  # groups of groups
        ("broadcast", "16node@100Mbit/s"),  # no latency
        ("allgather", FLAT),  # many primitives at once
    ],
)
def test_elsewhere_the_formulas_dont_hold(name: str, spec: str) -> None:
    on = job(spec)
    assert equal_links(named(name, on.size, 1024), on) is None


@pytest.mark.parametrize("name", ["broadcast", "reduce"])
def test_a_pipeline_gains_by_the_model_and_comes_near_to_the_bound(name: str) -> None:
    direct, hierarchical, striped, pipelined = ablation(named(name, 16, 1 << 20, element_bytes=4), job(LAB, "random:1"))
    assert pipelined.basis == "model"
    assert pipelined.factoring.pipeline > 1
    times = [variant.seconds or 0 for variant in (direct, hierarchical, striped, pipelined)]
    assert times == sorted(times, reverse=True)
    assert pipelined.bound_s is not None
    assert times[3] < 1.3 * pipelined.bound_s < times[2]


def test_where_nothing_is_known_bytes_decide_and_measuring_is_proposed(palmette: Call) -> None:
    result = palmette("compose", "broadcast", "--hierarchy", "2:4", "--auto")
    assert result.status == 0, result.err
    assert "(by bytes and messages)" in result.out
    assert "palmette bench compose --tune" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_candidates_for_tuning_are_the_models_best_in_order() -> None:
    on = job(LAB, "random:1")
    found = candidates(named("broadcast", 16, 1 << 20), on)
    times = [one.predicted_s or 0 for one in found]
    assert times == sorted(times)
    assert len({one.factoring for one in found}) == len(found) > 8
    assert any(one.factoring.stripes > 1 for one in found)
    assert times[0] <= min(one.seconds or 1 for one in ablation(named("broadcast", 16, 1 << 20), on))


def test_a_budget_says_how_many_candidates_are_measured() -> None:
    variants = tuple(NamedFactoring(f"candidate {i}", Factoring(pipeline=i + 1), 0.2) for i in range(20))
    asked = [BenchCase("broadcast", 1024, variants)]
    short, settings = choose_seconds(asked, Settings(), 6.0)
    assert len(short[0].variants) == MIN_CANDIDATES
    assert settings.drop == DROP
    assert settings.seconds <= 6.0
    long, _ = choose_seconds(asked, Settings(), 32.5)
    # 7 calls of 0.2 s each in half of 28 s.
    assert len(long[0].variants) == 10


def test_counts_of_plans_are_those_of_the_peers_comparison() -> None:
    """8 ranks in groups of 4, a vector of 8K: 2 N between groups, 64 messages, 0.75 N of scratch."""
    on = _core.hierarchy_job("2:4", 8)
    found = plan_counts(composition_of("allreduce", 8, 8192, 0), Factoring(), on)
    assert (found.messages, found.outer_bytes, found.scratch_bytes) == (64, 2 * 8192, 6144)
    gathered = plan_counts(composition_of("gather", 8, 1024, 0), Factoring(methods=("direct/1",)), on)
    assert (gathered.messages, gathered.outer_bytes) == (7, 8192 // 2)
    reduced = plan_counts(composition_of("reduce", 8, 8192, 0), Factoring(methods=("direct", "ring"), landings=1), on)
    assert reduced.messages == 7
    assert reduced.scratch_bytes <= 8192


def test_stripes_go_through_ranks_that_are_far_apart() -> None:
    plan = named("broadcast", 16, 1024).factor(_core.hierarchy_job("2:8", 16), stripes=2)
    across = {message.sender for message in plan.messages() if (message.sender < 8) != (message.receiver < 8)}
    assert across == {0, 4}, "each in another half of the node"
    assert plan.verify() is None


def invented_cell() -> Cell:
    """The MPI takes 0.8 s, one plan 0.2 s; the bound is 0.16 s."""
    numbers = PlanCounts(12345, "leaf", 128, 2 << 20, 3 << 20, stages=15, chain=4)
    alone, composed = (np.array([time * factor for factor in (0.99, 1, 1.01, 1.02, 0.98)]) for time in (0.8, 0.2))
    factoring = Factoring(methods=("ring/1", "ring", "direct"), stripes=2, pipeline=32)
    return Cell(
        "broadcast", 1 << 20, 16, 0.16,
        (
            Row("the MPI", None, summarize(alone), None, 0.0, False, None),
            Row("hierarchical", factoring, summarize(composed), compare_groups(composed, alone), 0.0123, True, numbers),
        ),
    )  # fmt: skip


def test_the_table_fits_in_80_columns_and_says_what_needs_no_clock() -> None:
    lines = cell_lines(invented_cell(), "mpich 5.0.2, random:1")
    assert max(map(len, lines)) <= 80, lines
    row = next(line for line in lines if line.startswith("hierarchical"))
    assert row.split() == ["hierarchical", "200", "ms*", "1.25", "0.25", "12,345", "2M", "in", "128", "3M", "15"]


def test_bars_are_as_long_as_times_and_the_bound_is_a_line() -> None:
    drawing = ElementTree.fromstring(svg([("mpich 5.0.2", invented_cell())]))
    name = "{http://www.w3.org/2000/svg}"
    _, alone, composed = [float((bar.get("width") or "0").rstrip("%")) for bar in drawing.iter(f"{name}rect")]
    assert composed / alone == pytest.approx(0.25, rel=0.01)
    texts = [text.text or "" for text in drawing.iter(f"{name}text")]
    assert "200 ms, 1.25" in texts
    assert "bound 160 ms" in texts


@pytest.mark.mpi
@pytest.mark.parametrize("mpi", ["mpich", "openmpi", "impi"])
def test_plans_are_measured_beside_the_mpi_and_checked(palmette_lab: Call, mpi: str) -> None:
    try:
        mpi_install.find(mpi)
        program("mpich")
    except (mpi_install.MpiNotFoundError, ComposeError) as error:
        pytest.skip(str(error))
    result = palmette_lab(
        "bench", "compose", "broadcast,reduce_scatter_gather,alltoall", "-n", "3", "--mpi", mpi, "--sizes", "1K",
        "--seconds", "0", "--min-iterations", "3", "--root", "2", "--factoring", "method=ring pipeline=3", "--json",
    )  # fmt: skip
    assert result.status == 0, result.err
    cells = json.loads(result.out)
    assert [cell["composition"] for cell in cells] == ["broadcast", "reduce_scatter_gather", "alltoall"]
    for cell in cells:
        alone, composed = cell["rows"]
        assert (alone["name"], alone["figures"]) == ("the MPI", None)
        assert composed["time_s"]["count"] > 0
        assert composed["ratio"]["value"] > 0
        assert composed["figures"]["messages"] > 0
        assert composed["made_s"] > 0


@pytest.mark.mpi
def test_tuning_names_a_factoring_or_says_that_the_mpi_is_faster(palmette_lab: Call) -> None:
    try:
        mpi_install.find("mpich")
        program("mpich")
    except (mpi_install.MpiNotFoundError, ComposeError) as error:
        pytest.skip(str(error))
    result = palmette_lab("bench", "compose", "broadcast", "-n", "2", "--mpi", "mpich", "--tune", "--budget", "1s")
    assert result.status == 0, result.err
    assert "best: --method" in result.out or "the MPI is faster" in result.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("gathr", "-n", "2"), "composition 'gathr' is unknown"),
        (("gather", "-n", "2", "--root", "2"), "the job has 2 ranks only"),
        (("gather", "-n", "2", "--factoring", "ring"), "'ring' is none of"),
        (("gather", "-n", "2", "--factoring", "method=star"), "method 'star'"),
        (("gather", "-n", "2", "--factoring", "method=ring", "--tune"), "give one of the two"),
        (("gather", "-n", "2", "--sizes", "many"), "many"),
        (("reduce", "-n", "2", "--sizes", "3"), "no whole number of elements"),
        (("gather", "-n", "2", "--mpi", "nompi"), "nompi"),
    ],
)
def test_bad_input_is_one_line_and_status_2(palmette_lab: Call, arguments: tuple[str, ...], complaint: str) -> None:
    result = palmette_lab("bench", "compose", *arguments)
    assert result.status == 2
    assert complaint in result.err
    assert result.err.startswith("palmette-lab bench compose: ")
    assert len(result.err.splitlines()) == 1
