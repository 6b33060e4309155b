"""Intra-node transports: messages of the MPI, double copy through shared memory, or single copy.

Messages and shared memory are different plans, which the model can rank (`inside=`, `shared` in the grids of
candidates.py). Which copy is faster in shared memory differs by factors between machines (docs/decisions/0009), and the
plan is mostly the same: a candidate that shares memory and is worth measuring is measured with each of them.
"""

from __future__ import annotations

from palmette import _core
from palmette.plan.request import details_of
from palmette.tune.candidates import sizes_unknown
from palmette.tune.results import Cell
from palmette.tune.specs import read, written

IN_PLACE, BY_SEGMENT = "4K", "1G"
"""Values of `single=`: exposed data is read in its owner's memory (single copy) from a size on at which a system call
may pay; or it is always copied through the node's shared segment."""


def transports(job: _core.Job, cell: Cell, spec: str) -> list[str]:
    """Return the same algorithm with other intra-node transports; nothing where it shares no memory or has `single=`.

    The default of the algorithm `shared` is the transport that its job measured, that of all others the segment. Raises
    _core.Error.
    """
    name, options = read(spec)
    shares = name == "shared" or "shared" in options.values()
    if not shares or "single" in options or cell.size_bytes < _core.parse_size(IN_PLACE):
        return []
    collective = _core.collective_of(cell.function)
    details = details_of(collective, shared_memory=True)
    size = -1 if sizes_unknown(cell.function) else cell.size_bytes
    ways = (IN_PLACE, BY_SEGMENT) if name == "shared" else (IN_PLACE,)
    found = [written(name, {**options, "single": way}) for way in ways]
    return [one for one in found if _core.refusal(job, collective, one, cell.root, size, **details) is None]
