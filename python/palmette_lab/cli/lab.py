"""`palmette-lab`: emulate a cluster on this machine."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from palmette.cli.common import CliError, WholeNumber, emit_json, json_option
from palmette.cli.duration import duration
from palmette.cli.job_options import placement_option
from palmette.cli.level_names import note_levels
from palmette.cli.printable import printable
from palmette.cli.progress import ActivityLine
from palmette.cli.run_mistakes import report_mistake
from palmette.measure.running import TIMED_OUT
from palmette.mpi import install as mpi_install
from palmette.mpi.errors import RunError
from palmette.mpi.launch import LaunchError
from palmette.topology.placement import PlacementError
from palmette.units import plural
from palmette_lab.cli.here import be_root
from palmette_lab.cli.place import complete_labs, lab_or_spec
from palmette_lab.cli.status import describe
from palmette_lab.lab import Lab, LabError, build, state
from palmette_lab.lab.lab import DEFAULT_LIFETIME_S, DEFAULT_NAME, DEFAULT_TIMEOUT_S
from palmette_lab.lab.namespaces import check_can_build
from palmette_lab.lab.with_palmette import served
from palmette_lab.place import free_lab_name

_F = TypeVar("_F", bound=Callable[..., Any])


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except (LabError, LaunchError, PlacementError, RunError, mpi_install.MpiNotFoundError) as error:
        raise CliError(str(error)) from error


@contextmanager
def _lab(text: str | None, name: str) -> Iterator[Lab]:
    """Give the lab called `name`, the one that `text` names, or one of that SPEC that ends with the context."""
    if text is None:
        yield Lab.attach(name)
        return
    if name != DEFAULT_NAME:
        raise CliError(f"--lab {text} and --name {name} name different labs; give one of them")
    spec, named = lab_or_spec(text)
    if named is not None:
        yield Lab.attach(named)
        return
    be_root()
    note_levels(spec or text)
    with Lab.up(spec or text, name=free_lab_name("run")) as lab:
        yield lab


def _name_option(function: _F) -> _F:
    return click.option(
        "--name", default=DEFAULT_NAME, show_default=True, help="Which lab, where several are up at once.",
        shell_complete=complete_labs,
    )(function)  # fmt: skip


@click.command(
    "up",
    epilog='Example: palmette-lab up "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core" --lifetime 20m',
    context_settings={"max_content_width": 80},
)
@click.argument("spec")
@_name_option
@click.option("--spine-delay", callback=duration, metavar="TIME", help="The top switch holds each frame: 5ms.")
@click.option(
    "--lifetime",
    callback=duration,
    metavar="TIME",
    default=f"{DEFAULT_LIFETIME_S / 3600:g}h",
    show_default=True,
    help="When the lab ends by itself.",
)
@json_option
def up(spec: str, name: str, spine_delay: float | None, lifetime: float, as_json: bool) -> None:
    """Build the cluster SPEC, like 3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core.

    SPEC may be a topology.json too. Rates of SPEC are link rates including frame headers; the topology.json that is
    written holds the TCP goodput. With aggregators, as in aggregator@400Mbit/s:8node@50Mbit/s, the lab runs their
    daemons.
    """
    with _errors_in_one_line():
        note_levels(spec)
        with ActivityLine(f"building the lab '{name}'"):
            lab = Lab.up(spec, name=name, spine_delay_s=spine_delay, lifetime_s=lifetime, detach=True)
    if as_json:
        emit_json(describe(lab))
        return
    slots = sum(host.slots for host in lab.state.hosts)
    combined = f", {plural(len(lab.aggregators), 'aggregator')}" if lab.aggregators else ""
    click.echo(f"lab '{name}' is up: {plural(len(lab.hosts), 'host')}, {plural(slots, 'slot')}{combined}")
    click.echo(f"topology: {lab.topology_path}")


@click.command("down", epilog="Example: palmette-lab down --all", context_settings={"max_content_width": 80})
@_name_option
@click.option("--all", "everything", is_flag=True, help="Every lab, dead ones included.")
@json_option
def down(name: str, everything: bool, as_json: bool) -> None:
    """Take the cluster down, with all that runs on it. Twice is fine."""
    names = state.known_labs() if everything else [name]
    with _errors_in_one_line():
        check_can_build()
        ended = [one for one in names if build.tear_down(one)]
    if as_json:
        emit_json({"down": ended})
    elif ended:
        click.echo("\n".join(f"lab '{one}' is down" for one in ended))
    else:
        click.echo("no lab was up" if everything else f"the lab '{name}' was not up")


class _RunCommand(click.Command):
    """Accepts --report with or without a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join `--report` and a file that ends in .json; a lone `--report` asks for the text."""
        end = args.index("--") if "--" in args else len(args)
        words = list(args[:end])
        for at in reversed([at for at, word in enumerate(words) if word == "--report"]):
            if mistake := report_mistake("", [*words[at + 1 :], *args[end + 1 :]]):
                raise CliError(mistake)
            has_file = at + 1 < len(words) and words[at + 1].endswith(".json")
            words[at : at + 1 + has_file] = [f"--report={words[at + 1] if has_file else 1}"]
        return super().parse_args(ctx, [*words, *args[end:]])


@click.command(
    "run",
    cls=_RunCommand,
    short_help="Run an MPI program on the cluster, with palmette or without.",
    context_settings={"max_content_width": 80, "ignore_unknown_options": True},
    epilog="Example: palmette-lab run --lab 4node@100Mbit/s --mpi mpich --palmette --report -- ./app",
)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- PROGRAM [ARGUMENTS]...")
@click.option("--lab", metavar="NAME|SPEC", help="A lab that is up, or one for this run alone, also without root.")
@_name_option
@click.option("--mpi", required=True, type=click.Choice(list(mpi_install.NAMES)), help="Which MPI starts it.")
@click.option("--palmette", "with_palmette", is_flag=True, help="With palmette, which knows the lab's wiring.")
@click.option(
    "--report", metavar="[FILE.json]", help="The same, and tell at the end what was served and why; or write it."
)
@placement_option()
@click.option("--ppn", type=WholeNumber(1), help="Slots a host, instead of the machine's.")
@click.option("-n", "ranks", type=WholeNumber(1), help="Number of ranks; default: all slots.")
@click.option("--env", "assignments", multiple=True, metavar="K=V", help="Set a variable in the ranks (repeatable).")
@click.option("--option", "options", multiple=True, metavar="WORD", help="Pass a word on to mpiexec (repeatable).")
@click.option("--timeout", default=f"{DEFAULT_TIMEOUT_S / 60:g}m", show_default=True, callback=duration, metavar="TIME",
              help="End the job after this time.")  # fmt: skip
@click.option("--print", "only_print", is_flag=True, help="Show the command, don't run it.")
@json_option
def run(
    argv: tuple[str, ...],
    lab: str | None,
    name: str,
    mpi: str,
    with_palmette: bool,
    report: str | None,
    placement: str,
    ppn: int | None,
    ranks: int | None,
    assignments: tuple[str, ...],
    options: tuple[str, ...],
    timeout: float,
    only_print: bool,
    as_json: bool,
) -> None:
    """Run an MPI program on the cluster: by the MPI alone, or with palmette.

    The exit status is mpiexec's, or 124 at the time limit. With --json the output is captured and printed at the end.
    """
    env = dict(_assignment(text) for text in assignments)
    with _errors_in_one_line(), _lab(lab, name) as on:
        hosts = on.place(placement, ppn=ppn, ranks=ranks)
        how = served(
            mpi_install.find(mpi), len(hosts), argv, env, on.topology_path,
            palmette=with_palmette or report is not None, report=report,
        )  # fmt: skip
        for warning in how.warnings:
            click.echo(f"palmette-lab run: warning: {printable(warning)}", err=True)
        if not how.preloaded and not only_print:
            click.echo(
                "palmette-lab run: by the MPI alone; --palmette runs it with palmette, --report tells why", err=True
            )
        if only_print:
            words = on.command(mpi, hosts, argv, how.variables, options)
            if as_json:
                emit_json({"command": words, "hosts": hosts})
            else:
                click.echo(shlex.join(words))
            return
        started = time.monotonic()
        done = on.run(
            argv,
            mpi=mpi,
            placement=placement,
            ppn=ppn,
            ranks=ranks,
            env=how.variables,
            options=options,
            timeout_s=timeout,
            capture=as_json,
            stdin=subprocess.DEVNULL if as_json else None,
        )
    if as_json:
        emit_json(
            {
                "status": done.returncode,
                "seconds": time.monotonic() - started,
                "hosts": hosts,
                "stdout": done.stdout,
                "stderr": done.stderr,
            }
        )
    if done.returncode == TIMED_OUT and time.monotonic() - started >= timeout:
        click.echo(f"palmette-lab run: ended after {timeout:g} s, its time limit; raise it with --timeout", err=True)
    click.get_current_context().exit(done.returncode)


@click.command(
    "exec",
    short_help="Run a command on one host.",
    epilog="Example: palmette-lab exec h0 ip addr",
    context_settings={"max_content_width": 80, "ignore_unknown_options": True, "allow_interspersed_args": False},
)
@_name_option
@click.argument("host")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, required=True, metavar="COMMAND [ARGUMENTS]...")
def execute(name: str, host: str, argv: tuple[str, ...]) -> None:
    """Run a command on one HOST, on that of an aggregator, or on `login`."""
    with _errors_in_one_line():
        words = Lab.attach(name).exec_command(host, argv)
    os.execv(words[0], words)  # noqa: S606 - the terminal and its signals are the command's


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise CliError(f"--env {text}: expected NAME=VALUE")
    return name, value
