"""Reader of the communication matrix that `palmette run --matrix` records (docs/reference/matrix-file.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from palmette.map.errors import MapError
from palmette.map.pattern import Pattern, pattern_of_messages

FORMAT = "palmette-matrix"
VERSIONS = ("1", "2")
"""Version 1 had no exchanges."""
_FIELDS = {
    "ranks": "ranks P",
    "host": "host RANK NAME",
    "sent": "sent FROM TO BYTES MESSAGES",
    "exchanged": "exchanged FROM TO BYTES CALLS",
    "outside": "outside RANK BYTES MESSAGES",
    "one-sided": "one-sided RANK CALLS",
}


@dataclass(frozen=True)
class Recorded:
    """What a run sent and exchanged by ranks of MPI_COMM_WORLD, and where those ranks were."""

    pattern: Pattern
    hosts: tuple[str, ...] = ()
    """The host of each rank; empty: not known."""
    uncounted: tuple[str, ...] = ()
    """Sentences on traffic that was not recorded."""


@dataclass
class _Read:
    ranks: int = 0
    hosts: dict[int, str] = field(default_factory=dict)
    sent: list[tuple[int, int, int]] = field(default_factory=list)
    exchanged: float = 0.0
    outside: int = 0
    one_sided: int = 0


def is_recorded(first_line: str) -> bool:
    """Return whether a file that begins so has this format, in any version."""
    return first_line.split()[:1] == [FORMAT]


def read_recorded(path: str | Path, lines: Iterable[str]) -> Recorded:
    """Return what the file's lines say. Raises MapError naming the file and the line."""
    read = _Read()
    number = 0
    for number, line in enumerate(lines, start=1):
        words = line.split("#")[0].split()
        if number == 1:
            _check_head(path, words)
        elif words:
            _read_line(read, words, f"{path}, line {number}")
    if read.ranks == 0:
        raise MapError(f"{path}, line {number}: ends without `ranks P`; record it again with `palmette run --matrix`")
    if len(read.hosts) not in (0, read.ranks):
        raise MapError(
            f"{path}, line {number}: ends with the hosts of {len(read.hosts)} of {read.ranks} ranks; the file is cut "
            "short, copy or record it again"
        )
    pattern = pattern_of_messages(Path(path).name, read.ranks, read.sent, read.exchanged)
    return Recorded(pattern, tuple(read.hosts[rank] for rank in sorted(read.hosts)), _uncounted(read))


def _check_head(path: str | Path, words: list[str]) -> None:
    if words[:1] != [FORMAT] or " ".join(words[1:]) not in VERSIONS:
        raise MapError(
            f"{path}, line 1: '{' '.join(words)}', expected '{FORMAT} {VERSIONS[-1]}'; record it again with this "
            "palmette's `palmette run --matrix`"
        )


def _read_line(read: _Read, words: list[str], where: str) -> None:
    key, values = words[0], words[1:]
    form = _FIELDS.get(key)
    if form is None or len(words) != len(form.split()):
        expected = form or ", ".join(f"`{text}`" for text in _FIELDS.values())
        raise MapError(f"{where}: '{' '.join(words)[:60]}', expected {expected}")
    numbers = [_number(word, where) for word in (values[:1] if key == "host" else values)]
    if key == "ranks":
        if read.ranks or numbers[0] < 1:
            raise MapError(f"{where}: `ranks` stands once, with 1 or more")
        read.ranks = numbers[0]
        return
    if read.ranks == 0:
        raise MapError(f"{where}: `{key}` stands before `ranks P`")
    for rank in numbers[: 2 if key in ("sent", "exchanged") else 1]:
        if rank >= read.ranks:
            raise MapError(f"{where}: no rank {rank} among ranks 0 to {read.ranks - 1}")
    if key == "host":
        if numbers[0] in read.hosts:
            raise MapError(f"{where}: the host of rank {numbers[0]} stands twice")
        read.hosts[numbers[0]] = values[1]
    elif key in ("sent", "exchanged"):
        read.sent.append((numbers[0], numbers[1], numbers[2]))
        if key == "exchanged" and numbers[0] != numbers[1]:
            read.exchanged += numbers[2]
    elif key == "outside":
        read.outside += numbers[2]
    else:
        read.one_sided += numbers[1]


def _number(word: str, where: str) -> int:
    # isdigit alone accepts superscripts, too.
    if not (word.isascii() and word.isdigit()) or len(word) > 20:
        raise MapError(f"{where}: '{word}' is no whole number of 0 or more")
    return int(word)


def _uncounted(read: _Read) -> tuple[str, ...]:
    sentences = []
    if read.outside:
        sentences.append(f"{read.outside:,} messages to processes outside of MPI_COMM_WORLD")
    if read.one_sided:
        sentences.append(f"{read.one_sided:,} one-sided calls")
    return tuple(sentences)
