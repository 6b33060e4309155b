"""Text in lines: wrapped to the width of the terminal, and cut to columns."""

from __future__ import annotations

import textwrap

from palmette.units import text_width


def wrapped(text: str, first: str = "", rest: str = "  ", *, whole_words: bool = True, after: str = "") -> list[str]:
    """Return `text` in lines of text_width() columns, `first` before the first and `rest` before the others.

    Words, such as paths and specifications, are kept whole, and may then stick out, unless `whole_words` is false; a
    line may also end behind the character `after`. An empty text has no lines.
    """
    shown = text.replace(after, f"{after}\0 ") if after else text
    lines = textwrap.wrap(
        shown, text_width(), initial_indent=first, subsequent_indent=rest, break_long_words=not whole_words,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\0 ", "").replace("\0", "") for line in lines] if after else lines


def clipped(text: str, most: int) -> str:
    """Return a text cut to a number of characters, the last one an ellipsis where some are missing."""
    return text if len(text) <= most else text[: most - 1] + "…"
