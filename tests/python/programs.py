"""The programs of the command line, and all of their commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from palmette.cli import aggregator, main
from palmette.cli.group import contexts
from palmette.cli.palmette import cli
from palmette_lab.cli import main as lab_main
from palmette_lab.cli.group import cli as lab

PROGRAMS: dict[str, click.Group] = {
    "palmette": cli,
    "palmette-lab": lab,
    "palmette-aggregator": aggregator.command,
}
MAINS: dict[str, Callable[[list[str]], int]] = {
    "palmette": main.main,
    "palmette-lab": lab_main.main,
    "palmette-aggregator": aggregator.main,
}


def every_context() -> Iterator[click.Context]:
    """Yield a context of each program and each of its commands."""
    for program in PROGRAMS.values():
        yield from contexts(program)


def commands() -> list[click.Command]:
    """Return all commands, groups included."""
    return [context.command for context in every_context()]


@dataclass(frozen=True)
class Result:
    """What a call of the command line gave."""

    status: int
    out: str
    err: str


def calling(program: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Return what calls a program of the command line in this process."""

    def call(*arguments: str | Path) -> Result:
        capsys.readouterr()
        status = program([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(status, out, err)

    return call
