"""Distances between all ranks of a running job: ping-pongs in rounds of disjoint pairs, and their file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from palmette import _core
from palmette.map.errors import MapError
from palmette.map.matrix import Matrix, read_lines
from palmette.measure.session import Asker, JobLine, Pair

TRIPS = 20
"""Round trips of a pair."""
SECONDS_PER_ROUND = 0.5
FIRST = "# seconds of half a round trip of "
"""Beginning of the file."""
NOISY = 0.5
"""A typical spread from which on an order would follow noise."""
HOSTS = "# hosts:"
"""Beginning of the remark with the host of each rank."""


@dataclass(frozen=True)
class LatencyMatrix:
    """Seconds of half a round trip between ranks, symmetric, with zeros on the diagonal.

    `spread` has for each pair what lies between its quartiles, relative to its median.
    """

    size_bytes: int
    seconds: Matrix
    spread: Matrix
    hosts: Sequence[str]
    job: str

    @property
    def typical_spread(self) -> float:
        """Return the median over pairs."""
        return float(np.median(self.spread[np.triu_indices(len(self.spread), 1)]))

    @property
    def worst(self) -> tuple[float, int, int]:
        """Return the largest spread, and its pair."""
        a, b = np.unravel_index(int(np.argmax(np.triu(self.spread, 1))), self.spread.shape)
        return float(self.spread[a, b]), int(a), int(b)

    def sentence(self) -> str:
        """Say how near to the truth the times are."""
        largest, a, b = self.worst
        text = (
            f"half of a pair's times lie within {self.typical_spread:.1%} in the median over pairs, "
            f"{largest:.1%} at most (ranks {a} and {b})"
        )
        if self.typical_spread > NOISY:
            text += (
                "; an order by them would follow noise: give each rank a core of its own, or measure when it is quiet"
            )
        return text

    def text(self) -> str:
        """Return the file that `palmette map --distances` reads."""
        rows = [" ".join(f"{value:.6g}" for value in row) for row in self.seconds]
        remarks = [
            f"{FIRST}{self.size_bytes} bytes, median of {TRIPS}, by palmette map --measure",
            f"# job: {self.job}",
            f"# {self.sentence()}",
            f"{HOSTS} {' '.join(self.hosts)}",
        ]
        return "\n".join([*remarks, *rows]) + "\n"


def rounds_of(ranks: int) -> list[list[Pair]]:
    """Return rounds of disjoint pairs in which each rank meets each other one once: a tournament by the circle method.

    As many rounds as ranks, or one less where their number is even.
    """
    even = ranks + ranks % 2
    circle = list(range(even))
    rounds = []
    for _ in range(even - 1):
        pairs = [(circle[i], circle[even - 1 - i]) for i in range(even // 2)]
        rounds.append([(min(pair), max(pair)) for pair in pairs if max(pair) < ranks])
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return rounds


def measure(
    asker: Asker, job: JobLine, size_bytes: int, name: str, progress: Callable[[int, int], None] | None = None
) -> LatencyMatrix:
    """Measure on a running job. `progress` is called with the rounds done and all of them.

    The pairs of a round measure at once, so that times include what they take from each other on common links. Raises
    MapError for a job of one rank, CalibrateError where the job fails.
    """
    if job.ranks < 2:
        raise MapError("a job of 1 rank has no pair to measure; start more ranks")
    seconds, spread = np.zeros((job.ranks, job.ranks)), np.zeros((job.ranks, job.ranks))
    rounds = rounds_of(job.ranks)
    for done, pairs in enumerate(rounds):
        if progress is not None:
            progress(done, len(rounds))
        answers = asker.ask("quartiles", (size_bytes, TRIPS), pairs, SECONDS_PER_ROUND)
        for (a, b), (lower, median, upper) in zip(pairs, answers, strict=True):
            seconds[a, b] = seconds[b, a] = median
            spread[a, b] = spread[b, a] = (upper - lower) / median if median > 0 else 0.0
    separate = len(set(job.processors)) >= len(set(job.hosts))
    return LatencyMatrix(size_bytes, seconds, spread, job.processors if separate else job.hosts, name)


def check_replaces(path: str | Path) -> None:
    """Raise MapError where a file is there that isn't a measured matrix, which measuring would replace."""
    if not Path(path).exists():
        return
    first = next(iter(read_lines(path)), "")
    if first and not first.startswith(FIRST):
        raise MapError(
            f"--distances {path}: that file is there, and wasn't measured by --measure ('{first[:40]}'); give another "
            "name, or leave out --measure to read it"
        )


def hosts_in(path: str | Path) -> list[str]:
    """Return the host of each rank that a file of distances names, or nothing. Raises MapError."""
    return next((line[len(HOSTS) :].split() for line in read_lines(path) if line.startswith(HOSTS)), [])


def job_on(hosts: Sequence[str]) -> _core.Job:
    """Return the job with these ranks' hosts, of whose network nothing is known: for the files of launchers."""
    most = {host: list(hosts).count(host) for host in dict.fromkeys(hosts)}
    insides = {f"{count}core": [{"level": "core", "count": count}] for count in set(most.values())}
    machine = {
        "levels": [{"name": "node"}, {"name": "core"}],
        "insides": insides,
        "tree": {
            "name": "fabric",
            "children": [{"name": host, "level": "node", "inside": f"{n}core"} for host, n in most.items()],
        },
    }
    return _core.Job(_core.Machine.from_json(machine), f"hosts={','.join(hosts)}")
