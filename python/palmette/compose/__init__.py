"""Compositions: collective communication as multicasts, reductions and fences, factored over the machine's hierarchy.

>>> from palmette.compose import Composition
>>> c = Composition(24, bytes=1 << 20)
>>> x = c.buffer("x")
>>> c.multicast(0, "all", x[0], x)
>>> plan = c.factor(hierarchy=[3, 8], methods=["ring", "tree.2"], stripes=4, pipeline=16)
>>> plan.verify() is None
True
"""

from palmette.compose.composition import Buffer, Composition, Region, named
from palmette.compose.errors import ComposeError

__all__ = ["Buffer", "ComposeError", "Composition", "Region", "named"]
