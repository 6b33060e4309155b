"""The search space of tuning: shapes per level, radix, leaders, segments and transport, for a collective on a job.

A grid of keys and promising values for each algorithm of the registry; of one that has none, what its row says that the
model should try. The registry's preconditions filter it for a job, and the model selects what is worth measuring
(`forecast`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from palmette import _core
from palmette.plan.request import details_of
from palmette.tune.specs import written

Grid = Mapping[str, Sequence[str | None]]
"""key -> values; None leaves the key out."""

_SEGMENTS = (8, 32, 128)
_FEWEST_SLICES, _MOST_SLICES = 2, 64
_TREE = ("linear", "binomial", "k_nomial.4")
_FLOW = ("linear", "k_nomial.4", "chain")


@dataclass(frozen=True)
class Levels:
    """The names of a job's levels that algorithms can have leaders at, outermost first; the ranks of its fullest node.

    `in_node`: the level of nodes and those inside, whose members can reach each other's memory.
    """

    leading: tuple[str, ...]
    most_a_node: int
    may_share: bool
    in_node: frozenset[str] = frozenset()

    @staticmethod
    def of(job: _core.Job) -> Levels:
        """Return the levels of a job: groups of several ranks, several of them."""
        leading = tuple(level.name for level in job.levels if 1 < level.count < job.size and max(level.sizes) > 1)
        node = job.level("node")
        most = max(node.sizes) if node is not None else 1
        names = [level.name for level in job.levels]
        in_node = frozenset(names[names.index("node") :]) if "node" in names else frozenset[str]()
        return Levels(leading, most, most > 1, in_node)

    @property
    def for_leaders(self) -> tuple[str | None, ...]:
        """Values of `level=`: the node, which is the default, and the outermost level where that is another one."""
        return (None, *(name for name in self.leading[:1] if name != "node"))

    @property
    def relays(self) -> tuple[str | None, ...]:
        """Values of `relays=`: with two ranks a node there are too few to delegate messages to."""
        return (None, "all") if self.most_a_node > 2 else (None,)

    @property
    def leaders(self) -> tuple[str | None, ...]:
        """Values of `leaders=`."""
        return (None, *(("2",) if self.most_a_node >= 2 else ()), *(("4",) if self.most_a_node > 4 else ()))

    def inside(self, *values: str) -> tuple[str | None, ...]:
        """Values of `inside=`, shared memory where nodes have several ranks."""
        return (None, *values, *(("shared",) if self.may_share else ()))


def segments(size: int) -> tuple[str | None, ...]:
    """Return values of `segment=` for blocks of `size` bytes: from 2 to 64 slices, and none."""
    fitting = [k for k in _SEGMENTS if _FEWEST_SLICES <= size / (k * 1024) <= _MOST_SLICES]
    return (None, *(f"{k}K" for k in fitting))


def _shapes(levels: Levels, values: Sequence[str], tops: Sequence[str]) -> Grid:
    """A shape for each level with leaders, and one among the leaders of the outermost."""
    if not levels.leading:
        return {}
    return {**dict.fromkeys(levels.leading, values), "top": tops}


def _gather(levels: Levels, size: int) -> dict[str, Grid]:
    return {
        "linear": {},
        "k_nomial": {"radix": (None, "4", "8"), "segment": segments(size)},
        "by_topology": {**_shapes(levels, _TREE, _TREE), "relays": levels.relays, "segment": segments(size)},
        "bine": {"segment": segments(size)},
    }


def _allgather(levels: Levels, size: int) -> dict[str, Grid]:
    between = ("ring", "recursive_doubling", "bruck", "all", "circulant", "pat")
    return {
        "ring": {"segment": segments(size)},
        "recursive_doubling": {},
        "bruck": {"radix": (None, "4")},
        "neighbor_exchange": {},
        "leaders": {
            "leaders": levels.leaders, "between": between, "inside": levels.inside("binomial"),
            "level": levels.for_leaders,
        },
        "linear": {},
        "circulant": {},
        "pat": {},
        "bine": {},
        "locality_bruck": {"radix": (None, "4"), "inside": levels.inside(), "level": levels.for_leaders},
        "by_topology": _shapes(levels, ("linear", "binomial"), ("all", "ring", "bruck")),
    }  # fmt: skip


def _vector_shapes(levels: Levels) -> Grid:
    """As `_shapes`; the levels of a node by shared memory, too, each by itself or, where nodes have no leaders, all."""
    shapes = dict(_shapes(levels, _FLOW, _FLOW))
    for name in sorted(levels.in_node & shapes.keys()):
        if levels.may_share:
            shapes[name] = (*_FLOW, "shared")
    return shapes if "node" in levels.leading else {**shapes, "inside": levels.inside()}


def _rooted_vector(levels: Levels, size: int) -> dict[str, Grid]:
    cut = segments(size)
    return {
        "linear": {},
        "k_nomial": {"radix": (None, "4"), "segment": cut},
        "k_ary": {"radix": (None, "4")},
        "chain": {"segment": cut},
        "by_topology": {**_vector_shapes(levels), "relays": levels.relays, "segment": cut},
        "bine": {"segment": cut},
        "earliest": _earliest(levels),
    }


def _earliest(levels: Levels) -> Grid:
    """Helpers where nodes have several ranks, groups first where nodes are in groups."""
    outside = [name for name in levels.leading if name not in levels.in_node]
    return {
        "helpers": (None, "1") if levels.most_a_node > 1 else (None,),
        "first": (None, "groups") if outside else (None,),
    }


_LANES_FROM, _LANES_TO = 8 << 10, 256 << 10
_IN_TURN_FROM = 16 << 10
"""Shorter messages are sent eagerly, so that none waits for another one."""


def _bcast(levels: Levels, size: int) -> dict[str, Grid]:
    rooted = _rooted_vector(levels, size)
    # Halves pay from a few segments on, and where a node has a second rank as leader.
    lanes = (None, "2") if levels.most_a_node > 1 and _LANES_FROM <= size <= _LANES_TO else (None,)
    in_turn = (None, "1") if size >= _IN_TURN_FROM else (None,)
    return {
        **rooted,
        "by_topology": {**rooted["by_topology"], "lanes": lanes},
        "k_nomial": {**rooted["k_nomial"], "window": in_turn},
        # Leaders pay where several nodes of a group send at once: as many as its ranks, or two on each of three nodes.
        "leaders": {
            "leaders": ("all", "6"), "between": (None, "linear"), "inside": (None, "chain"),
            "level": levels.for_leaders, "segment": segments(size),
        },
        "scatter_allgather": {"allgather": (None, "recursive_doubling", "bruck")},
        "circulant": {"window": in_turn},
        "node_pieces": {"inside": (None, "halving", "halving.4"), "relays": (None, "1"), "segment": segments(size)},
    }  # fmt: skip


def _reduce(levels: Levels, size: int) -> dict[str, Grid]:
    return {
        **_rooted_vector(levels, size),
        "reduce_scatter_gather": {},
        "ring_gather": {"segment": segments(size)},
        "circulant": {"segment": (None, "2K"), "window": (None, "1") if size >= _IN_TURN_FROM else (None,)},
        "node_pieces": {"inside": (None, "halving", "halving.4"), "segment": segments(size), "window": (None, "3")},
    }


def _allreduce(levels: Levels, size: int) -> dict[str, Grid]:
    between = (None, "recursive_multiplying.4", "all", "rabenseifner", "pat", "ring", "direct")
    some = tuple(value for value in (None, "all") if levels.most_a_node > 1 or value is None)
    return {
        "recursive_doubling": {"segment": segments(size)},
        "recursive_multiplying": {"radix": (None, "8"), "segment": segments(size)},
        "all": {},
        "rabenseifner": {"segment": segments(size)},
        "circulant": {},
        "pat": {"segment": segments(size)},
        "ring": {"segment": segments(size)},
        "direct": {},
        "reduce_bcast": {**_shapes(levels, ("linear", "binomial"), ("linear", "binomial")), "segment": segments(size)},
        "leaders": {
            "leaders": some, "between": between, "inside": levels.inside(), "level": levels.for_leaders,
            "segment": segments(size),
        },
        "node_aware": {"radix": (None, "4"), "inside": (None, "recursive_doubling"), "segment": segments(size)},
        "node_pieces": {
            "inside": (None, "halving", "halving.4"), "complete": (None, "tree"), "segment": segments(size),
            "window": (None, "3"),
        },
        "in_network": {"segment": segments(size), "window": (None, "1", "4")},
    }  # fmt: skip


def _reduce_scatter(levels: Levels, size: int) -> dict[str, Grid]:
    some = tuple(value for value in (None, "all") if levels.most_a_node > 1 or value is None)
    return {
        "ring": {"segment": segments(size)},
        "recursive_halving": {"segment": segments(size)},
        "circulant": {},
        "pat": {"segment": segments(size)},
        "pairwise": {},
        "direct": {},
        "leaders": {
            "leaders": some, "between": (None, "pat"), "inside": levels.inside("binomial"), "level": levels.for_leaders,
        },
    }  # fmt: skip


def _alltoall(levels: Levels, size: int) -> dict[str, Grid]:
    level, inside = levels.for_leaders, levels.inside()
    return {
        "linear": {},
        "pairwise": {"window": (None, "8", "16"), "levels": (None, "together")},
        "bruck": {"radix": (None, "4")},
        "node_aware": {"level": level, "inside": inside, "segment": segments(size), "rounds": (None, "4")},
        "leaders": {
            "leaders": levels.leaders, "split": (None, "sources"), "level": level, "inside": inside,
            "segment": segments(size), "rounds": (None, "4"),
        },
    }  # fmt: skip


def _barrier(levels: Levels, size: int) -> dict[str, Grid]:
    inside = levels.inside("linear")
    return {
        "dissemination": {"radix": (None, "4"), "inside": inside},
        "by_topology": {"inside": inside, "top": (None, "linear", "binomial")},
        "leaders": {
            "between": (None, "dissemination"), "radix": (None, "4"), "level": (None, "node"), "inside": inside,
        },
    }  # fmt: skip


def _scan(levels: Levels, size: int) -> dict[str, Grid]:
    return {
        "linear": {"segment": segments(size)},
        "recursive_doubling": {"segment": segments(size)},
        "all": {},
        "leaders": {"level": levels.for_leaders, "between": (None, "recursive_doubling", "linear")},
        "grouped": {"level": levels.for_leaders, "inside": (None, "all", "linear"), "segment": segments(size)},
    }


_GRIDS = {
    "gather": _gather,
    "scatter": _gather,
    "allgather": _allgather,
    "bcast": _bcast,
    "reduce": _reduce,
    "allreduce": _allreduce,
    "reduce_scatter": _reduce_scatter,
    "alltoall": _alltoall,
    "barrier": _barrier,
    "scan": _scan,
    "exscan": _scan,
}
_SHARED: Grid = {"batch": (None, "32K", "512K")}
NOT_TRIED = {
    "order": "ranks as they are numbered: for operations that keep an order, and never nearer than topology order",
    "nested": "a ring that isn't nested crosses links more often",
    "partners": "shift and xor load some uplinks before others",
    "layout": "rails costs no more than the other two (docs/decisions/0004)",
    "direct": "equals linear at any one size; rows of the table separate sizes",
    "segments": "the number of blocks is the algorithm's own optimum",
    "all": "of shared: the intra-node switch point was measured when the algorithm was designed",
    "single": "the transport in shared memory: transports.py adds it to the best that share memory",
    "segment": "where it isn't tried: slices don't help independent messages, and other algorithms cut by themselves",
    "share": "computed from capacities",
    "combine": "of in_network: what a failed call is repeated by",
    "keep": "of in_network: an experiment that is off (docs/decisions/0037)",
    "window": "where it isn't tried: stars and trees of equal parts have no message to prioritise",
}
"""key -> why it is in no grid."""


def grids(collective: str, levels: Levels, size: int) -> dict[str, Grid]:
    """Return algorithm -> its grid, for blocks (or vectors) of `size` bytes."""
    shared = {"shared": _SHARED if size >= 64 * 1024 else {}}
    return {**_GRIDS[collective](levels, size), **shared}


def candidates(job: _core.Job, function: str, size: int, root: int = 0) -> list[str]:
    """Return every specification that serves the MPI function on this job, in the grids' order.

    Blocks of `size` bytes, or a vector of it. Functions whose ranks don't know all sizes get algorithms that forward
    no blocks of others. Raises _core.Error for an invalid root or size.
    """
    return list(_serving(job, function, size, root))


def _serving(job: _core.Job, function: str, size: int, root: int) -> Iterator[str]:
    collective = _core.collective_of(function)
    levels = Levels.of(job)
    known = not sizes_unknown(function)
    details = details_of(collective, shared_memory=levels.may_share)
    rows = {row.name: row for row in _core.algorithms() if row.collective == collective and (known or not row.relays)}
    grid_of = grids(collective, levels, size)
    for name in (*grid_of, *(name for name in rows if name not in grid_of)):
        if name not in rows:
            continue
        for spec in _written(name, grid_of[name]) if name in grid_of else rows[name].candidates:
            if _core.refusal(job, collective, spec, root, size if known else -1, **details) is None:
                yield spec


def _written(name: str, grid: Grid) -> Iterator[str]:
    for values in product(*grid.values()):
        yield written(name, dict(zip(grid, values, strict=True)))


def sizes_unknown(function: str) -> bool:
    """Whether no rank, or the root alone, knows all sizes: a row for such a function can't depend on them."""
    return function in ("gatherv", "scatterv", "alltoallv", "alltoallw")
