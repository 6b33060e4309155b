"""Host lists with brackets, as Slurm writes them: `node[01-04,7],gpu3`."""

from __future__ import annotations

import re

from ClusterShell.NodeSet import NodeSet, NodeSetException  # type: ignore[import-untyped]

from palmette.topology.found import DiscoverError

MOST_HOSTS = 1 << 18
"""Hosts of the longest list: a longer one is a mistake, and its names would take gigabytes."""

_ITEM = re.compile(r"(?:[^,\[]|\[[^\]]*\]?)+")
_RANGES = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"\s*([0-9]+)\s*-\s*([0-9]+)\s*(?:/.*)?", re.DOTALL)
_MOST_DIGITS = 18


def count(text: str) -> int:
    """Upper bound on the number of names in a host list, without expanding it; linear time in the text."""
    total = 0
    for item in _ITEM.findall(text):
        names = 1
        for ranges in _RANGES.findall(item):
            names *= sum(map(_width, ranges.split(",")))
        total += names
    return total


def _width(text: str) -> int:
    ends = _RANGE.fullmatch(text)
    if ends is None:
        return 1
    first, last = ends.groups()
    if max(len(first), len(last)) > _MOST_DIGITS:
        return MOST_HOSTS + 1
    return max(1, int(last) - int(first) + 1)


def expand(text: str, place: str) -> list[str]:
    """Expand a host list: its names, each once, in natural order.

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
