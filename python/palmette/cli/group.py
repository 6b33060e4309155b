"""The click group of all commands, which imports a command's module on first use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from palmette.cli import main as table
from palmette.cli.common import CliError
from palmette.cli.meant import close, suggestion, with_suggestion
from palmette.cli.printable import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(table.COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None when the table doesn't hold it."""
        if cmd_name not in table.COMMANDS:
            return None
        return _loaded(ctx, *table.COMMANDS[cmd_name][:2])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take two words where they name a command."""
        words = (args[0], args[1]) if len(args) > 1 else ("", "")
        if words in table.UNDER:
            return " ".join(words), _loaded(ctx, *table.UNDER[words][:2]), args[2:]
        if args[0] not in table.COMMANDS and not args[0].startswith("-"):
            meant = close(args[0], table.COMMANDS)
            raise click.UsageError(f"'{args[0]}' is no command{suggestion(meant)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands of the table, or the options, that begin with `incomplete`."""
        from click.shell_completion import CompletionItem

        rows = table.COMMANDS.items()
        commands = [CompletionItem(name, help=row[2]) for name, row in rows if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table."""
        grouped = {name for names in table.GROUPS.values() for name in names}
        ungrouped = tuple(name for name in table.COMMANDS if name not in grouped)
        widest = max(map(len, table.COMMANDS))
        for heading, names in {**table.GROUPS, "Others": ungrouped}.items():
            if not names:
                continue
            with formatter.section(heading):
                # Padded: the columns of all groups stand below each other.
                formatter.write_dl([(name.ljust(widest), table.COMMANDS[name][2]) for name in names])


class WithSubcommands(click.Command):
    """A command of one word that commands of two words begin with: its help lists them."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and below them the commands of two words."""
        super().format_options(ctx, formatter)
        rows = [
            (words[1], row[2]) for words, row in table.UNDER.items() if words[0] == (ctx.info_name or "").split()[0]
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _loaded(ctx: click.Context, module: str, attribute: str) -> click.Command:
    command = table.loaded(module, attribute)
    if not isinstance(command, click.Command):
        raise TypeError(f"{module}.{attribute} is no click command")
    if ctx.resilient_parsing:  # completion
        from palmette.cli.values import add_values

        add_values(command)
    return command


@click.group(
    cls=LazyGroup,
    epilog="Example: palmette run --topology topology.json --report mpiexec -n 64 ./app",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(package_name="palmette", prog_name="palmette")
def cli() -> None:
    """Faster collectives for the MPI programs that you have.

    Palmette finds out how a cluster is wired, plans each collective to fit it, and runs the plan under a program that
    nobody recompiles: palmette run mpiexec -n 64 ./app

    Exit status: 0 success, 1 a negative result, 2 bad input, 70 a fault of palmette's own, 130 interrupted; `run` ends
    with the program's. docs/reference/command-line.md has the table.
    """


_WITHOUT_WORDS: tuple[type, ...] = tuple(filter(None, (getattr(click.exceptions, "NoArgsIsHelpError", None),)))
"""What click from 8.2 on raises for a group without a command; click 8.1 prints the help by itself, status 0."""


def run_group(words: Sequence[str]) -> int:
    """Run a command line and return the exit status: 2 for bad input, reported in one line on standard error."""
    try:
        status = cli.main(args=list(words), prog_name="palmette", standalone_mode=False, obj=list(words))
    except click.UsageError as error:
        if error.ctx is not None and isinstance(error, _WITHOUT_WORDS):
            click.echo(error.ctx.get_help())  # nothing was asked, so nothing is wrong but the status
            return 2
        path = error.ctx.command_path if error.ctx is not None else "palmette"
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
