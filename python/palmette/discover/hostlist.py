"""Host lists with brackets, as Slurm writes them: `node[01-04,7],gpu3`."""

from __future__ import annotations

from ClusterShell.NodeSet import NodeSet, NodeSetException  # type: ignore[import-untyped]

from palmette.discover.found import DiscoverError


def expand(text: str, place: str) -> list[str]:
    """The names that a host list stands for, each once, in natural order.

    place: file and line for the error. Raises DiscoverError for unbalanced brackets and bad ranges.
    """
    text = text.strip()
    if not text:
        return []
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
