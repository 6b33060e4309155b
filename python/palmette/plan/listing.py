"""The registry of algorithms, for `palmette plan --list`."""

from __future__ import annotations

import textwrap
from typing import Any

from palmette import _core
from palmette.units import text_width


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
        lines += _wrapped("  ", row.sentence)
        lines += _wrapped("  keys: ", row.keys)
        lines += _wrapped("  needs: ", row.preconditions)
        lines += _wrapped("  source: ", row.source)
    return lines


_MAY_BREAK = "\0 "
"""Stands behind a `|` where a line may end without a blank."""


def _wrapped(label: str, text: str) -> list[str]:
    # Alternatives of a key such as node=linear|binomial|... have no blanks, and may be longer than a line.
    lines = textwrap.wrap(
        text.replace("|", "|" + _MAY_BREAK),
        text_width(),
        initial_indent=label,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_MAY_BREAK, "").replace("\0", "") for line in lines]
