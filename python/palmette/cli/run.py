"""`palmette run`: an MPI program with faster collectives."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from palmette.cli.common import CliError, emit_json, json_option
from palmette.run import Choices, RunError, prepare, variables
from palmette.run.abi import ABIS, Abi


class _RunCommand(click.Command):
    """Lets --report stand with or without a file, though a command line follows it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join `--report` and a file that ends in .json; a lone `--report` asks for the page."""
        words = list(args)
        valued = {name for option in self.params for name in option.opts if _takes_value(option)}
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] != "--":
            if words[at] == "--report":
                if at + 1 < len(words) and words[at + 1].endswith(".json"):
                    words[at : at + 2] = [f"--report={words[at + 1]}"]
                else:
                    words[at] = "--report=1"
            at += 2 if words[at] in valued else 1
        return super().parse_args(ctx, words)


def _takes_value(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and not option.is_flag and not option.count and option.name != "report"


@click.command(
    cls=_RunCommand,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False, "max_content_width": 80},
)
@click.option("--topology", type=click.Path(path_type=Path), metavar="FILE", help="topology.json of the cluster.")
@click.option("--table", type=click.Path(path_type=Path), metavar="FILE", help="Decision table to choose by.")
@click.option(
    "--report", metavar="[FILE.json]", help="Print a page at the end: what was served and how; or write it as JSON."
)
@click.option(
    "--matrix",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write who sent how much to whom, point to point, for palmette map.",
)
@click.option(
    "--force", multiple=True, metavar="COLLECTIVE=SPEC", help="Always take this algorithm: gather=linear. Repeatable."
)
@click.option("--off", is_flag=True, help="Preload, but pass all calls through: for comparisons.")
@click.option("-v", "--verbose", count=True, help="Tell choices and fallbacks; twice: every call.")
@click.option("--abi", type=click.Choice(ABIS), help="Don't look into the program: its MPI has this ABI.")
@click.option("--print", "only_print", is_flag=True, help="Print the command line instead of running it.")
@json_option
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, required=True, metavar="COMMAND [ARGUMENTS]...")
def command(
    topology: Path | None,
    table: Path | None,
    report: str | None,
    matrix: Path | None,
    force: tuple[str, ...],
    off: bool,
    verbose: int,
    abi: Abi | None,
    only_print: bool,
    as_json: bool,
    command_line: tuple[str, ...],
) -> None:
    """Run an MPI program with faster collectives.

    COMMAND is what you would type without palmette: mpiexec -n 64 ./app. Nothing
    is recompiled: a library is preloaded into the ranks, picked by the MPI that
    the program is linked with; where it names none (scripts, Python), one for
    each MPI that it may use. Options of palmette stand before COMMAND.

    With --json the command is printed with what was found out, and not run.
    The exit status is the launcher's; 2 when palmette refuses.
    """
    choices = Choices(topology, table, report, dict(map(_assignment, force)), off, verbose, matrix)
    try:
        prepared = prepare(command_line, variables(choices, os.environ), os.environ, abi=abi)
    except RunError as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(
            {
                "command": list(prepared.command),
                "environment": dict(prepared.environment),
                "launcher": prepared.launcher,
                "program": prepared.program,
                "abi": prepared.evidence.abi,
                "abis": list(prepared.evidence.abis),
                "because": prepared.evidence.because,
                "preload": [str(library) for library in prepared.preloads],
                "warnings": list(prepared.warnings),
            }
        )
        return
    for warning in prepared.warnings:
        click.echo(f"palmette run: warning: {warning}", err=True)
    if only_print:
        click.echo(prepared.shell_line())
        return
    if verbose:
        click.echo(f"palmette run: {prepared.evidence.because}: {' '.join(map(str, prepared.preloads))}", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    # In our place: exit status, signals and the terminal are the launcher's without anything in between.
    try:
        os.execvpe(prepared.command[0], prepared.command, {**os.environ, **prepared.environment})  # noqa: S606
    except OSError as error:
        raise CliError(f"{prepared.command[0]}: {error.strerror}; correct the name or its permissions") from None


def _assignment(text: str) -> tuple[str, str]:
    """Return the collective and its algorithm. Raises CliError without `=`."""
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise CliError(f"--force {text}: expected COLLECTIVE=SPEC, as in --force gather=linear")
    return name, value
