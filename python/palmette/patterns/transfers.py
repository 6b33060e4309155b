"""From a pattern to its messages and their buffer offsets: the input of the program `patternbench`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from palmette.map.errors import MapError
from palmette.map.matrix import read_matrix
from palmette.patterns.errors import PatternError
from palmette.patterns.form import INTRA_NODE, LIBRARIES, Form, Part
from palmette.patterns.groups import Pair, pairs
from palmette.patterns.seats import Seats

MOST_MEMORY = 2 << 30
"""Upper bound on the buffer of one rank."""
MOST_MESSAGES = 4_000_000

PHASES = ("split", "across", "join")
"""The steps of a striped message: to the ranks of its host, between hosts, from the ranks of the other host."""


@dataclass(frozen=True)
class Kind:
    """Common properties of messages that are timed together."""

    step: int
    part: str
    level: str


@dataclass(frozen=True)
class Transfer:
    """One message. `_at`: offsets in a rank's buffer; the payload is what `origin` had at `origin_at`."""

    kind: int
    step: int
    library: str
    source: int
    target: int
    bytes: int
    source_at: int
    target_at: int
    origin: int
    origin_at: int


@dataclass
class Plan:
    """All messages of a pattern, in the order of their steps."""

    form: Form
    size_bytes: int
    kinds: list[Kind] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    steps: int = 1

    def write(self, path: Path, ranks: int) -> None:
        """Write the file that patternbench reads."""
        with path.open("w", encoding="ascii") as file:
            file.write(f"palmette-pattern 1 {ranks} {self.steps} {len(self.kinds)} {len(self.transfers)}\n")
            for one in self.transfers:
                file.write(
                    f"{one.step} {one.kind} {LIBRARIES[one.library]} {one.source} {one.target} {one.bytes}"
                    f" {one.source_at} {one.target_at} {one.origin} {one.origin_at}\n"
                )


@dataclass(frozen=True)
class _Message:
    """A message before its route is known."""

    first_step: int
    part: Part
    label: str
    source: int
    target: int
    bytes: int


def plan(form: Form, seats: Seats, size_bytes: int) -> Plan:
    """Return the messages of a pattern on these seats, of `size_bytes` each by default. Raises PatternError."""
    made = Plan(form, size_bytes)
    messages: list[_Message] = []
    step = 0
    several = sum(map(len, form.steps)) > 1
    for parts in form.steps:
        for part in parts:
            label = part.text if several else part.kind
            for (source, target), size in _messages(part, seats, size_bytes):
                messages += [_Message(step, part, label, source, target, size)]
                if len(messages) > MOST_MESSAGES:
                    raise PatternError(f"'{part.text}': more than {MOST_MESSAGES:,} messages; take fewer ranks")
        step += len(PHASES) if any(_stripes(part) > 1 for part in parts) else 1
    if not messages:
        raise PatternError(f"'{form.text}': there are no messages; make groups larger, or the matrix not zero")
    made.steps = step
    _lay_out(made, messages, seats)
    return made


def _messages(part: Part, seats: Seats, size_bytes: int) -> Iterator[tuple[Pair, int]]:
    window = part.number("window", 1) or 1
    if part.kind == "matrix":
        for pair, size in _matrix(part, seats):
            yield from [(pair, size)] * window
        return
    size = part.size(size_bytes)
    if part.kind == "pair":
        source, target = part.number("from", 0, 0) or 0, part.number("to", 0, 0) or 0
        for rank in (source, target):
            if rank >= seats.ranks:
                raise PatternError(f"'{part.text}': there is no rank {rank}; there are 0 to {seats.ranks - 1}")
        chosen = {"one": [(source, target)], "in": [(target, source)]}.get(
            part.way, [(source, target), (target, source)]
        )
    else:
        ranks = part.number("ranks", seats.ranks) or seats.ranks
        if ranks > seats.ranks:
            raise PatternError(f"'{part.text}': the job has {seats.ranks} ranks only")
        chosen = pairs(part.kind, seats.groups(part.keys.get("groups"), ranks), part.number("width", None), part.way)
    for pair in chosen:
        yield from [(pair, size)] * window


def _matrix(part: Part, seats: Seats) -> Iterator[tuple[Pair, int]]:
    path = part.keys["file"]
    try:
        matrix = read_matrix(path)
    except MapError as error:
        raise PatternError(str(error)) from None
    if len(matrix) != seats.ranks:
        raise PatternError(f"{path} has {len(matrix)} rows, and the job {seats.ranks} ranks; make them the same")
    # Row r is what rank r sends. Each row is rotated, so that not every rank begins with rank 0.
    for distance in range(seats.ranks):
        for source in range(seats.ranks):
            target = (source + distance) % seats.ranks
            size = math.ceil(matrix[source][target])
            if size >= 1 << 31:
                raise PatternError(f"{path}: rank {source} sends {size} bytes to {target}; a message has 2G at most")
            if size > 0:
                yield (source, target), size


def _stripes(part: Part) -> int:
    return part.number("stripes", 1) or 1


def _lay_out(made: Plan, messages: list[_Message], seats: Seats) -> None:
    """Assign each message its kind and buffer offsets: send buffers first, receive buffers behind them."""
    ends = [0] * seats.ranks
    begins: list[int] = []
    for message in messages:
        begins.append(ends[message.source])
        ends[message.source] += message.bytes
    kinds: dict[Kind, int] = {}
    by_step: list[list[Transfer]] = [[] for _ in range(made.steps)]
    for message, begin in zip(messages, begins, strict=True):
        for offset, size, hops in _ways(message, seats):
            at = begin + offset
            for phase, source, target in hops:
                step = message.first_step + max(phase, 0)
                label = message.label + (f", {PHASES[phase]}" if phase >= 0 else "")
                kind = Kind(step, label, seats.level_between(source, target))
                library = _library(message.part, seats, source, target)
                by_step[step].append(
                    Transfer(
                        kinds.setdefault(kind, len(kinds)), step, library, source, target, size, at, ends[target],
                        message.source, begin + offset,
                    )
                )  # fmt: skip
                at = ends[target]
                ends[target] += size
    largest = max(ends)
    if largest > MOST_MEMORY:
        raise PatternError(f"'{made.form.text}': a rank would need {largest / 2**30:.1f} GiB; take smaller messages")
    made.kinds = list(kinds)
    made.transfers = [one for step in by_step for one in step]


def _ways(message: _Message, seats: Seats) -> Iterator[tuple[int, int, list[tuple[int, int, int]]]]:
    """Offset and length of each stripe, and its hops: phase (-1: not striped), source, target."""
    source, target = message.source, message.target
    count = _stripes(message.part)
    if count == 1 or seats.same_host(source, target):
        yield 0, message.bytes, [(-1 if count == 1 else 1, source, target)]
        return
    here, there = seats.on_host_of(source), seats.on_host_of(target)
    count = min(count, len(here), len(there), message.bytes)
    edges = [message.bytes * stripe // count for stripe in range(count + 1)]
    for stripe in range(count):
        hops = [(1, here[stripe], there[stripe])]
        if here[stripe] != source:
            hops.insert(0, (0, source, here[stripe]))
        if there[stripe] != target:
            hops.append((2, there[stripe], target))
        yield edges[stripe], edges[stripe + 1] - edges[stripe], hops


def _library(part: Part, seats: Seats, source: int, target: int) -> str:
    if seats.same_host(source, target):
        return part.inside
    if part.between in INTRA_NODE:
        raise PatternError(
            f"'{part.text}': ranks {source} and {target} are on different hosts, which {part.between} doesn't reach;"
            f" write @{part.between}/mpi"
        )
    return part.between
