"""The ablation of a composition: factored direct, hierarchical, striped and pipelined, with automatic parameters.

Shape, radix and depth come from closed formulas where these hold: one multicast or reduction at a time over equal links
of known latency and capacity. Otherwise the model ranks candidate plans. Where nothing is known of the links, bytes and
messages decide, and only measurements (`palmette bench compose --tune`) can improve on that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from palmette import _core
from palmette.compose.composition import Composition
from palmette.compose.factoring import Factoring, bound_s, outer_traffic

SHAPES = ("direct", "tree.2", "ring")
RADICES = (2, 3, 4, 6, 8)
DEPTHS = (2, 4, 8, 16, 32, 64)
MOST_STEPS = 400_000
"""Plans of more steps are not tried: their pipelining wouldn't amortise the overhead of their messages."""

Basis = Literal["closed formula", "model", "bytes and messages"]


@dataclass(frozen=True)
class Variant:
    """One line of the ablation."""

    name: str
    factoring: Factoring
    basis: Basis
    """The criterion of the choice."""
    seconds: float | None
    """Predicted; None where nothing is known of the machine's links."""
    messages: int
    outer_messages: int
    outer_bytes: int
    chain: int
    scratch_bytes: int
    bound_s: float | None

    @property
    def cost(self) -> tuple[float, int, int]:
        """The objective to minimise: predicted time, then bytes and messages of the outermost level."""
        return (self.seconds or 0.0, self.outer_bytes, self.outer_messages)


class Explorer:
    """Factorings of a composition on a job; evaluations are cached."""

    def __init__(self, composition: Composition, job: _core.Job, progress: Callable[[str], None] | None = None) -> None:
        """`progress` is called with each factoring that is tried."""
        self.composition, self.job, self._progress = composition, job, progress
        self.bound_s = bound_s(composition, job)
        self.depth = len(_core.hierarchy_levels(job))
        self.link = equal_links(composition, job)
        self.basis: Basis = "model" if links_are_known(job) else "bytes and messages"
        node = job.level("node")
        self._ranks_of_a_node = max(node.sizes) if node is not None else 1
        self._seen: dict[Factoring, Variant | None] = {}

    def evaluate(self, factoring: Factoring) -> Variant | None:
        """Return the variant of a factoring; None where its plan is too long. Raises `_core.Error`."""
        if factoring not in self._seen:
            if self._progress is not None:
                self._progress(factoring.text())
            self._seen[factoring] = self._evaluate(factoring)
        return self._seen[factoring]

    def _evaluate(self, factoring: Factoring) -> Variant | None:
        plan = factoring.plan(self.composition, self.job)
        if sum(plan.step_counts.values()) > MOST_STEPS:
            return None
        counted = plan.count()
        _, outer_messages, outer_bytes = outer_traffic(plan)
        return Variant(
            "", factoring, self.basis, predicted_s(plan), counted.messages, outer_messages, outer_bytes,
            counted.longest_chain, max(plan.scratch_bytes), self.bound_s,
        )  # fmt: skip

    def evaluate_all(self, factorings: Iterable[Factoring]) -> list[Variant]:
        """Evaluate all of them, and drop those that are too long."""
        return [variant for factoring in factorings if (variant := self.evaluate(factoring)) is not None]

    def shapes(self) -> Iterator[Factoring]:
        """Every method at each level, with all ranks as lanes or one."""
        choices = [f"{shape}{lanes}" for shape in SHAPES for lanes in ("", "/1")]
        # The innermost level has single ranks: lanes make no difference there.
        for methods in itertools.product(*[choices] * (self.depth - 1), SHAPES):
            yield Factoring(methods=methods)

    def radices(self, base: Factoring) -> Iterator[Factoring]:
        """The base factoring with other tree radices, one level at a time."""
        for level, method in enumerate(base.methods):
            shape, slash, lanes = method.partition("/")
            if shape.startswith("tree"):
                for radix in RADICES:
                    changed = f"tree.{radix}{slash}{lanes}"
                    yield base.with_(methods=(*base.methods[:level], changed, *base.methods[level + 1 :]))

    def rings(self) -> Iterator[Factoring]:
        """Rings between groups, the best shape for deep pipelines."""
        for outer in ("ring", "ring/1"):
            for inner in SHAPES:
                yield Factoring(methods=(*[outer] * (self.depth - 1), inner))

    def stripes(self) -> list[int]:
        """Numbers of stripes, up to the ranks of a node."""
        return [count for count in (2, 4, 8, 16) if count <= self._ranks_of_a_node]

    def depths(self) -> list[int]:
        """Pipeline depths to try: powers of two, and the ring formula's optimum for the outermost level."""
        largest = self.largest_bytes
        known = [one for one in self.job.levels if one.count > 2 and one.latency_s > 0 and max(one.up_bytes_per_s) > 0]
        exact = [_core.best_depth(one.count, largest, one.latency_s, max(one.up_bytes_per_s)) for one in known[:1]]
        return sorted({*DEPTHS, *(depth for depth in exact if depth > 1)})

    @property
    def largest_bytes(self) -> int:
        """Bytes of the longest block."""
        core = self.composition.core
        return max((core.bytes_of(block) for block in range(core.blocks)), default=0)


