"""What every command shares: errors of one line, JSON output, the console."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from palmette.cli.meant import with_suggestion
from palmette.cli.printable import printable
from palmette.files import write_text as replace_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

WIDTH = 80
"""Columns of the output when it doesn't go to a terminal; a narrower terminal is respected."""


def _width(stream: object) -> int | None:
    """Return the fixed width for `stream`, or None for a terminal, whose own width counts."""
    isatty = getattr(stream, "isatty", None)
    if "COLUMNS" in os.environ or (isatty is not None and isatty()):
        return None
    return WIDTH


def make_console() -> Console:
    """Return a console on standard error, 80 columns wide unless it is a terminal."""
    from rich.console import Console  # most commands that other programs call show no progress

    class PipedConsole(Console):
        """Leaves a pipe that its reader has closed to main()."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return PipedConsole(stderr=True, width=_width(sys.stderr), highlight=False, soft_wrap=False)


class _LazyConsole:
    """Forwards to a console made at the first use, so that tests may replace the stream before."""

    def __getattr__(self, name: str) -> Any:
        return getattr(make_console(), name)


errors: Any = _LazyConsole()
"""Rich console on standard error: progress, warnings."""


class CliError(click.ClickException):
    """Bad input or a missing resource, reported in one line: `palmette COMMAND: what, where; what to do next`.

    The message says what, where and what to do; the prefix is added here. The exit status is 2 unless `status` says
    otherwise (1: the command ran, and its result is negative).
    """

    def __init__(self, message: str, *, status: int = 2) -> None:
        super().__init__(printable(with_suggestion(" ".join(message.split()))))
        self.status = status
        context = click.get_current_context(silent=True)
        self.command_path = context.command_path if context is not None else "palmette"

    def show(self, file: Any = None) -> None:
        """Print the line to standard error."""
        click.echo(f"{self.command_path}: {self.message}", file=file or sys.stderr)


class WholeNumber(click.IntRange):
    """A whole number from `min` on that the core can count: at most 2^31 - 1 unless `max` says less."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; fails with a line of click's own."""
        number = super().convert(value, param, ctx)
        if isinstance(number, int) and number > MAX_COUNT:
            self.fail(f"{number} is more than {MAX_COUNT}.", param, ctx)
        return number


class Folder(click.Path):
    """A folder to write into, as a Path. An empty name is refused: it would mean the current folder."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fails with a line of click's own."""
        if not str(value):
            self.fail("the folder has no name; '.' is the present one.", param, ctx)
        return super().convert(value, param, ctx)


_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")


class SingleNameOption(click.Option):
    """An option whose help shows the first of its names: the others are what somebody may type."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help."""
        names, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


class SectionedCommand(click.Command):
    """A command with so many options that some stand below headings of their own: `sections`, by parameters' names."""

    def __init__(self, *arguments: Any, sections: Mapping[str, Sequence[str]] | None = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.sections = sections or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options that stand in no section, and then those of each."""
        title_of = {name: title for title, names in self.sections.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {"Options": [], **{title: [] for title in self.sections}}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None:
                rows[title_of.get(option.name or "", "Options")].append(record)
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def sizes_option(default: str, help_text: str, metavar: str | None = None) -> Callable[[_Command], _Command]:
    """Return the option for several sizes, `--sizes 64,1K`, which `--size` is taken for, too."""
    return click.option(
        "--sizes",
        "--size",
        "sizes",
        cls=SingleNameOption,
        default=default,
        show_default=True,
        metavar=metavar,
        help=help_text,
    )


MAX_COUNT = 2**31 - 1
"""Counts of ranks, hosts and repetitions are 32 bits wide."""


def write_file(path: str | Path, text: str, option: str) -> None:
    """Write what `option` asked for. Raises CliError where the file can't be written."""
    try:
        replace_text(path, text)
    except OSError as error:
        raise CliError(f"can't write {path}: {error.strerror}; choose another file with {option}") from None


def assignment(text: str) -> tuple[str, str]:
    """Return name and value of what follows `--env`. Raises CliError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise CliError(f"--env {text}: expected NAME=VALUE")
    return name, value


def emit_json(value: object) -> None:
    """Print `value` as indented JSON with a newline, in UTF-8, keys in the order given; in ASCII where
    standard output can't have more.

    Raises ValueError for NaN and infinities, which JSON does not know.
    """
    plain = getattr(sys.stdout, "encoding", "") == "palmette-ascii"
    click.echo(json.dumps(value, indent=2, ensure_ascii=plain, allow_nan=False))


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
"""The `--json` option that each command has; its parameter is called `as_json`."""
