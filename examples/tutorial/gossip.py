"""A collective that MPI doesn't have: each rank's block goes to the next two ranks.

palmette compose gossip.py --hierarchy 2:4 --size 8K
"""

from palmette.compose import Composition


def composition(ranks: int, bytes: int) -> Composition:
    """Return it for so many ranks, with a block of so many bytes from each."""
    c = Composition(ranks, bytes=bytes, blocks=ranks)
    mine, theirs = c.buffer("mine"), c.buffer("theirs")
    for rank in range(ranks):
        c.multicast(rank, sorted({(rank + 1) % ranks, (rank + 2) % ranks}), mine[rank], theirs)
    return c
