"""`palmette export`: the decision table as tuning files of MPI libraries, for runs without palmette."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from palmette import _core
from palmette.cli.common import CliError, Folder, WholeNumber, emit_json, json_option
from palmette.cli.job_options import job_on, make_machine, ppn_option
from palmette.export.make import FORMS, make_exports
from palmette.export.match import Export
from palmette.export.mpich_defaults import NoDefaultsError
from palmette.export.text import export_lines
from palmette.files import write_text
from palmette.mpi.install import MpiNotFoundError
from palmette.settings_files import value_in_force

EXAMPLE = "palmette export --format openmpi-tuned --topology topology.json --placement block -o tuning"


@click.command(context_settings={"max_content_width": 80}, epilog=f"Example: {EXAMPLE}")
@click.option(
    "--format",
    "form",
    type=click.Choice((*FORMS, "all")),
    required=True,
    metavar="FORM",
    help=f"{', '.join(FORMS)}, or all.",
)
@click.option("--topology", metavar="FILE", help="The cluster: topology.json.")
@click.option("--machine", metavar="SPEC", help="A synthetic machine instead: 2leaf:4node:2core.")
@click.option("--placement", metavar="FORM", help="block, cyclic, random:SEED, or a file with one host a line.")
@click.option("--hosts", metavar="A,B,...", help="The host of rank 0, 1, ... instead of a placement.")
@ppn_option
@click.option("--ranks", type=WholeNumber(1), help="Number of ranks; default: all places, or the hosts named.")
@click.option("--table", metavar="FILE", help="A decision table. [default: PALMETTE_TABLE, else the built-in one]")
@click.option("--commutative", is_flag=True, help="The program's own operations all commute: take more of Open MPI's.")
@click.option("-o", "--output", type=Folder(), metavar="DIR", help="Write there.")
@json_option
def command(
    form: str,
    topology: str | None,
    machine: str | None,
    placement: str | None,
    hosts: str | None,
    ppn: int | None,
    ranks: int | None,
    table: str | None,
    commutative: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write the decision table as tuning files of MPI libraries.

    For systems where nothing can be preloaded. Each algorithm is mapped to the closest one of the library; where there
    is none, the library's default stays, and this is reported. Without -o the files are printed. docs/guide/export.md
    describes the contents of each form.
    """
    try:
        job = _job(topology, machine, placement, hosts, ppn, ranks)
        exports = make_exports(FORMS if form == "all" else (form,), _table(table), job, commutative=commutative)
    except (_core.Error, MpiNotFoundError, NoDefaultsError) as error:
        raise CliError(str(error)) from None
    if output is not None:
        _write(exports, output)
    if as_json:
        emit_json({"ranks": job.size, "exports": [_as_json(export, output) for export in exports]})
        return
    blocks = ["\n".join(export_lines(export, output)) for export in exports]
    click.echo("\n\n".join(blocks))


def _job(
    topology: str | None,
    machine: str | None,
    placement: str | None,
    hosts: str | None,
    ppn: int | None,
    ranks: int | None,
) -> _core.Job:
    made = None if topology is not None and machine is not None else make_machine(machine, topology, ppn)
    if made is None:
        raise CliError(f"name the cluster with --topology or --machine, one of them; for instance: {EXAMPLE}")
    if placement is not None and hosts is not None:
        raise CliError("--placement and --hosts both say where ranks are; leave one of them out")
    return job_on(made, f"hosts={hosts}" if hosts else placement or "block", ranks)


def _table(path: str | None) -> _core.Table:
    chosen = path or value_in_force("PALMETTE_TABLE")
    return _core.Table.from_file(chosen) if chosen else _core.Table.built_in()


def _write(exports: Sequence[Export], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for export in exports:
            for name, text in export.files.items():
                write_text(folder / name, text)
    except OSError as error:
        raise CliError(f"can't write to {folder}: {error.strerror}; choose another folder with --output") from None


def _as_json(export: Export, folder: Path | None) -> dict[str, object]:
    return {
        "format": export.form,
        "library": export.library,
        "files": list(export.files),
        "texts": None if folder else export.files,
        "folder": str(folder) if folder else None,
        "environment": export.environment(folder or Path("DIR")),
        "decisions": [line.to_json() for line in export.lines],
        "notes": export.notes,
    }
