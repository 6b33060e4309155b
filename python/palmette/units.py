"""Formatting of numbers: rates with decimal prefixes, sizes with binary ones, times, plurals; durations read."""

from __future__ import annotations

import os
import re
import shutil
import sys

from palmette import _core

PAYLOAD_SHARE = 1448 / 1514
"""TCP payload in a full Ethernet frame as tbf counts it: 1500 less 52 bytes of headers, of 1500 plus 14."""

_DURATIONS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = r"[0-9]+\.?[0-9]*"
_UNIT = rf"(?:{'|'.join(_DURATIONS)})(?![a-z])"


def rate_text(bytes_per_s: float | None) -> str:
    """`12.5 GB/s`; three digits; `unknown` for None."""
    if bytes_per_s is None:
        return "unknown"
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bytes_per_s >= size * 0.9995:
            digits = ".3g" if bytes_per_s < size * 999.5 else ".0f"
            return f"{bytes_per_s / size:{digits}} {prefix}B/s"
    return f"{bytes_per_s:.3g} B/s"


def time_text(seconds: float | None) -> str:
    """`13.2 ms`: three digits with the unit that fits, down to ns; `-` for None."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size * 0.9995:
            return f"{seconds / size:.3g} {unit}" if seconds < 999.5 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def plural(count: int, word: str) -> str:
    """`1 leaf`, `2 leaves`, `1,000 hosts`."""
    if count == 1:
        return f"1 {word}"
    if word.endswith("f"):
        many = word[:-1] + "ves"
    elif word.endswith(("s", "x", "ch")):
        many = word + "es"
    else:
        many = word + "s"
    return f"{count:,} {many}"


def bytes_text(size_bytes: float) -> str:
    """`0`, `1000`, `64K`, `2.3M`: exact where that takes four digits, else three of them from 10K on; K is 1024."""
    if not 0 <= size_bytes < 2**62:
        return f"{size_bytes:.3g}"  # from a damaged file
    size_bytes = round(size_bytes)
    exact = _core.format_size(size_bytes)
    if size_bytes < 10_240 or (not exact.isdigit() and len(exact) <= 5):
        return exact
    for unit, length in (("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size_bytes >= length:
            value = size_bytes / length
            return f"{value:.3g}{unit}" if value < 1000 else f"{value:.0f}{unit}"
    return exact


class DurationError(ValueError):
    """A text that is no duration."""


def parse_duration(text: str) -> float:
    """Return seconds for a duration like 5ms, 90s, 20m (minutes, as 20min) or 1h30m. Raises DurationError."""
    parts = re.findall(rf"({_NUMBER})\s*({_UNIT})\s*", text)
    if not parts or re.fullmatch(rf"\s*(?:{_NUMBER}\s*{_UNIT}\s*)+", text) is None:
        raise DurationError(
            f"'{text}' is not a duration: write it like 5ms, 90s, 20m or 1h (ns, us, ms, s, m or min, h, d)"
        )
    return sum(float(number) * _DURATIONS[unit] for number, unit in parts)


def span_text(seconds: float) -> str:
    """`45 s`, `12 min`, `1 h 59 min`, `3 d 4 h`: how long something lasts or will last, for people."""
    if seconds < 100:
        return f"{max(seconds, 0.0):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h" + (f" {minutes} min" if minutes else "")
    days, hours = divmod(hours, 24)
    return f"{days} d" + (f" {hours} h" if hours else "")


NARROWEST, WIDEST = 60, 80


def text_width() -> int:
    """Return the columns of text for people: those of the terminal, or of COLUMNS, between 60 and 80; else 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit():
        width = int(columns)
    elif sys.stdout is not None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    else:
        width = WIDEST
    return min(max(width, NARROWEST), WIDEST)
