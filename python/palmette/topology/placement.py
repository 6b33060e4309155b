"""Which rank sits on which host: the placements of docs/reference/topology-json.md for launchers.

The C++ core makes the same placements from a machine; here the machine is just its hosts with their slots, so that
ranks can be launched before anything else is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from palmette.files import read_text

_MASK = (1 << 64) - 1
MOST_RANKS = 1 << 24
"""Larger jobs don't exist; a placement with more is rejected before it takes gigabytes."""


class PlacementError(ValueError):
    """A placement can't be read or doesn't fit the hosts; the message says which part and what to do."""


def hosts_of_ranks(hosts: Sequence[tuple[str, int]], form: str, ranks: int | None = None) -> list[str]:
    """Return the host of each rank, rank 0 first.

    `hosts` are (name, slots) in topology order. `form` is block, cyclic, random:SEED, hosts=A,B,... or the path of a
    file with one host a line. `ranks` is the size of the job; None takes all slots, or all that the list names. An
    explicit list may put more ranks on a host than it has slots.

    Raises PlacementError, naming the form, the host or the line at fault.
    """
    if sum(slots for _, slots in hosts) > MOST_RANKS:
        raise PlacementError(f"the hosts have more than {MOST_RANKS} places in all; give them fewer slots")
    if form == "block":
        seats = _block(hosts)
    elif form == "cyclic":
        seats = _cyclic(hosts)
    elif form.startswith("random:"):
        seats = _shuffled(hosts, form.removeprefix("random:"))
    elif form.startswith("hosts="):
        seats = _named(hosts, [name.strip() for name in form.removeprefix("hosts=").split(",")])
    else:
        seats = _named(hosts, _read_file(Path(form)))
    if ranks is None:
        return seats
    if not 1 <= ranks <= len(seats):
        raise PlacementError(
            f"{ranks} ranks don't fit: placement '{form}' has {len(seats)} places; take 1 to {len(seats)} ranks, or"
            " more slots a host"
        )
    return seats[:ranks]


def splitmix64(seed: int) -> Iterator[int]:
    """Yield 64-bit numbers endlessly (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        yield z ^ (z >> 31)


def _block(hosts: Sequence[tuple[str, int]]) -> list[str]:
    return [name for name, slots in hosts for _ in range(slots)]


def _cyclic(hosts: Sequence[tuple[str, int]]) -> list[str]:
    most = max((slots for _, slots in hosts), default=0)
    return [name for turn in range(most) for name, slots in hosts if turn < slots]


def _shuffled(hosts: Sequence[tuple[str, int]], seed_text: str) -> list[str]:
    """Fisher-Yates from the end, driven by splitmix64: the same on every machine."""
    if not re.fullmatch(r"[0-9]+", seed_text) or int(seed_text) > _MASK:
        raise PlacementError(f"placement 'random:{seed_text}': the seed must be a whole number, like random:1")
    seats = _block(hosts)
    for i, number in zip(range(len(seats) - 1, 0, -1), splitmix64(int(seed_text)), strict=False):
        j = number % (i + 1)
        seats[i], seats[j] = seats[j], seats[i]
    return seats


def _named(hosts: Sequence[tuple[str, int]], names: Sequence[str]) -> list[str]:
    """Return the hosts' own names for `names`, matched as they are and then up to the first dot."""
    known = {name: name for name, _ in reversed(hosts)}
    short = {name.split(".")[0]: name for name, _ in reversed(hosts)}
    seats = []
    for rank, name in enumerate(names):
        host = known.get(name) or short.get(name.split(".")[0])
        if host is None:
            raise PlacementError(f"rank {rank} sits on host '{name}', which the machine doesn't have; correct the name")
        seats.append(host)
    return seats


def _read_file(path: Path) -> list[str]:
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PlacementError(
            f"placement '{path}' is neither block, cyclic, random:SEED nor hosts=A,B,..., and as a file it can't be "
            f"read ({error.strerror if isinstance(error, OSError) else 'no text in UTF-8'})"
        ) from None
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        name, colon, count = (part.strip() for part in line.split("#")[0].partition(":"))
        if not name and not colon:
            continue
        if colon and not re.fullmatch(r"[1-9][0-9]{0,17}", count):
            raise PlacementError(f"{path}, line {number}: '{count}' is not a count of ranks")
        times = int(count) if colon else 1
        if len(names) + times > MOST_RANKS:
            raise PlacementError(f"{path}, line {number}: more than {MOST_RANKS} ranks in all; correct the count")
        names += [name] * times
    if not names:
        raise PlacementError(f"{path}: names no host")
    return names
