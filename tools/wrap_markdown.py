"""Wrap paragraphs of Markdown at 120 columns; tables, code, headings and pictures stay as they are.

Usage: wrap_markdown.py [--check] FILE...      --check: change nothing, name the lines that are longer
"""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

WIDTH = 120
PIECES = re.compile(r"(?:`+[^`]*`+|!?\[[^\]\n]{0,30}\]\([^)\s]*\)|\S)+")
"""What no line break goes into: words, code, links with short texts."""
MARKER = re.compile(r"[ >]*(?:[-*+]|\d+[.)])[ ]+")


def wrapped(first: str, rest: str, text: str) -> list[str]:
    """Return a paragraph in lines; `first` and `rest` stand before them."""
    lines = []
    line = first
    for piece in PIECES.findall(text):
        blank = "" if line in (first, rest) else " "
        starts_another = re.match(r"([-+*#>|]|\d+[.)])", piece)  # at the begin of a line it would be something else
        if blank and len(line + blank + piece) > WIDTH and not starts_another:
            lines.append(line)
            line, blank = rest, ""
        line += blank + piece
    return [*lines, line]


def paragraphs(text: str) -> list[tuple[int, int]]:
    """Return the lines of paragraphs, [begin, end), but of those with HTML or with line breaks that are meant."""
    found = []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for opened, content in pairwise(tokens):
        kinds = {child.type for child in content.children or ()}
        if opened.type == "paragraph_open" and opened.map and not kinds & {"html_inline", "hardbreak"}:
            found.append((opened.map[0], opened.map[1]))
    return found


def wrap(text: str) -> str:
    """Return the text with those paragraphs wrapped that have a longer line."""
    lines = text.split("\n")
    for begin, end in reversed(paragraphs(text)):
        old = lines[begin:end]
        if max(map(len, old)) <= WIDTH:
            continue
        marker = MARKER.match(old[0])
        first = marker[0] if marker else old[0][: len(old[0]) - len(old[0].lstrip(" >"))]
        rest = re.match(r"[ >]*", old[1])[0] if len(old) > 1 else re.sub(r"[^ >]", " ", first)  # type: ignore[index]
        lines[begin:end] = wrapped(
            first, rest, " ".join([old[0][len(first) :], *(line.strip(" >") for line in old[1:])])
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Wrap files, or name those that aren't."""
    check = arguments[:1] == ["--check"]
    bad = 0
    for name in arguments[check:]:
        file = Path(name)
        text = file.read_text(encoding="utf-8")
        new = wrap(text)
        if check:
            for number, (old, now) in enumerate(zip(text.split("\n"), new.split("\n"), strict=False), 1):
                if old != now:
                    print(f"{name}:{number}: a paragraph with lines of more than {WIDTH} columns; lint.py --fix {name}")
                    bad += 1
                    break
        elif new != text:
            file.write_text(new, encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
