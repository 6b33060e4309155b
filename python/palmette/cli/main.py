"""The command `palmette`: a table of commands, each loaded when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from palmette.cli.common import CliError

COMMANDS: dict[str, tuple[str, str, str]] = {
    "discover": ("palmette.cli.discover", "command", "Find out how a cluster is wired; write topology.json."),
    "calibrate": ("palmette.cli.calibrate", "command", "Measure what messages cost on each level of a machine."),
    "show": ("palmette.cli.show", "command", "Show a topology as a tree, a picture or JSON."),
    "plan": ("palmette.cli.plan", "command", "Make, verify, count and draw the plan of a collective."),
    "predict": ("palmette.cli.predict", "command", "Predict the time of algorithms, and what it goes into."),
    "bound": ("palmette.cli.bound", "command", "The time that no plan and no library can go below."),
    "flow": ("palmette.cli.flow", "command", "Play a plan over the links of a machine."),
    "map": ("palmette.cli.map", "command", "Find a rank order for a pattern of messages."),
    "compose": ("palmette.cli.compose", "command", "Factor communication made of multicasts and reductions."),
    "explain": ("palmette.cli.explain", "command", "Say why a collective is done as it is, and what else there is."),
    "run": ("palmette.cli.run", "command", "Run an MPI program with faster collectives."),
    "bench": ("palmette.cli.bench", "command", "Measure collectives with and without palmette."),
    "tune": ("palmette.cli.tune", "command", "Find the fastest algorithms here; write a decision table."),
    "simulate": ("palmette.cli.simulate", "command", "Run collectives on clusters that SimGrid simulates."),
    "lab": ("palmette.cli.lab", "command", "Emulate a cluster on this machine."),
    "export": ("palmette.cli.export", "command", "Write tuning files for MPI libraries without palmette."),
    "report": ("palmette.cli.report", "command", "Write stored benchmark runs as a page."),
    "demo": ("palmette.cli.demo", "command", "Show the main job on this machine."),
    "doctor": ("palmette.cli.doctor", "command", "Say what palmette finds on this machine."),
    "settings": ("palmette.cli.settings", "command", "List the PALMETTE_ variables and their values."),
}
"""name -> (module, attribute, one-line help). Help and completion read this table without importing the modules."""

UNDER: dict[tuple[str, str], tuple[str, str]] = {
    ("bench", "pattern"): ("palmette.cli.bench_pattern", "command"),
    ("bench", "compose"): ("palmette.cli.bench_compose", "command"),
}
"""Commands that stand under another one's name: what they are given has nothing in common with it."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None when the table doesn't hold it."""
        if cmd_name not in COMMANDS:
            return None
        return _loaded(*COMMANDS[cmd_name][:2])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take two words where they name a command."""
        words = (args[0], args[1]) if len(args) > 1 else ("", "")
        if words in UNDER:
            return " ".join(words), _loaded(*UNDER[words]), args[2:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, _, sentence) in COMMANDS.items()])


def _loaded(module: str, attribute: str) -> click.Command:
    loaded = getattr(import_module(module), attribute)
    if not isinstance(loaded, click.Command):
        raise TypeError(f"{module}.{attribute} is no click command")
    return loaded


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(package_name="palmette", prog_name="palmette")
def cli() -> None:
    """Faster collectives for the MPI programs that you have.

    Palmette finds out how a cluster is wired, plans each collective to fit it, and runs the plan under a program that
    nobody recompiles: palmette run mpiexec -n 64 ./app
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    2 for bad input, told in one line on standard error; 130 after Ctrl-C; otherwise what the command says.
    """
    try:
        status = cli.main(args=arguments, prog_name="palmette", standalone_mode=False)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "palmette"
        click.echo(f"{path}: {error.format_message()} (`{path} --help` lists what it takes)", err=True)
        return 2
    except CliError as error:
        error.show()
        return error.status
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("palmette: interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader of a pipe went away (`palmette show ... | head`): not an error of ours.
        sys.stderr.close()
        return 0
    return status if isinstance(status, int) else 0


if __name__ == "__main__":
    sys.exit(main())
