"""Formatting of numbers: rates with decimal prefixes, sizes with binary ones, plurals."""

from __future__ import annotations

from palmette import _core


def rate_text(bytes_per_s: float | None) -> str:
    """`12.5 GB/s`; three digits; `unknown` for None."""
    if bytes_per_s is None:
        return "unknown"
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bytes_per_s >= size * 0.9995:
            digits = ".3g" if bytes_per_s < size * 999.5 else ".0f"
            return f"{bytes_per_s / size:{digits}} {prefix}B/s"
    return f"{bytes_per_s:.3g} B/s"


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


def bytes_text(size_bytes: int) -> str:
    """`0`, `1000`, `64K`, `2.3M`: exact where a unit divides it, else three digits from 10K on."""
    exact = _core.format_size(size_bytes)
    if not exact.isdigit() or size_bytes < 10_240:
        return exact
    for unit, length in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size_bytes >= length:
            value = size_bytes / length
            return f"{value:.3g}{unit}" if value < 1000 else f"{value:.0f}{unit}"
    return exact
