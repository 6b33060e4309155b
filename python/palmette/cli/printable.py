"""What was read from outside, made fit for a line for people."""

from __future__ import annotations

LONGEST_WORD = 400
"""Words of what was read from outside are cut there."""
LONGEST_LINE = 1500
"""Characters of a line: the middle of a longer one is left out, since what to do stands at the end."""


def printable(text: str) -> str:
    """Return what may stand in a line for people: control characters and lone surrogates escaped, long words cut."""
    words = (word if len(word) <= LONGEST_WORD else word[:LONGEST_WORD] + "..." for word in text.split(" "))
    shown = "".join(
        one if one.isprintable() or one == " " else one.encode("unicode_escape").decode("ascii")
        for one in " ".join(words)
    )
    half = LONGEST_LINE // 2
    return shown if len(shown) <= LONGEST_LINE else f"{shown[:half]} ... {shown[-half:]}"
