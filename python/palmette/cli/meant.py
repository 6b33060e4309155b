"""What somebody may have meant who typed a word that isn't known."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LISTS = re.compile(
    r"(?:'(?P<quoted>[^']*)'|\"(?P<doubly>[^\"]*)\"|=(?P<value>[^\s:;=]+):)"  # the word
    r"(?P<between>[^'\"]*?)"
    r"(?P<before>[;:,]? (?:there (?:are|is)|take one of|choose from|is not one of|it is one of|is neither) )"
    r"(?P<names>[^(;]*)"
)
_CLICKS = re.compile(r"(?P<before>.*?'(?P<word>[^']*)')[.;]? \(?Did you mean (?:one of: )?(?P<names>[^?]*)\?\)?")
_NAME = re.compile(r"[A-Za-z][\w-]*")
_FILLERS = frozenset(("and", "or", "nor", "of", "one", "a", "the", "file", "with", "messages"))


def close(word: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` that is `word` with a slip or two, None where none is or `word` is too short."""
    asked = word.lower()
    if len(asked) < 3:
        return None
    from difflib import get_close_matches  # only where something was mistyped

    found = get_close_matches(
        asked, [name for name in dict.fromkeys(known) if name != word], n=1, cutoff=0.6 if len(asked) <= 4 else 0.7
    )  # two letters of three, where they are swapped
    return found[0] if found else None


def suggestion(meant: str | None) -> str:
    """Return what stands behind a word that isn't known: ` (did you mean ring?)`; nothing for None."""
    return f" (did you mean {meant}?)" if meant is not None else ""


def with_suggestion(message: str) -> str:
    """Return an error that quotes a word and lists what there is, with the name in the list that is meant.

    `'rign' is unknown: there are ring, shared` becomes `'rign' is unknown (did you mean ring?): there are ring, ...`.
    Errors of all layers, the core's too, are written like this; no layer has to look for the name itself. What click
    suggests for options and subcommands gets the same form.
    """
    if theirs := _CLICKS.match(message):
        names = [name.strip(" '") for name in theirs["names"].split(",")]
        return f"{theirs['before']}{suggestion(close(theirs['word'], names) or names[0])}{message[theirs.end() :]}"
    if "did you mean" in message.lower():
        return message
    match = _LISTS.search(message)
    if match is None:
        return message
    word = match["quoted"] or match["doubly"] or match["value"] or ""
    names = [name for name in _NAME.findall(match["names"].partition(", and as a file")[0]) if name not in _FILLERS]
    meant = close(re.split(r"[:,]", word)[0], names)
    if meant is None:
        return message
    at = match.start("before")
    return f"{message[:at]}{suggestion(meant)}{message[at:]}"
