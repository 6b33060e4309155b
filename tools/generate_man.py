"""Write man pages and shell completions from the commands of `palmette`.

Usage: generate_man.py FOLDER
    FOLDER/man1/palmette.1, palmette-COMMAND.1, ...
    FOLDER/completions/bash/palmette, zsh/_palmette, fish/palmette.fish

Needs click and nothing else: what commands run on is stood in for. The pages carry the date of SOURCE_DATE_EPOCH, else
that of the newest version in CHANGELOG.md, else none, so that the same sources give the same files.

click-man 0.6.0 isn't used: it finds no command of a group that loads them lazily, runs tables in help texts together,
leaves out epilogs, escapes neither lines that begin with a dot nor backslashes, cuts the line of NAME after 45
characters, and has no place for environment, files and exit status.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from palmette.cli import stand_ins  # noqa: E402

FILES = (
    ("topology.json", "The cluster, as palmette discover writes it and --topology and PALMETTE_TOPOLOGY name it."),
    ("tuning.json", "A decision table, as palmette tune writes it and --table and PALMETTE_TABLE name it."),
    ("/etc/palmette/settings, ~/.config/palmette/settings", "NAME=VALUE lines of settings, for everybody and for you."),
    ("/etc/palmette/topology.json, table.json", "The cluster and the decision table of jobs that name none."),
    ("runs.sqlite", "Samples of palmette bench, for palmette report."),
    ("$XDG_CACHE_HOME/palmette, ~/.cache/palmette", "What launchers and programs were found to be; may be deleted."),
    ("$XDG_RUNTIME_DIR/palmette-lab, /run/palmette-lab", "Labs that are up."),
)
STATUS = (
    ("0", "Success."),
    ("1", "The command ran, and its result is negative: a plan that is wrong, a target that was missed, no lab."),
    ("2", "Bad input, told in one line on standard error."),
    ("70", "A fault of palmette's own; two lines name a file with the details."),
    ("130", "Interrupted."),
)
OF_WHAT_RUNS = ("palmette run", "palmette lab run", "palmette lab exec")


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


def paragraphs(text: str) -> Iterator[str]:
    r"""Yield the paragraphs of a docstring; those behind \b keep their lines, as in click's help."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            yield f".PP\n{literal(paragraph[1:].strip(chr(10)))}"
        else:
            yield f".PP\n{prose(paragraph)}"


def term(names: str) -> str:
    """Return an option's names in bold and its value in italics."""
    return re.sub(r"\S+", lambda word: rf"\f{'B' if word[0].startswith('-') else 'I'}{escaped(word[0])}\fR", names)


def rows(pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    """Yield a list of terms, in roff already, and their sentences."""
    for name, sentence in pairs:
        yield f".TP\n{name}\n{prose(sentence) or chr(92) + '&'}"


def bold(name: str) -> str:
    """Return a name as the term of a list."""
    return rf"\fB{escaped(name)}\fR"


def first_sentence(text: str) -> str:
    """Return what NAME says."""
    paragraph = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s", paragraph)[0].rstrip(".:")


def dated() -> str:
    """Return the date of the pages, empty where none is known."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdecimal():
        return datetime.fromtimestamp(int(epoch), timezone.utc).strftime("%Y-%m-%d")
    released = re.search(r"^## .*?(\d{4}-\d\d-\d\d)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    return released[1] if released else ""


def version() -> str:
    """Return the version, which CMakeLists.txt declares."""
    found = re.search(r"project\(palmette VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    return found[1] if found else ""


def page(context: Any, subcommands: dict[str, str], others: list[str]) -> str:
    """Return the page of a context's command, with its subcommands, a sentence each, and the names of other pages."""
    command, path = context.command, context.command_path
    main = path == "palmette"
    options = [option for option in command.get_params(context) if option.param_type_name == "option"]
    records = (record for option in options if (record := option.get_help_record(context)))
    sections: list[tuple[str, Iterator[str]]] = [
        ("NAME", iter([rf"{escaped(path.replace(' ', '-'))} \- {escaped(first_sentence(command.help))}"])),
        ("SYNOPSIS", iter([f"{bold(path)} {escaped(' '.join(command.collect_usage_pieces(context)))}"])),
        ("DESCRIPTION", paragraphs(command.help)),
        ("OPTIONS", rows((term(names), sentence) for names, sentence in records)),
        ("COMMANDS", rows((bold(name), sentence) for name, sentence in subcommands.items())),
        ("ENVIRONMENT", rows(environment()) if main else iter(())),
        ("FILES", rows((bold(name), sentence) for name, sentence in FILES if main)),
        ("EXIT STATUS", rows((bold(number), sentence) for number, sentence in statuses(path))),
        ("EXAMPLES", iter([literal(command.epilog.removeprefix("Example: "))] if command.epilog else ())),
        ("SEE ALSO", iter([", ".join(rf"{bold(name.replace(' ', '-'))}(1)" for name in others)])),
    ]
    lines = [f'.TH {escaped(path.replace(" ", "-").upper())} 1 "{dated()}" "palmette {version()}"']
    for title, body in sections:
        text = "\n".join(body).removeprefix(".PP\n")
        lines += [f".SH {title}", text] if text else []
    return "\n".join(lines) + "\n"


def environment() -> Iterator[tuple[str, str]]:
    """Yield the variables of settings.json with their defaults and sentences."""
    for setting in json.loads((ROOT / "python/palmette/settings.json").read_text(encoding="utf-8"))["settings"]:
        default = f" Default: {setting['default']}." if setting["default"] else ""
        yield bold(setting["name"]), setting["help"] + default


def statuses(path: str) -> Iterator[tuple[str, str]]:
    """Yield exit statuses and their meaning."""
    if path in OF_WHAT_RUNS:
        yield "any", "That of the command that was run."
        yield from STATUS[2:]
    else:
        yield from STATUS


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    import click

    from palmette.cli.group import cli
    from palmette.cli.main import COMMANDS, UNDER, loaded

    top = click.Context(cli, info_name="palmette", **cli.context_settings)
    sentences = {name: row[2] for name, row in COMMANDS.items()}
    yield "palmette", page(top, sentences, [f"palmette {name}" for name in COMMANDS])
    found = [(name, loaded(*row[:2])) for name, row in COMMANDS.items()]
    found += [(" ".join(words), loaded(*row[:2])) for words, row in UNDER.items()]
    for name, command in found:
        context = click.Context(command, info_name=name, parent=top)
        nested = command.commands if isinstance(command, click.Group) else {}
        below = [f"palmette {name} {one}" for one in nested]
        below += [f"palmette {' '.join(words)}" for words in UNDER if words[0] == name]
        listed = {one: first_sentence(nested[one].help or "") + "." for one in nested}
        listed |= {words[1]: row[2] for words, row in UNDER.items() if name == words[0]}
        yield context.command_path, page(context, listed, ["palmette", *below])
        for one, subcommand in nested.items():
            inner = click.Context(subcommand, info_name=one, parent=context)
            yield inner.command_path, page(inner, {}, ["palmette", context.command_path])


def main(arguments: list[str]) -> int:
    """Write all files below the folder."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    stand_ins.install("palmette._core")
    from palmette.cli.completion import SHELLS, script

    folder = Path(arguments[0])
    names = {"bash": "palmette", "zsh": "_palmette", "fish": "palmette.fish"}
    texts = {f"man1/{path.replace(' ', '-')}.1": text for path, text in pages()}
    texts |= {f"completions/{shell}/{names[shell]}": script(shell) for shell in SHELLS}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
