"""`palmette doctor`: what palmette finds on this machine, or on the hosts of an allocation."""

from __future__ import annotations

import sys

import click
from rich.table import Table

from palmette.cli.common import CliError, console, emit_json, json_option
from palmette.doctor import Check, Findings, examine
from palmette.doctor.here import LABELS


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: palmette doctor --site -- mpiexec -n 16 -ppn 1",
)
@click.option("--site", is_flag=True, help="Compare the hosts on which LAUNCHER starts processes.")
@json_option
@click.argument("launcher", nargs=-1, type=click.UNPROCESSED, metavar="[LAUNCHER [OPTIONS]...]")
def command(site: bool, as_json: bool, launcher: tuple[str, ...]) -> int:
    """Say what palmette finds on this machine.

    MPIs with versions and ABIs, launchers of PATH, the preload libraries, the
    topology in force, hwloc, GPUs with NCCL and CUDA IPC, settings with their
    origin, and in the last line what to do next. Status 1 when `palmette run`
    can't serve any program, or a setting is wrong.

    With --site a small program is started by LAUNCHER, once a host or more often,
    and what differs between the hosts is shown: settings, files, libraries, limits,
    kernel. Status 1 where that keeps jobs from being served.
    """
    if site:
        return _site(launcher, as_json)
    if launcher:
        raise CliError(f"{launcher[0]}: only --site starts something; say palmette doctor --site -- {launcher[0]} ...")
    findings = examine()
    if as_json:
        emit_json(findings.to_json())
    else:
        _print(findings)
    return 0 if findings.can_run else 1


def _site(launcher: tuple[str, ...], as_json: bool) -> int:
    from palmette.cli.doctor_site import site_lines
    from palmette.doctor.site import SiteError, ask, compare

    if not launcher:
        raise CliError("--site needs the line that starts a job, without a program: --site -- mpiexec -n 16 -ppn 1")
    if sys.stderr.isatty():
        click.echo(f"palmette doctor: asking the hosts by {' '.join(launcher)}", err=True)
    try:
        findings = compare(ask(launcher))
    except SiteError as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(findings.to_json())
    else:
        click.echo("\n".join(site_lines(findings)))
    return 0 if findings.ok else 1


def _print(findings: Findings) -> None:
    table = Table(box=None, pad_edge=False, title="MPIs", title_justify="left")
    for heading in ("name", "version", "ABIs", "mpiexec"):
        table.add_column(heading, overflow="fold")
    for mpi in findings.mpis:
        if mpi.problem is None:
            table.add_row(mpi.name, mpi.version, " ".join(mpi.abis), mpi.mpiexec)
        else:
            table.add_row(mpi.name, "-", "-", mpi.problem)
    console.print(table)
    console.print()
    console.print(_launchers(findings))
    console.print()
    console.print(_checks("Preload libraries", findings.preloads))
    console.print()
    console.print(_checks("Around", findings.checks))
    console.print()
    console.print(_checks("GPUs", findings.devices))
    if findings.settings:
        console.print()
        console.print(_checks("Settings that are no defaults", findings.settings, marked=False))
    if findings.mistakes:
        console.print()
    for mistake in findings.mistakes:
        console.print(mistake, markup=False)
    console.print(f"\n{findings.verdict}", markup=False)


def _launchers(findings: Findings) -> Table:
    """Which MPI a launcher's name stands for, as `palmette run` takes it."""
    table = Table(box=None, pad_edge=False, title="In PATH", title_justify="left", show_header=False)
    table.add_column("word", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("path", overflow="fold")
    for one in findings.launchers:
        table.add_row(one.word, f"{LABELS[one.kind]} {one.version}", one.path)
    if not findings.launchers:
        table.add_row("no mpiexec, mpirun, srun, flux or aprun", "", "")
    return table


def _checks(title: str, checks: list[Check], *, marked: bool = True) -> Table:
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", show_header=False)
    table.add_column("name", no_wrap=True)
    if marked:
        table.add_column("ok", no_wrap=True)
    table.add_column("detail", overflow="fold")
    for check in checks:
        table.add_row(check.name, *(["yes" if check.ok else "no"] if marked else []), check.detail)
    return table
