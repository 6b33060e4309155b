"""Output where the locale's characters aren't UTF-8: signs of tables, trees and plans have a form in ASCII."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Mapping

SIGNS = {
    "─": "-", "│": "|", "┌": "+", "┐": "+", "└": "`", "┘": "+", "├": "|", "┤": "|", "┬": "+", "┴": "+", "┼": "+",
    "━": "-", "╸": "-", "╺": "-", "→": ">", "←": "<", "±": "+-", "…": "~", "·": ".", "×": "x", "≤": "<=", "≥": ">=",
    "µ": "u", "−": "-", "–": "-", "█": "#", "▓": "#", "▒": "+", "░": ".", "✓": "y", "•": "*",
}  # fmt: skip
"""One character each where columns depend on it. What isn't here becomes \\uXXXX, as JSON has it."""
_NAME = "palmette.signs"
ENCODING = "palmette-ascii"
"""ASCII under a name of its own: click takes a stream in ASCII for a mistake, and writes UTF-8 to it."""


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether the locale says that characters aren't UTF-8. One that is set nowhere says nothing."""
    named = next((environment[key] for key in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(key)), "utf-8")
    return "utf8" not in named.lower().replace("-", "")


def install() -> None:
    """Make standard output and standard error write ASCII."""
    codecs.register_error(_NAME, _replaced)
    codecs.register(_codec)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=ENCODING, errors=_NAME)


def _codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != ENCODING:
        return None
    ascii_codec = codecs.lookup("ascii")
    return codecs.CodecInfo(
        ascii_codec.encode, ascii_codec.decode, ascii_codec.streamreader, ascii_codec.streamwriter,
        ascii_codec.incrementalencoder, ascii_codec.incrementaldecoder, name=ENCODING,
    )  # fmt: skip


def _replaced(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(SIGNS.get(one) or _escaped(one) for one in text), error.end


def _escaped(one: str) -> str:
    units = one.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
