"""The shell lines of the documentation: in indented blocks that begin with a command, and in fences marked sh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PATTERNS = (
    "README.md",
    *(f"docs/{folder}*.md" for folder in ("", "guide/", "method/", "reference/", "tutorial/")),
    *("examples/*.md", "examples/*/README.md"),
)

COMMANDS = {
    *(
        "palmette",
        "palmette-lab",
        "palmette-aggregator",
        "pip",
        "make",
        "mpicc",
        "mpiexec",
        "mpirun",
        "python",
        "python3",
        "cmake",
        "srun",
        "ibnetdiscover",
        "sqlite3",
    ),
    *("source", "export", "cp", "ln", "cd", "mkdir", "tar", "git", "sanitize.sh", "sh", "cat", "echo", "editor"),
    *("module", "systemctl", "journalctl", "scontrol"),
}
"""What a block of shell lines may begin with; test_lines.py fails where another program stands there."""

ASSIGNMENT = re.compile(r"[A-Z][A-Z_]*=\S*\s*")


@dataclass(frozen=True)
class Line:
    """One shell command of a page, with the lines that continue it."""

    page: str
    number: int
    text: str

    @property
    def where(self) -> str:
        """Page and line number."""
        return f"{self.page}:{self.number}"


def first_word(text: str) -> str:
    """Return the program that a line runs, without sudo, variables, prompt and folder."""
    text = text.strip().removeprefix("$ ").removeprefix("sudo ")
    while (found := ASSIGNMENT.match(text)) is not None:
        text = text[found.end() :]
    words = text.split()
    return words[0].rsplit("/", 1)[-1] if words else ""


def is_command(text: str) -> bool:
    """Whether a line is one for the shell: it runs a known program, or sets a variable."""
    text = text.strip().removeprefix("$ ")
    word = first_word(text)
    return word in COMMANDS if word else ASSIGNMENT.match(text) is not None and text != ""


def pages() -> list[str]:
    """Return the pages, relative to the root."""
    return sorted({str(file.relative_to(ROOT)) for pattern in PATTERNS for file in ROOT.glob(pattern)})


def paragraphs(page: str) -> Iterator[tuple[int, list[str], bool]]:
    """Yield the paragraphs of literal blocks: number of the first line, lines, and whether a fence says shell."""
    found: list[str] = []
    fence: str | None = None
    indent, number = 4, 0
    for at, line in enumerate([*(ROOT / page).read_text(encoding="utf-8").splitlines(), "end"], 1):
        edge = re.match(r"\s*```(\w*)", line)
        literal = not edge and (fence is not None or re.match(r" {4,}\S", line) is not None)
        if literal and line.strip():
            if not found:
                indent, number = len(line) - len(line.lstrip()), at
            found.append(line[min(indent, len(line) - len(line.lstrip())) :])
        elif found:
            yield number, found, fence in ("sh", "console")
            found = []
        if edge:
            fence = edge[1] if fence is None else None


def commands(page: str) -> Iterator[Line]:
    """Yield the commands of a page in order; below the first line that isn't one stands output."""
    for number, block, shell in paragraphs(page):
        at = 0
        while at < len(block) and (shell or is_command(block[at])):
            start, text = at, block[at].removeprefix("$ ")
            while at + 1 < len(block) and (text.endswith("\\") or open_quote(text)):
                at += 1
                text += "\n" + block[at]
            if not text.startswith("#"):
                yield Line(page, number + start, text)
            at += 1


def open_quote(text: str) -> bool:
    """Whether a quote is open at the end of the text: the next line belongs to it."""
    quote = ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#" and (at == 0 or text[at - 1].isspace()):
            return False
    return quote != ""


def all_lines() -> list[Line]:
    """Return every command of every page."""
    return [line for page in pages() for line in commands(page)]
