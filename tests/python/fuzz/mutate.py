"""Damage to command lines and to what files hold. Everything is drawn from the generator that is given."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

NUMBERS = (
    "0", "-1", "1", "2", "3", "7", "255", "65536", "2147483647", "2147483648", "3000000000", "4294967296",
    "9007199254740993", "9223372036854775807", "18446744073709551616", "1" + "0" * 30, "9" * 400, "0.5", "-0.0", "1e9",
    "1e308", "1e999", "1e-320", "nan", "inf", "-inf", "0x10", "1_000", "+5", "", " ", "\u0663", "1,5", "1K", "3G",
    "1e3K",
)  # fmt: skip
WORDS = (
    "", "-", "--", "---", "all", "none", "last~99999999999", "a" * 300, "a" * 5000, "\x1b[2J\x1b]0;x\x07",
    "\u202e\u200b",
    "\udcff\udcfe", "%s%n", "{0}", "{}", "$(id)", "../..", "folder", "fifo", "missing/file", "empty", "binary", "zeros",
    "/dev/null", ":", ",", ",,", "::", "@", "=", "a=b", "1:2:3", "[1-3]", "n[1-99999999999]", "n[5-1]", "n[", "block",
    "cyclic", "random:", "random:-1", "random:" + "9" * 30, "hosts=", "hosts=,", "2leaf:4node:2core", "1000000000node",
    "2node:1000000000core", "1node:" + "1a:" * 500 + "1core", "9999leaf:9999node:9999core", "0node", "2leaf@:4node",
    "2leaf@-1GB/s:4node", "2leaf@1e400GB/s:4node", "2leaf~-5ms:4node", "ring", "tree:radix=0", "tree:radix=9999999999",
    "chain:chunk=0", "chain:chunk=-4", "leaders:leaders=4,between=bruck,inside=binomial", "ring:8",
    "stencil2d:100000x100000",
    "NaN", "true", "null", "[]", "\U0001f600", "e\u0301",
)  # fmt: skip
BYTES = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[31m", b"\r\n", b"\r", b"\n\n\n", b"\t", b"\"", b"'", b"\\", b"#",
    b"[" * 3000,
    b"{" * 3000, b"- " * 1500, b"(" * 300, b"x" * 5000, b"\xc3\x28", b"\xed\xa0\x80", b"&a *a", b"<!ENTITY a 'b'>",
    b",", b"=",
    b":", b" ", b"-", b"]", b"}", b"0x",
)  # fmt: skip


def text(draw: random.Random, value: str) -> str:
    """Return `value` with one damage, or something else in its place."""
    kinds: list[Callable[[], str]] = [
        lambda: draw.choice(NUMBERS),
        lambda: draw.choice(WORDS),
        lambda: _number(draw, value),
        lambda: _number(draw, value),
        lambda: value[: draw.randint(0, len(value))],
        lambda: value + draw.choice((value, ",", ":", "x", "0", "\x00"[:0], "@1", "~1s", "=1")),
        lambda: _swapped(draw, value),
        lambda: _inserted(draw, value),
    ]
    return draw.choice(kinds)().replace("\x00", "")


def _number(draw: random.Random, value: str) -> str:
    places = list(re.finditer(r"\d+(\.\d+)?", value))
    if not places:
        return draw.choice(NUMBERS)
    at = draw.choice(places)
    return value[: at.start()] + draw.choice(NUMBERS) + value[at.end() :]


def _swapped(draw: random.Random, value: str) -> str:
    parts = re.split(r"([:,=@~+.])", value)
    draw.shuffle(parts)
    return "".join(parts)


def _inserted(draw: random.Random, value: str) -> str:
    at = draw.randint(0, len(value))
    return (
        value[:at]
        + draw.choice((":", ",", "=", "@", "-", "0", "9" * 20, "\x1b", "\u00e9", " ", "+", "[", "]"))
        + value[at:]
    )


def data(draw: random.Random, value: bytes) -> bytes:
    """Return what a file holds with one to four damages."""
    if draw.random() < 0.3:
        value = _json(draw, value)
    for _ in range(draw.choice((1, 1, 2, 4))):
        value = draw.choice(_DAMAGES)(draw, value)
    return value


def places_of(document: Any) -> list[tuple[Any, Any]]:
    """Return every value of a JSON document by what holds it, and its key there."""
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        node = waiting.pop()
        keys: Sequence[Any] = (
            list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        )
        places += [(node, key) for key in keys]
        waiting += [node[key] for key in reversed(keys)]
    return places


def _json(draw: random.Random, value: bytes) -> bytes:
    """One value of a JSON document in place of another one, or gone."""
    try:
        document = json.loads(value)
        json.dumps(document)
    except (ValueError, RecursionError):
        return value
    places = places_of(document)
    if not places:
        return value
    node, key = draw.choice(places)
    action = draw.random()
    if action < 0.25:
        del node[key]
    elif action < 0.4:
        other, its = draw.choice(places)
        try:
            node[key] = json.loads(json.dumps(other[its]))
        except (KeyError, IndexError):
            node[key] = None
    else:
        node[key] = draw.choice(
            (None, True, [], {}, "", "x" * 3000, 0, -1, 1, 0.5, 1e308, 2**31, 2**53 + 1, 2**64, 10**400, float("nan"),
             float("inf"), [[[]]], {"a": {}}, "\x1b[2J", "\ud800", "../..", [1, 2, 3], "core", "node", -(2**63))
        )  # fmt: skip
    return json.dumps(document).encode("utf-8")


def _flip(draw: random.Random, value: bytes) -> bytes:
    if not value:
        return b"\x00"
    at = draw.randrange(len(value))
    return value[:at] + bytes([value[at] ^ 1 << draw.randrange(8)]) + value[at + 1 :]


def _cut(draw: random.Random, value: bytes) -> bytes:
    at = draw.randint(0, len(value))
    return value[:at] + value[at + draw.choice((1, 2, 10, 100, len(value))) :]


def _repeat(draw: random.Random, value: bytes) -> bytes:
    at = draw.randint(0, len(value))
    part = value[at : at + draw.choice((1, 20, 200))]
    return value[:at] + part * draw.choice((1, 2, 500)) + value[at:]


def _insert(draw: random.Random, value: bytes) -> bytes:
    at = draw.randint(0, len(value))
    return value[:at] + draw.choice(BYTES) + value[at:]


def _lines(draw: random.Random, value: bytes) -> bytes:
    lines = value.split(b"\n")
    if draw.random() < 0.5:
        draw.shuffle(lines)
    else:
        del lines[draw.randrange(len(lines))]
    return b"\n".join(lines)


def _digits(draw: random.Random, value: bytes) -> bytes:
    places = list(re.finditer(rb"\d+", value))
    if not places:
        return value
    at = draw.choice(places)
    return value[: at.start()] + draw.choice(NUMBERS).encode() + value[at.end() :]


def _word(draw: random.Random, value: bytes) -> bytes:
    places = list(re.finditer(rb"[A-Za-z_]+", value))
    if len(places) < 2:
        return value
    one, other = draw.choice(places), draw.choice(places)
    return value[: one.start()] + other[0] + value[one.end() :]


_DAMAGES = (_flip, _cut, _repeat, _insert, _lines, _digits, _digits, _word, _word)
