"""By which way data goes inside of a node: messages of the MPI's, twice through shared memory, or once.

Messages or shared memory are different plans, between which the model can tell (`inside=`, `shared` in the grids of
candidates.py). Which way through shared memory is faster depends on the machine by factors (docs/decisions/0009), and
mostly the plan is the same: what shares memory and is worth measuring is measured by each of them.
"""

from __future__ import annotations

from palmette import _core
from palmette.plan.request import details_of
from palmette.tune.candidates import sizes_unknown
from palmette.tune.results import Cell
from palmette.tune.specs import read, written

IN_PLACE, BY_SEGMENT = "4K", "1G"
"""Values of `single=`: what a rank exposes is read in its owner's memory, from so much on that a call of the kernel's
may be worth it; or it is copied through the node's shared segment, however long it is."""


def transports(job: _core.Job, cell: Cell, spec: str) -> list[str]:
    """Return the same algorithm by other ways through a node's memory; nothing where it shares none or says itself how.

    The algorithm `shared` takes by itself the way that its job tried out, all others the segment. Raises _core.Error.
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