@dataclass(frozen=True)
class Link:
    """Latency and capacity of every rank's link where all are equal."""

    participants: int
    bytes: int
    latency_s: float
    bytes_per_s: float

    def depth(self) -> int:
        """Return the ring's optimal depth, close to sqrt(d (n - 2) / (f a))."""
        return _core.best_depth(self.participants, self.bytes, self.latency_s, self.bytes_per_s)

    def best_flat(self) -> str:
        """Return the fastest method without a pipeline."""
        times = {f"tree.{radix}": self._seconds("tree", radix) for radix in RADICES}
        times["direct"] = self._seconds("direct", 0)
        return min(times, key=lambda method: times[method])

    def _seconds(self, shape: str, detail: int) -> float:
        return _core.multicast_s(shape, self.participants, self.bytes, self.latency_s, self.bytes_per_s, detail)


def equal_links(composition: Composition, job: _core.Job) -> Link | None:
    """Return the link parameters for the closed formulas; None where these don't hold.

    They hold for primitives over all ranks, one per phase, where each rank has a link of its own to one switch, all of
    the same capacity and of known latency.
    """
    if len(_core.hierarchy_levels(job)) != 1 or job.size < 3 or not job.levels:
        return None
    level = job.levels[-1]
    rates = set(level.up_bytes_per_s)
    if level.count != job.size or len(rates) != 1 or 0 in rates or level.latency_s <= 0:
        return None
    primitives = composition.core.primitives()
    if len(primitives) != composition.core.phases:
        return None
    if any(len(others) < job.size - 1 for _, _, _, others, *_ in primitives):
        return None
    core = composition.core
    largest = max(
        sum(core.bytes_of(block) for block in range(first, first + count))
        for *_, (first, count), _, _ in primitives
    )  # fmt: skip
    return Link(job.size, largest, level.latency_s, rates.pop())


def links_are_known(job: _core.Job) -> bool:
    """Whether the machine has any latency or capacity for the model."""
    return any(level.latency_s > 0 or max(level.up_bytes_per_s, default=0) > 0 for level in job.levels)


def ablation(composition: Composition, job: _core.Job, progress: Callable[[str], None] | None = None) -> list[Variant]:
    """Return the best variant of each kind; each kind adds one optimisation to the one before.

    Direct: no levels. Hierarchical: the best shape and number of lanes for each level. Striped: that with the best
    number of stripes. Pipelined: that with the best depth. A kind without a gain repeats the variant before it.
    `progress` is called with each factoring that is tried. Raises `_core.Error`.
    """
    explorer = Explorer(composition, job, progress)
    direct = _best("direct", explorer.evaluate_all([Factoring(hierarchy=str(job.size))]), None)
    if explorer.link is not None:
        return [direct, *_by_formula(explorer, explorer.link, direct)]
    hierarchical = _best("hierarchical", explorer.evaluate_all(explorer.shapes()), None)
    hierarchical = _best("hierarchical", explorer.evaluate_all(explorer.radices(hierarchical.factoring)), hierarchical)
    striped = _best(
        "striped",
        explorer.evaluate_all(hierarchical.factoring.with_(stripes=count) for count in explorer.stripes()),
        hierarchical,
    )
    # The best shape may differ with pipelining.
    bases = dict.fromkeys(
        [striped.factoring]
        + [ring.with_(stripes=count) for ring in explorer.rings() for count in {1, striped.factoring.stripes}]
    )
    piped = explorer.evaluate_all(base.with_(pipeline=parts) for base in bases for parts in explorer.depths())
    return [direct, hierarchical, striped, _best("pipelined", piped, striped)]


def _by_formula(explorer: Explorer, link: Link, direct: Variant) -> list[Variant]:
    """Flat jobs: the formulas give the method and the depth; there is no node to stripe over."""
    found = []
    before = direct
    for name, factoring in (
        ("hierarchical", Factoring(methods=(link.best_flat(),))),
        ("striped", Factoring(methods=(link.best_flat(),))),
        ("pipelined", Factoring(methods=("ring",), pipeline=link.depth())),
    ):
        known = [replace(variant, basis="closed formula") for variant in explorer.evaluate_all([factoring])]
        before = _best(name, known, before)
        found.append(before)
    return found


def _best(name: str, found: list[Variant], before: Variant | None) -> Variant:
    best = min([*found, *([before] if before is not None else [])], key=lambda variant: variant.cost)
    return replace(best, name=name)


def predicted_s(plan: _core.Plan) -> float | None:
    """Return the model's prediction for a plan; None where nothing is known of the job's links."""
    if not links_are_known(plan.job):
        return None
    return _core.predict(plan, plan.lengths, _core.Costs.of(plan.job)).seconds or None
