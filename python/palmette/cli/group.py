"""The click group of all commands, which imports a command's module on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from palmette.cli import main as table
from palmette.cli.common import CliError
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
            return " ".join(words), _loaded(ctx, *table.UNDER[words]), args[2:]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands of the table, or the options, that begin with `incomplete`."""
        from click.shell_completion import CompletionItem

        rows = table.COMMANDS.items()
        commands = [CompletionItem(name, help=row[2]) for name, row in rows if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, _, sentence) in table.COMMANDS.items()])


def _loaded(ctx: click.Context, module: str, attribute: str) -> click.Command:
    command = table.loaded(module, attribute)
    if not isinstance(command, click.Command):
        raise TypeError(f"{module}.{attribute} is no click command")
    if ctx.resilient_parsing:  # completion
        from palmette.cli.values import add_values

        add_values(command)
    return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(package_name="palmette", prog_name="palmette")
def cli() -> None:
    """Faster collectives for the MPI programs that you have.

    Palmette finds out how a cluster is wired, plans each collective to fit it, and runs the plan under a program that
    nobody recompiles: palmette run mpiexec -n 64 ./app
    """


def run_group(words: Sequence[str]) -> int:
    """Run a command line and return the exit status: 2 for bad input, reported in one line on standard error."""
    try:
        status = cli.main(args=list(words), prog_name="palmette", standalone_mode=False, obj=list(words))
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "palmette"
        message = printable(" ".join(error.format_message().split()))
        click.echo(f"{path}: {message} (`{path} --help` lists what it takes)", err=True)
        return 2
    except CliError as error:
        error.show()
        return error.status
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    return status if isinstance(status, int) else 0
