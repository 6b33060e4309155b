"""The notation of patterns and its parser.

    rail                                  the first group's ranks to those of the same number in the others
    dense:groups=2,width=3,way=both@rma   keys, and the transport of the messages
    matrix:bytes.txt@shm/mpi              any matrix; inside of a host by shared memory, else by MPI's messages
    'rail + self'                         at the same time
    'fan then fan:way=in'                 one after the other

docs/guide/patterns.md explains them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from palmette import _core
from palmette.patterns.errors import PatternError
from palmette.patterns.groups import KINDS, WAYS

LIBRARIES = {"mpi": 0, "rma": 1, "shm": 2, "single_copy": 3}
"""Transports of a part, with their numbers in the program's input: MPI's point to point, MPI_Put, chunks through
shared memory, single copy from the sender's memory."""
INTRA_NODE = ("shm", "single_copy")
"""Intra-node transports."""

_KEYS = {
    **dict.fromkeys(KINDS, ("ranks", "groups", "width", "way", "size", "window", "stripes")),
    "pair": ("from", "to", "way", "size", "window", "stripes"),
    "matrix": ("file", "window", "stripes"),
}


@dataclass(frozen=True)
class Part:
    """One pattern between groups, of a matrix, or of a pair of ranks."""

    text: str
    kind: str
    keys: dict[str, str]
    inside: str = "mpi"
    between: str = "mpi"
    """Transports of messages between ranks of a host, and between hosts."""

    def number(self, key: str, default: int | None, least: int = 1) -> int | None:
        """Return the value of a key. Raises PatternError."""
        if key not in self.keys:
            return default
        text = self.keys[key]
        if not text.isdecimal() or int(text) < least:
            raise PatternError(f"'{self.text}': {key}={text}: expected a whole number of {least} or more")
        return int(text)

    @property
    def way(self) -> str:
        """Which of WAYS. Raises PatternError."""
        way = self.keys.get("way", "one")
        if way not in WAYS:
            raise PatternError(f"'{self.text}': way={way}: expected {', '.join(WAYS)}")
        return way

    def size(self, default: int) -> int:
        """Return the bytes of a message. Raises PatternError."""
        try:
            size = _core.parse_size(self.keys["size"]) if "size" in self.keys else default
        except _core.Error as error:
            raise PatternError(f"'{self.text}': {error}") from None
        if not 1 <= size < 1 << 31:
            raise PatternError(f"'{self.text}': a message has 1 byte to 2G, not {size}")
        return size


@dataclass(frozen=True)
class Form:
    """A whole pattern: steps in sequence, each with concurrent parts."""

    text: str
    steps: tuple[tuple[Part, ...], ...]


def parse(text: str) -> Form:
    """Return a pattern. Raises PatternError that names the part, and what there is instead."""
    steps = [
        tuple(_part(part.strip()) for part in re.split(r"\s\+\s", step)) for step in re.split(r"\sthen\s", text.strip())
    ]
    return Form(" ".join(text.split()), tuple(steps))


def _part(text: str) -> Part:
    if not text:
        raise PatternError("a pattern is missing next to `+` or `then`; see palmette bench pattern --help")
    named, _, library = text.rpartition("@") if "@" in text else (text, "", "")
    kind, _, rest = named.partition(":")
    if kind not in _KEYS:
        raise PatternError(f"pattern '{kind}' is unknown; there are {', '.join(_KEYS)}")
    keys: dict[str, str] = {}
    for word in filter(None, rest.split(",")):
        key, equals, value = word.partition("=")
        if not equals and kind == "matrix" and "file" not in keys:
            key, value = "file", word
        if key not in _KEYS[kind] or not value:
            raise PatternError(f"'{text}': '{word}' is none of {', '.join(f'{known}=' for known in _KEYS[kind])}")
        if key in keys:
            raise PatternError(f"'{text}': {key} is given twice")
        keys[key] = value
    for key in {"pair": ("from", "to"), "matrix": ("file",)}.get(kind, ()):
        if key not in keys:
            raise PatternError(f"'{text}': {key}= is missing, as in {_EXAMPLES[kind]}")
    inside, slash, between = library.partition("/") if library else ("mpi", "", "")
    for name in (inside, between) if slash else (inside,):
        if name not in LIBRARIES:
            raise PatternError(f"'{text}': '{name}' is none of {', '.join(LIBRARIES)}; two are inside/between hosts")
    if slash and between in INTRA_NODE:
        raise PatternError(f"'{text}': {between} doesn't reach another host; give mpi or rma behind the /")
    part = Part(text, kind, keys, inside, between if slash else inside)
    part.number("width", None)
    if kind != "matrix":
        part.way, part.size(1)
    return part


_EXAMPLES = {"pair": "pair:from=0,to=5", "matrix": "matrix:bytes.txt"}
