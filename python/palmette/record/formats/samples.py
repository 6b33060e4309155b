"""Samples one by one, for formats that have time: which stack, when, of which thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from palmette import _core
from palmette.record.contexts import Contexts, Site
from palmette.record.formats.selection import Selection
from palmette.record.last_seen import Stacks
from palmette.record.reading import RecordError


class Sample(NamedTuple):
    """One sample, outside of MPI."""

    at_ns: int
    """Nanoseconds since the job's first call."""
    thread: int
    """Number of the thread, as in calls; 0: a thread that makes none."""
    thread_id: int
    """Thread id of the system."""
    site: int
    """Innermost site, in `Samples.contexts`."""
    cpu_ns: int
    """Processor time of its thread since its previous sample."""


@dataclass
class Samples:
    """Samples of a selection's processes."""

    contexts: Contexts
    _selection: Selection
    _sites: dict[int, list[int]]
    """Site of each context, by index of the process."""

    def stack(self, site: int) -> list[Site]:
        """Return a stack, the outermost function first."""
        return self.contexts.stack(site)

    def of(self, index: int) -> Iterator[Sample]:
        """Give those of a process in the window that lie outside of MPI, by time. Cost: O(samples in its ring)."""
        process, sites = self._selection.everyone[index], self._sites.get(index)
        if process.file is None or not sites:
            return
        try:
            columns = _core.Recording.samples_of(str(process.file), process.section)
        except _core.Error as error:
            raise RecordError(str(error)) from None
        threads = process.recorded.sampling.threads
        names = ("real_ns", "context", "thread", "cpu_s")
        for real_ns, context, thread, cpu_s in zip(*(columns[name].tolist() for name in names), strict=True):
            if context >= len(sites) or not 0 < thread <= len(threads) or self.contexts.in_mpi[sites[context]]:
                continue
            at_ns = self._selection.since_begin_ns(process, real_ns)
            if at_ns < self._selection.from_ns or at_ns >= (self._selection.until_ns or 2**63):
                continue
            one = threads[thread - 1]
            yield Sample(at_ns, one.calls_as, one.thread_id, sites[context], round(cpu_s * 1e9))


def samples_of(selection: Selection) -> Samples | None:
    """Return the samples of a selection; None where it has none. Cost: O(contexts of all processes)."""
    stacks, ranks = Stacks(), []
    numbers: dict[int, list[int]] = {}
    for index in selection.chosen:
        process = selection.everyone[index]
        if process.recorded.sampling.samples and process.file is not None:
            numbers[index] = stacks.add_all(process.recorded.contexts)
            ranks.append(process.recorded.rank)
    if not numbers:
        return None
    contexts = Contexts(stacks, ranks, selection.resolver.notes)
    site_of = np.asarray(contexts.site_of)
    return Samples(contexts, selection, {index: site_of[own].tolist() for index, own in numbers.items()})
