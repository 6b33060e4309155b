"""`palmette doctor`: what palmette finds on this machine."""

from __future__ import annotations

import click
from rich.table import Table

from palmette.cli.common import console, emit_json, json_option
from palmette.doctor import Check, Findings, examine


@click.command(epilog="Example: palmette doctor --json")
@json_option
def command(as_json: bool) -> int:
    """Say what palmette finds on this machine.

    MPIs with versions and ABIs, the preload libraries, the topology in force,
    hwloc, whether a lab can be built, GPUs with NCCL and CUDA IPC. Status 1 when
    `palmette run` can't serve any program, or a setting is wrong.
    """
    findings = examine()
    if as_json:
        emit_json(findings.to_json())
    else:
        _print(findings)
    return 0 if findings.can_run else 1


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
    console.print(_checks("Preload libraries", findings.preloads))
    console.print()
    console.print(_checks("Around", findings.checks))
    console.print()
    console.print(_checks("GPUs", findings.devices))
    for mistake in findings.mistakes:
        console.print(f"\n{mistake}; `palmette settings` lists them all", markup=False)


def _checks(title: str, checks: list[Check]) -> Table:
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", show_header=False)
    table.add_column("name", no_wrap=True)
    table.add_column("ok", no_wrap=True)
    table.add_column("detail", overflow="fold")
    for check in checks:
        table.add_row(check.name, "yes" if check.ok else "no", check.detail)
    return table
