"""The ablation: the same composition direct, by levels, striped and pipelined.

Shape, radix and depth come from the closed formulas where these hold: one multicast or reduction at a time over equal
links of known latency and capacity. Else the model decides among plans. Where nothing is known of the links, bytes and
messages do, and only measuring (`palmette bench compose --tune`) says more.
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
"""Plans of more steps are not tried: their pipelines wouldn't pay for their messages anyway."""

Basis = Literal["closed formula", "model", "bytes and messages"]


@dataclass(frozen=True)
class Variant:
    """One line of the ablation."""

    name: str
    factoring: Factoring
    basis: Basis
    """What it was chosen by."""
    seconds: float | None
    """Predicted; None where nothing is known of the machine's links."""
    messages: int
    outer_messages: int
    outer_bytes: int
    chain: int
    scratch_bytes: int
    bound_s: float | None

    @property
    def figure(self) -> tuple[float, int, int]:
        """What is to be as small as possible."""
        return (self.seconds or 0.0, self.outer_bytes, self.outer_messages)


class Explorer:
    """Factorings of a composition on a job, each looked at once."""

    def __init__(self, composition: Composition, job: _core.Job, tell: Callable[[str], None] | None = None) -> None:
        """`tell` hears what is tried."""
        self.composition, self.job, self._tell = composition, job, tell
        self.bound_s = bound_s(composition, job)
        self.depth = len(_core.hierarchy_levels(job))
        self.link = equal_links(composition, job)
        self.basis: Basis = "model" if links_are_known(job) else "bytes and messages"
        node = job.level("node")
        self._ranks_of_a_node = max(node.sizes) if node is not None else 1
        self._seen: dict[Factoring, Variant | None] = {}

    def look(self, factoring: Factoring) -> Variant | None:
        """Return what a factoring comes to; None where its plan is too long. Raises `_core.Error`."""
        if factoring not in self._seen:
            if self._tell is not None:
                self._tell(factoring.text())
            self._seen[factoring] = self._look(factoring)
        return self._seen[factoring]

    def _look(self, factoring: Factoring) -> Variant | None:
        plan = factoring.plan(self.composition, self.job)
        if sum(plan.step_counts.values()) > MOST_STEPS:
            return None
        counted = plan.count()
        _, outer_messages, outer_bytes = outer_traffic(plan)
        return Variant(
            "", factoring, self.basis, predicted_s(plan), counted.messages, outer_messages, outer_bytes,
            counted.longest_chain, max(plan.scratch_bytes), self.bound_s,
        )  # fmt: skip

    def known(self, factorings: Iterable[Factoring]) -> list[Variant]:
        """Look at all of them, and leave out those that are too long."""
        return [variant for factoring in factorings if (variant := self.look(factoring)) is not None]

    def shapes(self) -> Iterator[Factoring]:
        """Every method at each level, through all ranks or one."""
        choices = [f"{shape}{lanes}" for shape in SHAPES for lanes in ("", "/1")]
        # The innermost level has single ranks: lanes make no difference there.
        for methods in itertools.product(*[choices] * (self.depth - 1), SHAPES):
            yield Factoring(methods=methods)

    def radices(self, base: Factoring) -> Iterator[Factoring]:
        """The same with other radices of its trees, one level at a time."""
        for level, method in enumerate(base.methods):
            shape, slash, lanes = method.partition("/")
            if shape.startswith("tree"):
                for radix in RADICES:
                    changed = f"tree.{radix}{slash}{lanes}"
                    yield base.with_(methods=(*base.methods[:level], changed, *base.methods[level + 1 :]))

    def rings(self) -> Iterator[Factoring]:
        """Rings between groups, which are the best for deep pipelines."""
        for outer in ("ring", "ring/1"):
            for inner in SHAPES:
                yield Factoring(methods=(*[outer] * (self.depth - 1), inner))

    def stripes(self) -> list[int]:
        """Numbers of stripes that a node has ranks for."""
        return [count for count in (2, 4, 8, 16) if count <= self._ranks_of_a_node]

    def depths(self) -> list[int]:
        """Depths worth trying: powers of two, and what the formula of the ring says for the outermost level."""
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
    """What every rank's link is like where all are alike."""

    participants: int
    bytes: int
    latency_s: float
    bytes_per_s: float

    def depth(self) -> int:
        """Return the ring's best depth, next to sqrt(d (n - 2) / (f a))."""
        return _core.best_depth(self.participants, self.bytes, self.latency_s, self.bytes_per_s)

    def best_flat(self) -> str:
        """Return the fastest method without a pipeline."""
        times = {f"tree.{radix}": self._seconds("tree", radix) for radix in RADICES}
        times["direct"] = self._seconds("direct", 0)
        return min(times, key=lambda method: times[method])

    def _seconds(self, shape: str, detail: int) -> float:
        return _core.multicast_s(shape, self.participants, self.bytes, self.latency_s, self.bytes_per_s, detail)


def equal_links(composition: Composition, job: _core.Job) -> Link | None:
    """Return the link that the closed formulas go by; None where they don't hold.

    They do for primitives of all ranks, one a phase, where each rank has a link of its own to one switch, all with the
    same capacity, and their latency is known.
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
    """Whether the model has anything of the machine's to go by."""
    return any(level.latency_s > 0 or max(level.up_bytes_per_s, default=0) > 0 for level in job.levels)


def ablation(composition: Composition, job: _core.Job, tell: Callable[[str], None] | None = None) -> list[Variant]:
    """Return the best variant of each kind, in the order in which one adds to the other.

    Direct: every rank for itself, no levels. Hierarchical: the best shape and number of lanes for each level. Striped:
    that with the best number of stripes. Pipelined: that with the best depth. A step that doesn't gain is kept as it
    was. `tell` hears what is tried. Raises `_core.Error`.
    """
    explorer = Explorer(composition, job, tell)
    direct = _best("direct", explorer.known([Factoring(hierarchy=str(job.size))]), None)
    if explorer.link is not None:
        return [direct, *_by_formula(explorer, explorer.link, direct)]
    hierarchical = _best("hierarchical", explorer.known(explorer.shapes()), None)
    hierarchical = _best("hierarchical", explorer.known(explorer.radices(hierarchical.factoring)), hierarchical)
    striped = _best(
        "striped",
        explorer.known(hierarchical.factoring.with_(stripes=count) for count in explorer.stripes()),
        hierarchical,
    )
    # Another shape may be the best one for a pipeline.
    bases = dict.fromkeys(
        [striped.factoring]
        + [ring.with_(stripes=count) for ring in explorer.rings() for count in {1, striped.factoring.stripes}]
    )
    piped = explorer.known(base.with_(pipeline=parts) for base in bases for parts in explorer.depths())
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
        known = [replace(variant, basis="closed formula") for variant in explorer.known([factoring])]
        before = _best(name, known, before)
        found.append(before)
    return found


def _best(name: str, found: list[Variant], before: Variant | None) -> Variant:
    best = min([*found, *([before] if before is not None else [])], key=lambda variant: variant.figure)
    return replace(best, name=name)


def predicted_s(plan: _core.Plan) -> float | None:
    """Return the model's prediction for a plan; None where nothing is known of the job's links."""
    if not links_are_known(plan.job):
        return None
    return _core.predict(plan, plan.lengths, _core.Costs.of(plan.job)).seconds or None
