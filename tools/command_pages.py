"""What man pages and the reference tell of each command of the programs: taken from the commands themselves.

Needs click and nothing else; callers outside an installed package call `stand_ins.install("palmette._core")` first.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

FILES = (
    ("topology.json", "The cluster, as palmette discover writes it and --topology and PALMETTE_TOPOLOGY name it."),
    ("tuning.json", "A decision table, as palmette tune writes it and --table and PALMETTE_TABLE name it."),
    ("/etc/palmette/settings, ~/.config/palmette/settings", "NAME=VALUE lines of settings, for everybody and for you."),
    ("/etc/palmette/topology.json, table.json", "The cluster and the decision table of jobs that name none."),
    ("runs.sqlite", "Samples of palmette bench, for palmette bench report."),
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
OF_WHAT_RUNS = ("palmette run", "palmette-lab run", "palmette-lab exec")
PROGRAMS = ("palmette", "palmette-lab", "palmette-aggregator")


@dataclass(frozen=True)
class Page:
    """A command."""

    path: str
    """All its words: `palmette-lab up`."""
    help: str
    usage: str
    """What may follow the path."""
    options: list[tuple[str, str]]
    """Names with their value, and a sentence."""
    subcommands: dict[str, str]
    """Names and sentences."""
    related: list[str]
    """Paths of other pages."""
    example: str
    statuses: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The path in one word."""
        return self.path.replace(" ", "-")

    @property
    def sentence(self) -> str:
        """The first sentence of the help."""
        return first_sentence(self.help)


def first_sentence(text: str) -> str:
    """Return what NAME says."""
    paragraph = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s", paragraph)[0].rstrip(".:")


def settings() -> list[dict[str, str]]:
    """Return the variables of settings.json: name, kind, default, help."""
    text = (ROOT / "python/palmette/settings.json").read_text(encoding="utf-8")
    found: list[dict[str, str]] = json.loads(text)["settings"]
    return found


def version() -> str:
    """Return the version, which CMakeLists.txt declares."""
    found = re.search(r"project\(palmette VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    return found[1] if found else ""


def paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    r"""Yield the paragraphs of a docstring, and whether their lines stay: those behind \b, as in click's help."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            yield paragraph[1:].strip("\n"), True
        else:
            yield " ".join(paragraph.split()), False


def statuses(path: str) -> list[tuple[str, str]]:
    """Return exit statuses and their meaning."""
    if path in OF_WHAT_RUNS:
        return [("any", "That of the command that was run."), *STATUS[2:]]
    return [*STATUS]


def page(context: Any, subcommands: dict[str, str], related: list[str]) -> Page:
    """Return the page of a context's command."""
    command = context.command
    options = [option for option in command.get_params(context) if option.param_type_name == "option"]
    records = [record for option in options if (record := option.get_help_record(context))]
    return Page(
        path=context.command_path,
        help=command.help,
        usage=" ".join(command.collect_usage_pieces(context)),
        options=records,
        subcommands=subcommands,
        related=related,
        example=(command.epilog or "").removeprefix("Example: "),
        statuses=statuses(context.command_path),
    )


def program(name: str) -> Any:
    """Return the click group of a program of PROGRAMS."""
    from palmette.cli.aggregator import command
    from palmette.cli.palmette import cli
    from palmette_lab.cli.group import cli as lab

    return {"palmette": cli, "palmette-lab": lab, "palmette-aggregator": command}[name]


def pages() -> Iterator[Page]:
    """Yield each program and each of its commands, subcommands behind their group."""
    import click

    from palmette.cli.group import LazyGroup, contexts

    for context in (one for name in PROGRAMS for one in contexts(program(name))):
        command = context.command
        listed = {}
        if isinstance(command, LazyGroup):
            listed = {name: row.help for name, row in command.table.rows.items()}
        elif isinstance(command, click.Group):
            listed = {name: first_sentence(one.help or "") + "." for name, one in command.commands.items()}
        above = [context.parent.command_path] if context.parent else []
        yield page(context, listed, [*above, *(f"{context.command_path} {name}" for name in listed)])
