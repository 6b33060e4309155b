"""The registry of algorithms, for `palmette plan --list`."""

from __future__ import annotations

from typing import Any

from palmette import _core
from palmette.present.words import wrapped


def rows(collective: str | None) -> list[_core.Algorithm]:
    """Return the algorithms of one collective, or all."""
    return [row for row in _core.algorithms() if collective is None or row.collective == collective]


def list_json(collective: str | None) -> list[dict[str, Any]]:
    """Return name, sentence, source, keys and preconditions of each algorithm."""
    return [
        {
            "collective": row.collective,
            "name": row.name,
            "sentence": row.sentence,
            "source": row.source,
            "keys": row.keys,
            "preconditions": row.preconditions,
        }
        for row in rows(collective)
    ]


def list_lines(collective: str | None) -> list[str]:
    """One paragraph an algorithm, headed by its collective and name."""
    lines: list[str] = []
    for row in rows(collective):
        lines += ["" for _ in lines[:1]]
        lines.append(f"{row.collective} {row.name}")
        for label, text in (
            ("", row.sentence), ("keys: ", row.keys), ("needs: ", row.preconditions), ("source: ", row.source)
        ):  # fmt: skip
            # Alternatives of a key such as node=linear|binomial|... have no blanks, and may be longer than a line.
            lines += wrapped(text, f"  {label}", "    ", after="|")
    return lines
