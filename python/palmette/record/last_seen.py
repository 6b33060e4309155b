"""Where each process was last seen by a sample: of a job that runs, hangs, or was killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from palmette import _core
from palmette.record.contexts import ROOT, Contexts, Site
from palmette.record.reading import Job, Process


@dataclass(frozen=True)
class LastSample:
    """A process's last sample."""

    process: Process
    site: Site
    """The innermost line of the program's own, or the MPI call."""
    caller: Site | None
    """The caller's line in the program's own code."""
    ago_s: float


@dataclass
class Stacks:
    """Stacks of processes as contexts of a job are read."""

    frames: list[_core.SampledContext] = field(default_factory=list)
    parents: list[int] = field(default_factory=lambda: [ROOT])
    frame_of: list[int] = field(default_factory=lambda: [0])
    _numbers: dict[tuple[object, ...], int] = field(default_factory=dict)

    def add(self, contexts: Sequence[_core.SampledContext], innermost: int) -> int:
        """Add the stack of a context; returns its number."""
        chain = []
        while innermost:
            chain.append(contexts[innermost])
            innermost = contexts[innermost].parent
        at = ROOT
        for one in reversed(chain):
            self.parents.append(at)
            self.frame_of.append(len(self.frames))
            self.frames.append(one)
            at = len(self.parents) - 1
        return at

    def add_all(self, contexts: Sequence[_core.SampledContext]) -> list[int]:
        """Add all contexts of a process; returns the number of each."""
        numbers = [ROOT]
        for one in contexts[1:]:
            key = (numbers[one.parent], one.kind, one.module, one.build_id, one.offset, one.is_innermost, one.function,
                   one.line)  # fmt: skip
            if key not in self._numbers:
                self._numbers[key] = len(self.parents)
                self.parents.append(key[0])
                self.frame_of.append(len(self.frames))
                self.frames.append(one)
            numbers.append(self._numbers[key])
        return numbers

    @property
    def parent(self) -> NDArray[np.uint32]:
        return np.array(self.parents, np.uint32)

    @property
    def frame(self) -> NDArray[np.uint32]:
        return np.array(self.frame_of, np.uint32)

    sum_context = sum_process = np.empty(0, np.int32)
    sum_cpu_s = np.empty(0)


def last_seen(job: Job) -> list[LastSample]:
    """Return where processes were last that haven't finalized, those that samples are taken of. The job was read with
    tables.

    Cost: O(samples of all processes), and a look into the modules of these places.
    """
    stacks = Stacks()
    found = []
    for process in job.processes:
        taken = process.recorded.sampling
        if not taken.samples or process.file is None or process.state == "finalized":
            continue
        samples = _core.Recording.samples_of(str(process.file), process.section)
        callers = [number for number, one in enumerate(taken.threads, 1) if one.calls_as]
        contexts_of = process.recorded.contexts
        # A running process may have samples by now whose contexts weren't read.
        known = np.flatnonzero(samples["context"] < len(contexts_of))
        rows = known[np.isin(samples["thread"][known], callers)]
        if not len(rows):
            rows = known
        if not len(rows):
            continue
        last = int(rows[-1])
        context = stacks.add(contexts_of, int(samples["context"][last]))
        found.append((process, context, int(samples["real_ns"][last])))
    contexts = Contexts(stacks, [process.recorded.rank for process, _, _ in found])
    # When the last of the processes that are gone was seen.
    end_ns = max((max(at_ns, process.recorded.last_real_ns) for process, _, at_ns in found), default=0)
    return [
        LastSample(process, *_where(contexts, context), max(0.0, (_until_ns(process, end_ns) - at_ns) * 1e-9))
        for process, context, at_ns in found
    ]


def _until_ns(process: Process, end_ns: int) -> int:
    return process.now_ns() if process.state in ("begun", "running", "finalizing") else end_ns


def _where(contexts: Contexts, context: int) -> tuple[Site, Site | None]:
    site = int(contexts.site_of[context])
    chain = [contexts.sites[one] for one in contexts.callers(site)]
    own = [one for one in chain if one.is_own]
    calls = [one for one in chain if one.kind == "mpi"]
    if calls:
        return calls[-1], own[0] if own else None
    return (own or chain or [contexts.sites[ROOT]])[0], own[1] if len(own) > 1 else None
