"""`palmette lab`: emulate a cluster on this machine."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich.table import Table

from palmette.cli.common import CliError, Whole, console, emit_json, json_option
from palmette.cli.duration import duration
from palmette.cli.job_options import placement_option
from palmette.cli.lab_here import be_root
from palmette.cli.level_names import note_levels
from palmette.cli.progress import Working
from palmette.lab import Lab, LabError, aggregators, build, state
from palmette.lab.lab import DEFAULT_LIFETIME_S, DEFAULT_NAME, DEFAULT_TIMEOUT_S
from palmette.lab.namespaces import check_can_build
from palmette.lab.running import TIMED_OUT
from palmette.measure.places import free_lab_name
from palmette.mpi import install as mpi_install
from palmette.mpi.launch import LaunchError
from palmette.topology.placement import PlacementError
from palmette.units import plural

_F = TypeVar("_F", bound=Callable[..., Any])


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except (LabError, LaunchError, PlacementError, mpi_install.MpiNotFoundError) as error:
        raise CliError(str(error)) from error


@contextmanager
def _lab(spec: str | None, name: str) -> Iterator[Lab]:
    """Give the lab called `name`, or one of `spec` that ends with the context."""
    if spec is None:
        yield Lab.attach(name)
        return
    if name != DEFAULT_NAME:
        raise CliError(f"--lab brings up a lab of its own, and --name {name} is another: give one of them")
    be_root()
    with Lab.up(spec, name=free_lab_name("run")) as lab:
        yield lab


def _name_option(function: _F) -> _F:
    return click.option(
        "--name", default=DEFAULT_NAME, show_default=True, help="Which lab, where several are up at once."
    )(function)


@click.group(
    epilog="Example: palmette lab run --lab 2leaf:2node:2core --mpi mpich -- ./app",
    context_settings={"max_content_width": 80},
)
def command() -> None:
    """Emulate a cluster on this machine: real MPI, real TCP, given link rates.

    Hosts are namespaces, switches are bridges. A lab that outlives its command needs root.
    """


@command.command(
    short_help="Build a cluster.",
    epilog='Example: palmette lab up "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core" --lifetime 20m',
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
        with Working(f"building the lab '{name}'"):
            lab = Lab.up(spec, name=name, spine_delay_s=spine_delay, lifetime_s=lifetime, detach=True)
    if as_json:
        emit_json(_describe(lab))
        return
    slots = sum(host.slots for host in lab.state.hosts)
    combined = f", {plural(len(lab.aggregators), 'aggregator')}" if lab.aggregators else ""
    click.echo(f"lab '{name}' is up: {plural(len(lab.hosts), 'host')}, {plural(slots, 'slot')}{combined}")
    click.echo(f"topology: {lab.topology_path}")


@command.command(epilog="Example: palmette lab down --all", context_settings={"max_content_width": 80})
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


@command.command(
    epilog="Example: palmette lab run --mpi mpich --placement cyclic -n 8 -- ./app",
    context_settings={"max_content_width": 80, "ignore_unknown_options": True},
)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- PROGRAM [ARGUMENTS]...")
@click.option("--lab", "lab_spec", metavar="SPEC", help="Bring up this cluster for the run alone, also without root.")
@_name_option
@click.option("--mpi", required=True, type=click.Choice(list(mpi_install.NAMES)), help="Which MPI starts it.")
@placement_option()
@click.option("--ppn", type=Whole(1), help="Slots a host, instead of the machine's.")
@click.option("-n", "ranks", type=Whole(1), help="Number of ranks; default: all slots.")
@click.option("--env", "assignments", multiple=True, metavar="K=V", help="Set a variable in the ranks (repeatable).")
@click.option("--option", "options", multiple=True, metavar="WORD", help="Pass a word on to mpiexec (repeatable).")
@click.option("--timeout", default=f"{DEFAULT_TIMEOUT_S / 60:g}m", show_default=True, callback=duration, metavar="TIME",
              help="End the job after this time.")  # fmt: skip
@click.option("--print", "only_print", is_flag=True, help="Show the command, don't run it.")
@json_option
def run(
    argv: tuple[str, ...],
    lab_spec: str | None,
    name: str,
    mpi: str,
    placement: str,
    ppn: int | None,
    ranks: int | None,
    assignments: tuple[str, ...],
    options: tuple[str, ...],
    timeout: float,
    only_print: bool,
    as_json: bool,
) -> None:
    """Run an MPI program on the cluster.

    The exit status is mpiexec's, or 124 at the time limit. With --json the output is captured and printed at the end.
    """
    env = dict(_assignment(text) for text in assignments)
    with _errors_in_one_line(), _lab(lab_spec, name) as lab:
        hosts = lab.place(placement, ppn=ppn, ranks=ranks)
        if only_print:
            words = lab.command(mpi, hosts, argv, env, options)
            if as_json:
                emit_json({"command": words, "hosts": hosts})
            else:
                click.echo(shlex.join(words))
            return
        started = time.monotonic()
        done = lab.run(
            argv,
            mpi=mpi,
            placement=placement,
            ppn=ppn,
            ranks=ranks,
            env=env,
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
        click.echo(f"palmette lab run: ended after {timeout:g} s, its time limit; raise it with --timeout", err=True)
    click.get_current_context().exit(done.returncode)


@command.command(
    "exec",
    short_help="Run a command on one host.",
    epilog="Example: palmette lab exec h0 ip addr",
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


@command.command(epilog="Example: palmette lab status", context_settings={"max_content_width": 80})
@_name_option
@json_option
def status(name: str, as_json: bool) -> None:
    """Show hosts, aggregators, addresses, rates and uptime.

    Status 1 when the lab is not up.
    """
    directory = state.lab_directory(name)
    found = state.read_state(directory)
    if found is None or not found.is_alive():
        if as_json:
            emit_json({"name": name, "up": False})
        else:
            left = "; `palmette lab down` removes what a dead one left" if directory.exists() else ""
            click.echo(f"the lab '{name}' is not up{left}")
        click.get_current_context().exit(1)
    with _errors_in_one_line():
        lab = Lab.attach(name)
    if as_json:
        emit_json(_describe(lab))
    else:
        _print(lab)


def _describe(lab: Lab) -> dict[str, object]:
    """Return what `--json` prints of a lab."""
    known = lab.state
    directory = state.lab_directory(known.name)
    return {
        "name": known.name,
        "up": True,
        "spec": known.spec,
        "spine_delay_s": known.spine_delay_s,
        "uptime_s": lab.uptime_s,
        "lifetime_s": known.lifetime_s,
        "keeper_pid": known.keeper_pid,
        "topology": str(lab.topology_path),
        "hosts": [{"name": host.name, "address": host.address, "slots": host.slots} for host in known.hosts],
        "ports": lab.ports,
        "aggregators": [
            {
                "name": one.name,
                "switch": one.switch,
                "address": f"{one.address}:{aggregators.PORT}",
                "pid": lab.daemon_pid(one.name),
                "status": str(aggregators.status_path(directory, one.name)),
                "log": str(aggregators.log_path(directory, one.name)),
            }
            for one in known.aggregators
        ],
        "aggregator_token": str(lab.token_path) if lab.token_path else None,
        "link_bits_per_s": known.rates,
        "limits": known.limits,
    }


def _print(lab: Lab) -> None:
    known = lab.state
    delay = f", top switch delays {known.spine_delay_s * 1e3:g} ms" if known.spine_delay_s else ""
    left = max(0.0, known.lifetime_s - lab.uptime_s)
    click.echo(f"lab '{known.name}': {known.spec}{delay}")
    for limit in known.limits:
        click.echo(f"limited: {limit}")
    click.echo(f"up for {lab.uptime_s:.0f} s, ends by itself in {left:.0f} s; topology: {lab.topology_path}")
    table = Table(box=None, pad_edge=False)
    for heading in ("host", "address", "slots", "link", "behind"):
        table.add_column(heading)
    for host, path in zip(known.hosts, lab.paths(), strict=True):
        behind = " < ".join(f"{group} ({_rate(known.rates.get(group))})" for group in path)
        table.add_row(host.name, host.address, str(host.slots), _rate(known.rates.get(host.name)), behind)
    console.print(table)
    if known.aggregators:
        _print_aggregators(lab)


def _print_aggregators(lab: Lab) -> None:
    known = lab.state
    table = Table(box=None, pad_edge=False)
    for heading in ("aggregator", "address", "link", "at", "daemon"):
        table.add_column(heading)
    for one in known.aggregators:
        pid = lab.daemon_pid(one.name)
        daemon = f"process {pid}" if pid is not None else "has ended"
        address = f"{one.address}:{aggregators.PORT}"
        table.add_row(one.name, address, _rate(known.rates.get(one.name)), one.switch, daemon)
    console.print()
    console.print(table)
    console.print(f"logs, status sockets: {state.lab_directory(known.name)}", markup=False)


def _rate(bits_per_s: float | None) -> str:
    if bits_per_s is None:
        return "unlimited"
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6)):
        if bits_per_s >= factor:
            return f"{bits_per_s / factor:.4g} {unit}"
    return f"{bits_per_s / 1e3:.4g} kbit/s"


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise CliError(f"--env {text}: expected NAME=VALUE")
    return name, value
