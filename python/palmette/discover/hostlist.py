"""Host lists with brackets, as Slurm writes them: `node[01-04,7],gpu3`."""

from __future__ import annotations

import hostlist as library  # type: ignore[import-untyped]

from palmette.discover.found import DiscoverError


def expand(text: str, place: str) -> list[str]:
    """The names that a host list stands for, in its order, each once.

    place: file and line for the error. Raises DiscoverError for unbalanced brackets and bad ranges.
    """
    text = text.strip()
    if not text:
        return []
    try:
        return list(library.expand_hostlist(text))
    except library.BadHostlist as error:
        raise DiscoverError(f'host list "{text[:60]}" can\'t be read ({error}), {place}; mend that line') from None


def fold(names: list[str]) -> str:
    """Names as a host list: `n1 n2 n3` -> `n[1-3]`; joined by commas when they can't be folded."""
    try:
        return str(library.collect_hostlist(names))
    except library.BadHostlist:
        return ",".join(names)
