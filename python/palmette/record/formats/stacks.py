"""Call paths as words, for formats that know stacks of names and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from palmette.record.contexts import Contexts, Site
from palmette.record.formats.selection import Selection
from palmette.record.sampled import contexts_of
from palmette.record.symbols import STARTS, Place


def words(selection: Selection, path: int) -> list[str]:
    """Return a path's functions, the outermost first; the one that calls MPI with file and line, where they are known,
    for a function often calls MPI on several lines.
    """
    stack = selection.stacks[path] or (Place("unknown"),)
    last = stack[-1]
    return [*(place.function for place in stack[:-1]), f"{last.function} ({last})" if last.line else last.function]


def without_starts(stack: Sequence[str]) -> Sequence[str]:
    """Return a stack without the functions that it begins with before main, or before a thread's."""
    regions = next((at for at, name in enumerate(stack) if not name.startswith("[")), 0)
    first = next((at for at, name in enumerate(stack[regions:], regions) if not STARTS.fullmatch(name)), regions)
    return [*stack[:regions], *stack[first:]]


def sampled_words(sites: Sequence[Site]) -> list[str]:
    """Return a sampled stack's functions, the outermost first, as `words` has those of calls: file and line of the
    innermost one of which they are known.
    """
    last = max((at for at, one in enumerate(sites) if one.line), default=-1)
    return [f"{one.function} ({one.place})" if at == last else one.function for at, one in enumerate(sites)]


def computing_of(selection: Selection) -> Iterator[tuple[int, list[tuple[list[Site], float]]]]:
    """Give ranks and, of samples outside of MPI, stacks, the outermost function first, with seconds on a processor.

    What lies in MPI calls, their own times say. None of a window, since some may lie outside of it.
    """
    contexts = None if selection.is_window else contexts_of(selection.job)
    if contexts is None:
        return
    for process in sorted(range(len(contexts.ranks)), key=lambda one: contexts.ranks[one]):
        if selection.has_rank(contexts.ranks[process]):
            yield contexts.ranks[process], list(_computing(contexts, process))


def _computing(contexts: Contexts, process: int) -> Iterator[tuple[list[Site], float]]:
    for site, seconds in contexts.sums_of(process):
        if not contexts.in_mpi[site]:
            yield contexts.stack(site) or [contexts.sites[0]], seconds
