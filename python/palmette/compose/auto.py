"""The ablation: the same composition direct, by levels, striped and pipelined, by predicted time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from palmette import _core
from palmette.compose.composition import Composition
from palmette.compose.factoring import Factoring, bound_s, outer_traffic

SHAPES = ("direct", "tree.2", "ring")
DEPTHS = (2, 4, 8, 16, 32, 64)
MOST_STEPS = 400_000
"""Plans of more steps are not tried: their pipelines wouldn't pay for their messages anyway."""


@dataclass(frozen=True)
class Variant:
    """One line of the ablation."""

    name: str
    factoring: Factoring
    seconds: float | None
    """Predicted; None where nothing is known of the machine's links."""
    messages: int
    outer_messages: int
    outer_bytes: int
    chain: int
    scratch_bytes: int
    bound_s: float | None


def ablation(composition: Composition, job: _core.Job, tell: Callable[[str], None] | None = None) -> list[Variant]:
    """Return the best variant of each kind, in the order in which one adds to the other.

    Direct: every rank for itself, no levels. Hierarchical: the best shape and number of lanes for each level. Striped:
    that with the best number of stripes. Pipelined: that with the best depth. A step that doesn't gain is kept as it
    was. `tell` hears what is tried. Raises `_core.Error`.
    """
    limit = bound_s(composition, job)
    depth = len(_core.hierarchy_levels(job))
    node = job.level("node")
    ranks_of_a_node = max(node.sizes) if node is not None else 1

    def measured(name: str, factoring: Factoring) -> Variant | None:
        if tell is not None:
            tell(f"{name}: {factoring.text()}")
        plan = factoring.plan(composition, job)
        if sum(plan.step_counts.values()) > MOST_STEPS:
            return None
        counted = plan.count()
        _, outer_messages, outer_bytes = outer_traffic(plan)
        return Variant(
            name,
            factoring,
            predicted_s(plan),
            counted.messages,
            outer_messages,
            outer_bytes,
            counted.longest_chain,
            max(plan.scratch_bytes),
            limit,
        )

    def best(name: str, candidates: Iterator[Factoring], before: Variant | None) -> Variant:
        found = [variant for factoring in candidates if (variant := measured(name, factoring)) is not None]
        if before is not None:
            found.append(Variant(**{**before.__dict__, "name": name}))
        return min(found, key=_figure)

    direct = best("direct", iter([Factoring(hierarchy=str(job.size))]), None)
    hierarchical = best("hierarchical", _shapes(depth), None)
    striped = best(
        "striped",
        (hierarchical.factoring.with_(stripes=count) for count in _stripes(ranks_of_a_node)),
        hierarchical,
    )
    # Another shape may be the best one for a pipeline.
    piped = (
        base.with_(pipeline=parts)
        for base in dict.fromkeys(
            [striped.factoring, *(factoring.with_(stripes=striped.factoring.stripes) for factoring in _rings(depth))]
        )
        for parts in _depths(composition, job)
    )
    return [direct, hierarchical, striped, best("pipelined", piped, striped)]


def _figure(variant: Variant) -> tuple[float, int, int]:
    return (variant.seconds or 0.0, variant.outer_bytes, variant.outer_messages)


def _shapes(depth: int) -> Iterator[Factoring]:
    choices = [f"{shape}{lanes}" for shape in SHAPES for lanes in ("", "/1")]
    # The innermost level has single ranks: lanes make no difference there.
    for methods in itertools.product(*[choices] * (depth - 1), SHAPES):
        yield Factoring(methods=methods)


def _rings(depth: int) -> Iterator[Factoring]:
    for outer in ("ring", "ring/1"):
        for inner in SHAPES:
            yield Factoring(methods=(*[outer] * (depth - 1), inner))


def _stripes(ranks_of_a_node: int) -> list[int]:
    return [count for count in (2, 4, 8, 16) if count <= ranks_of_a_node]


def _depths(composition: Composition, job: _core.Job) -> list[int]:
    """Depths worth trying: powers of two, and what the formula of the ring says for the outermost level."""
    core = composition.core
    largest = max((core.bytes_of(block) for block in range(core.blocks)), default=0)
    known = [level for level in job.levels if level.count > 2 and level.latency_s > 0 and max(level.up_bytes_per_s) > 0]
    exact = [_core.best_depth(level.count, largest, level.latency_s, max(level.up_bytes_per_s)) for level in known[:1]]
    return sorted({*DEPTHS, *(depth for depth in exact if depth > 1)})


def predicted_s(plan: _core.Plan) -> float | None:
    """Return the model's prediction for a plan; None where nothing is known of the job's links.

    A core without the model gives the busiest link's time, and the latency of the outermost level for each message of
    the longest chain; it doesn't see what a pipeline gains.
    """
    predict: Any = getattr(_core, "predict", None)
    costs: Any = getattr(_core, "Costs", None)
    if predict is not None and costs is not None:
        return float(predict(plan, plan.lengths, costs.of(plan.job)).seconds)
    counted = plan.count()
    latency_s = max((level.latency_s for level in plan.job.levels), default=0.0)
    return counted.busiest_s + counted.longest_chain * latency_s or None
