"""Host lists with brackets, as Slurm writes them: `node[01-04,7],gpu3`."""

from __future__ import annotations

import re

from ClusterShell.NodeSet import NodeSet, NodeSetException  # type: ignore[import-untyped]

from palmette.discover.found import DiscoverError

MOST_HOSTS = 1 << 18
"""A list that stands for more is taken for a slip: no cluster has so many, and its names would take gigabytes."""

_RANGES = re.compile(r"\[([^\]]*)\]")


def count(text: str) -> int:
    """How many names a host list stands for at most, without making them."""
    total = 0
    for item in re.split(r",(?![^\[]*\])", text):
        names = 1
        for ranges in _RANGES.findall(item):
            inside = 0
            for part in ranges.split(","):
                first, dash, last = part.partition("-")
                digits = first.strip().isdigit() and last.strip().split("/")[0].isdigit()
                inside += max(1, int(last.split("/")[0]) - int(first) + 1) if dash and digits else 1
            names *= inside
        total += names
    return total


def expand(text: str, place: str) -> list[str]:
    """The names that a host list stands for, each once, in natural order.

    place: file and line for the error. Raises DiscoverError for unbalanced brackets and bad ranges.
    """
    text = text.strip()
    if not text:
        return []
    if (names := count(text)) > MOST_HOSTS:
        raise DiscoverError(f'host list "{text[:60]}" stands for {names} hosts, {place}; at most {MOST_HOSTS} are read')
    # ClusterShell reads @group, ! and & as set arithmetic, which host lists don't have.
    if bad := next((c for c in "@!&^*" if c in text), None):
        raise DiscoverError(f'host list "{text[:60]}" can\'t be read ("{bad}" in a name), {place}; mend that line')
    try:
        return [str(name) for name in NodeSet(text, resolver=None)]
    except NodeSetException as error:
        raise DiscoverError(f'host list "{text[:60]}" can\'t be read ({error}), {place}; mend that line') from None


def fold(names: list[str]) -> str:
    """Names as a host list: `n1 n2 n3` -> `n[1-3]`; joined by commas when they can't be folded."""
    try:
        return str(NodeSet.fromlist(names, resolver=None))
    except NodeSetException:
        return ",".join(names)
