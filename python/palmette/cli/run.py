"""`palmette run`: an MPI program with faster collectives. Help, JSON and mistakes; the rest is in `run_start`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from palmette.cli.common import CliError, emit_json
from palmette.cli.run_mistakes import mistake_in
from palmette.cli.run_options import DEFAULT_RATE, OPTIONS, Option
from palmette.cli.run_start import choices_of, execute, prepared_for
from palmette.run import RunError, variables


class _RunCommand(click.Command):
    """Accepts --report with or without a file, though a command line follows it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join `--report` and a file that ends in .json; alone it asks for the page, `--sample` for its rate."""
        if mistake := mistake_in(args):
            raise CliError(mistake)
        words = list(args)
        valued = {word for option in OPTIONS if option.kind in ("value", "path", "repeated") for word in option.words}
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] != "--":
            if words[at] == "--report":
                if at + 1 < len(words) and words[at + 1].endswith(".json"):
                    words[at : at + 2] = [f"--report={words[at + 1]}"]
                else:
                    words[at] = "--report=1"
            elif words[at] == "--sample":
                words[at] = f"--sample={DEFAULT_RATE}"
            at += 2 if words[at] in valued else 1
        return super().parse_args(ctx, words)


def _as_click(option: Option) -> click.Option:
    return click.Option(
        [*option.words, option.parameter],
        help=option.help,
        metavar=option.metavar,
        multiple=option.kind == "repeated",
        is_flag=option.kind == "flag",
        count=option.kind == "count",
        type=_type(option),
    )


def _type(option: Option) -> click.ParamType[Any] | None:
    if option.allowed:
        return click.Choice(option.allowed)
    if option.kind == "path":
        return click.Path()
    return None


def _run(command_line: tuple[str, ...], **values: Any) -> None:
    """Run an MPI program with faster collectives.

    COMMAND is what you would type without palmette: mpiexec -n 64 ./app. Nothing
    is recompiled: a library is preloaded into the ranks, picked by the MPI that
    the program is linked with; where it names none (scripts, Python), one for
    each MPI that it may use. Options of palmette stand before COMMAND.

    With --json the command is printed with what was found out, and not run.
    The exit status is the launcher's; 2 when palmette refuses.
    """
    if values["compare"]:
        _compare(command_line, values)
        return
    try:
        prepared = prepared_for(values, command_line)
        if not values["as_json"]:
            execute(prepared, verbose=values["verbose"], only_print=values["only_print"])
            return
    except RunError as error:
        raise CliError(str(error)) from None
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


def _compare(command_line: tuple[str, ...], values: dict[str, Any]) -> None:
    from palmette.app.measure import ALONE, PALMETTE, CommandRunner, MeasureOptions, Variant
    from palmette.cli.bench_app import compare, given_input
    from palmette.cli.place_errors import one_line_errors

    told = [
        f"--{name.replace('_', '-')}"
        for name in ("report", "profile", "trace", "sample", "off", "only_print", "abi")
        if values[name]
    ]
    if told:
        raise CliError(f"{told[0]} doesn't go with --compare, which runs the program many times; leave one of them out")
    try:
        settings = variables(choices_of(values), {})
    except RunError as error:
        raise CliError(str(error)) from None
    topology = settings.get("PALMETTE_TOPOLOGY")
    with one_line_errors():
        variants = [Variant(ALONE, None), Variant(PALMETTE, settings)]
        runner = CommandRunner(command_line, Path(topology) if topology else None)
        compare(runner, variants, MeasureOptions(given=given_input()), None, as_json=values["as_json"])


command = _RunCommand(
    "run",
    callback=_run,
    help=_run.__doc__,
    epilog="Example: palmette run --topology topology.json --report mpiexec -n 64 ./app",
    params=[
        *map(_as_click, OPTIONS),
        click.Argument(
            ["command_line"], nargs=-1, type=click.UNPROCESSED, required=True, metavar="COMMAND [ARGUMENTS]..."
        ),
    ],
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False, "max_content_width": 80},
)
