"""Check that the target of every relative link in the Markdown files exists, anchors included: of headings, and set.

Usage: check_links.py

Prints a line for each broken link (file, line, target) and exits with 1.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("docs", "examples", "packaging", "python", "src", "studies", "tests", "tools")
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
IMAGE = re.compile(r"""<(?:img|a)\b[^>]*\b(?:src|href)=["'](?P<target>[^"']+)["']""")
ANCHOR = re.compile(r"""<a\b[^>]*\b(?:id|name)=["'](?P<name>[^"']+)["']""")
HEADING = re.compile(r"^#{1,6}\s+(?P<text>.+?)\s*#*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def documents() -> list[Path]:
    """Return the Markdown files of the project, without what is built or installed."""
    top = [file for file in ROOT.glob("*.md") if file.is_file()]
    return sorted([*top, *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.md"))])


def blank(match: re.Match[str]) -> str:
    """Return as many newlines as the match holds, so that line numbers stay correct."""
    return "\n" * match[0].count("\n")


def anchors(text: str) -> set[str]:
    """Return the anchors of a document: those that are set, and those of headings, made as forges make them."""
    text = FENCE.sub(blank, text)
    plain = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", m["text"]) for m in HEADING.finditer(text))
    headings = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}
    return headings | {match["name"] for match in ANCHOR.finditer(text)}


def broken(file: Path) -> list[str]:
    """Return one line for each link of `file` that leads nowhere."""
    text = FENCE.sub(blank, file.read_text(encoding="utf-8"))
    result = []
    for found in [*LINK.finditer(text), *IMAGE.finditer(text)]:
        target = found["target"]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        aim = (file.parent / path).resolve() if path else file
        exists = aim.exists() and aim.is_relative_to(ROOT)
        if exists and anchor and aim.suffix == ".md":
            exists = anchor in anchors(aim.read_text(encoding="utf-8"))
        if not exists:
            line = text.count("\n", 0, found.start()) + 1
            result.append(f"{file.relative_to(ROOT)}:{line}: {target} leads nowhere")
    return result


def main() -> int:
    """Check all documents."""
    files = documents()
    lines = [line for file in files for line in broken(file)]
    print("\n".join(lines) if lines else f"links: ok in {len(files)} documents")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
