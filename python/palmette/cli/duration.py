"""Durations as options: 5ms, 90s, 20m, 1h30min."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from palmette.cli.common import CliError
from palmette.units import DurationError, parse_duration


def duration(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """Return the seconds of 5ms, 90s, 20m or 1h: the `callback` of an option. Raises CliError."""
    if value is None:
        return None
    try:
        return parse_duration(value)
    except DurationError as error:
        raise CliError(str(error)) from error


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # click 8.1's can't be subscripted


class Seconds(_ParamType):
    """A duration as with `duration`, or a number of seconds: options that took numbers alone go on taking them."""

    name = "time"

    def __init__(self, least: float = 0.0, *, whole: bool = False) -> None:
        """`whole`: round up to full seconds, as an int."""
        self.least, self.whole = least, whole

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return what stands behind the option in its help."""
        return "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seconds; fails with a line of click's own."""
        try:
            seconds = float(value)
        except ValueError:
            try:
                seconds = parse_duration(str(value))
            except DurationError as error:
                self.fail(f"{error}, or a number of seconds", param, ctx)
        if not self.least <= seconds < math.inf:
            self.fail(f"'{value}' is less than {self.least:g} s, or no time.", param, ctx)
        return math.ceil(seconds) if self.whole else seconds
