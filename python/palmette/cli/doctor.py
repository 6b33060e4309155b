"""`palmette doctor`: what palmette finds on this machine, or on the hosts of an allocation."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from palmette.cli.common import CliError, emit_json, json_option
from palmette.doctor import Check, Findings, examine
from palmette.doctor.here import LABELS
from palmette.present.table import aligned
from palmette.present.words import wrapped


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
    mpis = [
        (one.name, one.version, " ".join(one.abis), str(one.mpiexec)) if one.problem is None
        else (one.name, "-", "-", one.problem)
        for one in findings.mpis
    ]  # fmt: skip
    launchers: list[tuple[str, ...]] = [
        (one.word, f"{LABELS[one.kind]} {one.version}", str(one.path)) for one in findings.launchers
    ]
    sections: list[tuple[str, Sequence[Sequence[str]]]] = [
        ("MPIs", [("name", "version", "ABIs", "mpiexec"), *mpis]),
        ("In PATH", launchers or [("no mpiexec, mpirun, srun, flux or aprun",)]),
        ("Preload libraries", _checks(findings.preloads)),
        ("Around", _checks(findings.checks)),
        ("GPUs", _checks(findings.devices)),
        ("Settings that are no defaults", [(one.name, one.detail) for one in findings.settings]),
    ]
    for title, rows in sections:
        if rows:
            click.echo("\n".join([title, *aligned(rows, range(4)), ""]))
    for mistake in findings.mistakes:
        click.echo("\n".join(wrapped(mistake, whole_words=False)))
    click.echo(("\n" if findings.mistakes else "") + "\n".join(wrapped(findings.verdict, rest="")))


def _checks(checks: list[Check]) -> list[tuple[str, ...]]:
    return [(one.name, "yes" if one.ok else "no", one.detail) for one in checks]
