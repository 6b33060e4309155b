"""Durations as options: 5ms, 90s, 15min, 2h."""

from __future__ import annotations

import click

from palmette.cli.common import CliError
from palmette.lab import LabError
from palmette.lab.spec import parse_duration


def duration(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """Return the seconds of 5ms, 90s, 15min or 2h: the `callback` of an option. Raises CliError."""
    if value is None:
        return None
    try:
        return parse_duration(value)
    except LabError as error:
        raise CliError(str(error)) from error
