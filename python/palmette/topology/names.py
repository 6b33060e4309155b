"""Names of hosts and switches in the order that people expect."""

from __future__ import annotations

import re


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts n2 before n10; total, so that equal sets of names always give one order."""
    parts = re.split(r"(\d+)", name)
    key = [(0, int(part), part) if part.isdigit() and part.isascii() else (1, 0, part) for part in parts if part]
    return tuple(key)
