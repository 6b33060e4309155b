"""Write man pages and shell completions from the commands of the programs.

Usage: generate_man.py FOLDER
    FOLDER/man1/palmette.1, palmette-COMMAND.1, palmette-lab.1, ...
    FOLDER/completions/bash/PROGRAM, zsh/_PROGRAM, fish/PROGRAM.fish

Needs click and nothing else: what commands run on is stood in for. The pages carry the date of SOURCE_DATE_EPOCH, else
that of the newest version in CHANGELOG.md, else none, so that the same sources give the same files.

click-man 0.6.0 isn't used: it finds no command of a group that loads them lazily, runs tables in help texts together,
leaves out epilogs, escapes neither lines that begin with a dot nor backslashes, cuts the line of NAME after 45
characters, and has no place for environment, files and exit status.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path

from command_pages import FILES, PROGRAMS, ROOT, Page, pages, paragraphs, program, settings, version

from palmette.cli import stand_ins


def escaped(text: str) -> str:
    """Return text for roff: nothing in it is an escape or a request, and hyphens can be copied."""
    for plain, roff in (("\\", r"\e"), ("-", r"\-"), ("'", r"\(aq"), ("`", r"\(ga"), ("^", r"\(ha"), ("~", r"\(ti")):
        text = text.replace(plain, roff)
    return text


def literal(lines: str) -> str:
    """Return lines that stay as they are."""
    return ".nf\n" + re.sub(r"^\.", r"\\&.", escaped(lines), flags=re.MULTILINE) + "\n.fi"


def prose(text: str) -> str:
    """Return one paragraph of a help text; what stands between backquotes is bold."""
    parts = enumerate(re.split(r"`([^`]+)`", " ".join(text.split())))
    text = "".join(bold(part) if at % 2 else escaped(part) for at, part in parts)
    lines = textwrap.wrap(text, 80, break_long_words=False, break_on_hyphens=False)
    return "\n".join(rf"\&{line}" if line.startswith(".") else line for line in lines)


def described(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text."""
    for paragraph, stays in paragraphs(text):
        yield f".PP\n{literal(paragraph) if stays else prose(paragraph)}"


def term(names: str) -> str:
    """Return an option's names in bold and its value in italics."""
    return re.sub(r"\S+", lambda word: rf"\f{'B' if word[0].startswith('-') else 'I'}{escaped(word[0])}\fR", names)


def rows(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a list of terms, in roff already, and their sentences."""
    for name, sentence in pairs:
        yield f".TP\n{name}\n{prose(sentence) or chr(92) + '&'}"


def bold(name: str) -> str:
    """Return a name as the term of a list."""
    return rf"\fB{escaped(name)}\fR"


def dated() -> str:
    """Return the date of the pages, empty where none is known."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdecimal():
        return datetime.fromtimestamp(int(epoch), timezone.utc).strftime("%Y-%m-%d")
    released = re.search(r"^## .*?(\d{4}-\d\d-\d\d)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    return released[1] if released else ""


def written(page: Page) -> str:
    """Return a command's page in roff."""
    main = page.path == "palmette"
    sections: list[tuple[str, Iterable[str]]] = [
        ("NAME", [rf"{escaped(page.name)} \- {escaped(page.sentence)}"]),
        ("SYNOPSIS", [f"{bold(page.path)} {escaped(page.usage)}"]),
        ("DESCRIPTION", described(page.help)),
        ("OPTIONS", rows((term(names), sentence) for names, sentence in page.options)),
        ("COMMANDS", rows((bold(name), sentence) for name, sentence in page.subcommands.items())),
        ("ENVIRONMENT", rows(environment()) if main else ()),
        ("FILES", rows((bold(name), sentence) for name, sentence in FILES if main)),
        ("EXIT STATUS", rows((bold(number), sentence) for number, sentence in page.statuses)),
        ("EXAMPLES", [literal(page.example)] if page.example else ()),
        ("SEE ALSO", [", ".join(rf"{bold(name.replace(' ', '-'))}(1)" for name in page.related)]),
    ]
    lines = [f'.TH {escaped(page.name.upper())} 1 "{dated()}" "palmette {version()}"']
    for title, body in sections:
        text = "\n".join(body).removeprefix(".PP\n")
        lines += [f".SH {title}", text] if text else []
    return "\n".join(lines) + "\n"


def environment() -> Iterator[tuple[str, str]]:
    """Yield the variables with their defaults and sentences."""
    for setting in settings():
        default = f" Default: {setting['default']}." if setting["default"] else ""
        yield bold(setting["name"]), setting["help"] + default


def main(arguments: list[str]) -> int:
    """Write all files below the folder."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    stand_ins.install("palmette._core")
    from palmette.cli.completion import SHELLS, script

    folder = Path(arguments[0])
    names = {"bash": "{}", "zsh": "_{}", "fish": "{}.fish"}
    texts = {f"man1/{page.name}.1": written(page) for page in pages()}
    texts |= {
        f"completions/{shell}/{names[shell].format(name)}": script(shell, program(name))
        for shell in SHELLS
        for name in PROGRAMS
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
