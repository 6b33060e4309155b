"""How much there is to learn: commands, options, settings and entry pages, counted from the parser and the pages.

Who adds one names the one that it replaces, or raises the limit in a change that says why.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from palmette.cli.group import contexts
from programs import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
LIMITS = {"palmette": (24, 241), "palmette-lab": (16, 190), "palmette-aggregator": (6, 20)}
"""Commands that do something (groups aren't counted), and their options; --help isn't counted."""
SETTINGS = 24


def counted(program: click.Command) -> tuple[int, int]:
    """Return the commands and options of a program."""
    commands = [one.command for one in contexts(program) if not isinstance(one.command, click.Group)]
    options = [option for one in commands for option in one.params if isinstance(option, click.Option)]
    return len(commands), len(options)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_program_has_no_more_commands_and_options_than_it_may(name: str) -> None:
    found = counted(PROGRAMS[name])
    print(f"{name}: {found[0]} commands, {found[1]} options")
    assert all(count <= limit for count, limit in zip(found, LIMITS[name], strict=True)), (name, found, LIMITS[name])


def test_there_are_no_more_settings_than_there_may_be() -> None:
    text = (ROOT / "python/palmette/settings.json").read_text(encoding="utf-8")
    assert len(json.loads(text)["settings"]) <= SETTINGS


def test_one_page_leads_by_kind_of_reader() -> None:
    leading = []
    for page in ("README.md", *(str(file.relative_to(ROOT)) for file in (ROOT / "docs").glob("*.md")),
                 *(str(file.relative_to(ROOT)) for file in (ROOT / "docs/guide").glob("*.md"))):  # fmt: skip
        text = (ROOT / page).read_text(encoding="utf-8")
        if re.search(r"^\| (you|to|reader) \| (read|begin with) \|$", text, re.MULTILINE):
            leading.append(page)
    assert leading == ["docs/guide/README.md"]
