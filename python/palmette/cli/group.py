"""Groups of commands that import a command's module on first use, and how a program runs one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from palmette.cli.common import CliError
from palmette.cli.meant import close, suggestion, with_suggestion
from palmette.cli.printable import printable
from palmette.cli.table import Table

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class LazyGroup(click.Group):
    """A group of the commands of a table, each imported when it is used."""

    def __init__(self, *arguments: Any, table: Table, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self.table.rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None when the table doesn't hold it."""
        row = self.table.rows.get(cmd_name)
        if row is None:
            return None
        command = row.load()
        if not isinstance(command, click.Command):
            raise TypeError(f"{row.module}.{row.attribute} is no click command")
        if ctx.resilient_parsing:  # completion
            from palmette.cli.values import add_values

            add_values(command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the default command where none is named."""
        known = {*self.table.rows, *self.table.moved, *ctx.help_option_names}
        if self.table.default and not set(args[:1]) & known and (args or not ctx.resilient_parsing):
            args = [self.table.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; what has another name now is told."""
        if args[0] in self.table.moved:
            now = self.table.moved[args[0]].format(shlex.join(args[1:]))
            raise CliError(f"'{args[0]}' has another name now; say {' '.join(now.split())}")
        if args[0] not in self.table.rows and not args[0].startswith("-"):
            meant = close(args[0], self.table.rows)
            raise click.UsageError(f"'{args[0]}' is no command{suggestion(meant)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands of the table, or the options, that begin with `incomplete`."""
        from click.shell_completion import CompletionItem

        rows = self.table.rows.items()
        commands = [CompletionItem(name, help=row.help) for name, row in rows if name.startswith(incomplete)]
        return [*commands, *self._of_default(ctx, incomplete), *click.Command.shell_complete(self, ctx, incomplete)]

    def _of_default(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        command = self.get_command(ctx, self.table.default)
        if command is None:
            return []
        context = click.Context(command, parent=ctx, info_name=self.table.default, resilient_parsing=True)
        if incomplete.startswith("-"):
            return command.shell_complete(context, incomplete)
        first = next(one for one in command.params if isinstance(one, click.Argument))
        return first.shell_complete(context, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table."""
        widest = max(map(len, self.table.rows))
        for heading, rows in self.table.headings.items():
            with formatter.section(heading):
                # Padded: the columns of all groups stand below each other.
                formatter.write_dl([(name.ljust(widest), row.help) for name, row in rows.items()])


def contexts(
    command: click.Command, parent: click.Context | None = None, name: str | None = None
) -> Iterator[click.Context]:
    """Yield a context of a program, and of all commands below it; imports them."""
    context = click.Context(command, info_name=name or command.name, parent=parent, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from contexts(below, context, name)


_WITHOUT_WORDS: tuple[type, ...] = tuple(filter(None, (getattr(click.exceptions, "NoArgsIsHelpError", None),)))
"""What click from 8.2 on raises for a group without a command; click 8.1 prints the help by itself, status 0."""


def run_group(cli: click.Command, words: Sequence[str]) -> int:
    """Run a program's command line and return the exit status: 2 for bad input, reported in one line on standard
    error.
    """
    name = cli.name or "palmette"
    try:
        status = cli.main(args=list(words), prog_name=name, standalone_mode=False, obj=list(words))
    except click.UsageError as error:
        if error.ctx is not None and isinstance(error, _WITHOUT_WORDS):
            click.echo(error.ctx.get_help())  # nothing was asked, so nothing is wrong but the status
            return 2
        path = error.ctx.command_path if error.ctx is not None else name
        if moved := _moved(error):
            click.echo(f"{path}: {moved}", err=True)
            return 2
        message = printable(with_suggestion(" ".join(error.format_message().split())))
        click.echo(f"{path}: {message.rstrip('.')}; `{path} --help` lists what it takes", err=True)
        return 2
    except CliError as error:
        error.show()
        return error.status
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except SystemExit:
        # So click ends where the reader has closed the pipe.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            return 0
        raise
    return status if isinstance(status, int) else 0


LAB_OPTIONS = {
    **dict.fromkeys(("bench collectives", "bench pattern", "bench compose", "bench app"), "palmette-lab bench"),
    "tune": "palmette-lab tune",
    "calibrate": "palmette-lab calibrate",
    "discover": "palmette-lab discover",
}
"""Commands that took a lab once, and which of palmette-lab's does now."""
OF_LABS = ("--lab", "--spine-delay", "--placement", "--ppn", "--ranks", "--set", "--rival", "--traffic",
           "--floor", "--pass-through", "--side-by-side", "--write-load", "--repeat", "--no-preload",
           "--fail-if-missed", "--fail-if-any-slower")  # fmt: skip


def _moved(error: click.UsageError) -> str:
    """Return where an option is now that a command had once, or what an option of launchers is called, else nothing."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    words = error.ctx.command_path.removeprefix("palmette ")
    name = error.option_name
    if name in ("-n", "-np", "--np"):
        if words == "run":
            return f"{name} is the launcher's, which stands first: palmette run mpiexec -n 4 ./app"
        if any("--ranks" in option.opts for option in error.ctx.command.params):
            return f"{name}: the number of ranks is --ranks"
    if words in LAB_OPTIONS and name in OF_LABS:
        return f"{name} is an option of {LAB_OPTIONS[words]} now"
    if words == "bench collectives" and name == "--compare":
        return "--compare has another name now: palmette bench report RUN1 RUN2"
    if words == "what-if" and name == "--recorded-on":
        return "--recorded-on is --topology now; another network is --network"
    if words == "report" and name in ("--store", "--speedups"):
        return f"{name} is for stored runs of palmette bench: palmette bench report"
    return ""
