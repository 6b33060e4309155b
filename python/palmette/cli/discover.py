"""`palmette discover`: how a cluster is wired, from files and tools, into topology.json."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Mapping
from typing import Any

import click

from palmette.cli.common import CliError, emit_json, json_option
from palmette.cli.level_names import note_levels
from palmette.cli.measuring_job import JobRequest, one_line_errors
from palmette.cli.place import LineCommand, PlaceOptions, place_options, with_bare_line
from palmette.discover.report import insides_missing, level_table, summary
from palmette.discover.run import KINDS, discover
from palmette.measure.jobs import running
from palmette.settings_files import value_in_force
from palmette.topology.found import DiscoverError, SourceResult
from palmette.topology.model import Topology
from palmette.units import plural

MEASUREMENT = "measurement"
PROGRESS_S = 2.0
IN_FORCE = "the one in force"


class _FromCommand(LineCommand):
    """Lets --from take one or two words, `--from KIND [ARGUMENT]`, which click's options can't.

    A word after KIND that is no option is its argument; both become `KIND:ARGUMENT`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        joined: list[str] = []
        valued = {name for one in self.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts}
        while words:
            word = words.pop(0)
            if word == "--from" and joined and joined[-1] in valued:
                raise click.BadOptionUsage(joined[-1], f"Option '{joined[-1]}' requires an argument.", ctx)
            if word == "--from" and words:
                word = f"--from={words.pop(0)}"
            alone = word == f"--from={MEASUREMENT}"  # what follows is the job's line
            if word.startswith("--from=") and not alone and ":" not in word and words and _is_value(words[0]):
                word = f"{word}:{words.pop(0)}"
            joined.append(word)
        return super().parse_args(ctx, joined)


def _is_value(word: str) -> bool:
    return word == "-" or not word.startswith("-")


_KINDS_HELP = "\n".join(f"  {kind:<14} {what}" for kind, (_, what) in KINDS.items())


@click.command(
    "discover",
    cls=_FromCommand,
    help=(
        "Find out how a cluster is wired and write it to topology.json.\n\n"
        "--from may be repeated: the fabric comes from one source, the inside of its nodes from another. "
        "--from measurement runs a job: behind -- the line that starts your jobs.\n\n"
        f"\b\nKinds of source:\n{_KINDS_HELP}"
    ),
    context_settings={"allow_interspersed_args": False},
    epilog="Example: palmette discover --from ibnetdiscover fabric.txt --from hwloc",
)
@click.option("--from", "sources", multiple=True, metavar="KIND [ARGUMENT]", help="A source, also as KIND:ARGUMENT.")
@click.option(
    "-o",
    "--output",
    default=None,
    metavar="FILE",
    help="Where to write; - is the screen. [default: topology.json]",
)
@click.option(
    "--refresh",
    is_flag=False,
    flag_value=IN_FORCE,
    metavar="[FILE]",
    help="Read the sources of FILE again and replace it. [default: the one in force]",
)
@click.option("--name", default=None, help="Name of the cluster in the file.")
@place_options(local=None, topology=False)
@json_option
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="")
def command(
    sources: tuple[str, ...],
    output: str | None,
    refresh: str | None,
    name: str | None,
    where: PlaceOptions,
    as_json: bool,
    command_line: tuple[str, ...],
) -> None:
    """Discover, write the file, print the summary; the help text is above, because it lists the kinds."""
    if refresh is not None:
        if sources or command_line or name or where.named or where.abi:
            raise CliError("--refresh reads the sources that the file names; leave out all but -o and --json")
        _refresh(refresh, output, as_json)
        return
    output = "topology.json" if output is None else output
    if not sources:
        raise CliError("no source given; for instance: palmette discover --from ibnetdiscover FILE -o topology.json")
    if as_json and output == "-":
        raise CliError("--json and -o - both want the screen; leave one of them out")
    kinds = [_split(source) for source in sources]
    for kind, argument in kinds:
        if kind == "synthetic" and argument:
            note_levels(argument)
    where = with_bare_line(where, command_line)
    if where.named and (MEASUREMENT, None) not in kinds:
        raise CliError(f"only --from {MEASUREMENT} runs a job; leave out {where.named[0]}, or say so")
    asked = JobRequest(where)
    try:
        ready = {MEASUREMENT: _measure(asked)} if (MEASUREMENT, None) in kinds else {}
        topology = discover(kinds, name, ready)
    except DiscoverError as error:
        raise CliError(str(error)) from None
    _put(topology, output, as_json)


def _put(topology: Topology, output: str, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    """Write the file and print the summary."""
    from palmette.discover.refresh import with_absolute_sources

    written = with_absolute_sources(topology)
    if output == "-":
        text = io.StringIO()
        written.write(text)
        click.echo(text.getvalue(), nl=False)
        click.echo("\n".join(summary(topology, None)), err=True)
        return
    try:
        written.save(output)
    except OSError as error:
        raise CliError(f"can't write {output}: {error.strerror}; choose another file with -o") from None
    if as_json:
        emit_json({**_as_json(written, output), **(more or {})})
    else:
        click.echo("\n".join(summary(topology, output)))


def _refresh(given: str, output: str | None, as_json: bool) -> None:
    """Read a file's sources again; the file stays as it is where nothing has changed."""
    from palmette.discover.refresh import refresh

    path = given
    if given == IN_FORCE:
        path = value_in_force("PALMETTE_TOPOLOGY") or "topology.json"
    if as_json and output == "-":
        raise CliError("--json and -o - both want the screen; leave one of them out")
    try:
        found = refresh(path)
    except DiscoverError as error:
        raise CliError(str(error)) from None
    told = {"changed": found.changed, "new_hosts": found.new_hosts, "gone_hosts": found.gone_hosts}
    if found.changed or output is not None:
        _put(found.topology, output or path, as_json, {**told, "remarks": found.remarks})
    elif as_json:
        emit_json({**_as_json(found.topology, path), **told, "remarks": found.remarks})
    if not as_json:
        click.echo(f"{path}: {found.sentence()}", err=output == "-")
        for remark in found.remarks:
            click.echo(f"{path}: {remark}", err=True)


def _measure(asked: JobRequest) -> SourceResult:
    """Run the job and group its hosts. Raises CliError, DiscoverError."""
    from palmette.discover.measurement import discover_measurement  # SciPy takes longer to load than a file to read

    reported = time.monotonic()

    def report(pairs: int, hosts: int) -> None:
        nonlocal reported
        if time.monotonic() - reported > PROGRESS_S:
            reported = time.monotonic()
            click.echo(f"palmette discover: {plural(hosts, 'host')}, {plural(pairs, 'pair')} measured so far", err=True)

    with one_line_errors(), asked.job() as (job, _):
        click.echo(f"palmette discover: {job.description}", err=True)
        with running(job) as session:
            return discover_measurement(session, session.job, report)


def _split(source: str) -> tuple[str, str | None]:
    kind, colon, argument = source.partition(":")
    return kind, argument if colon else None


def _as_json(topology: Topology, output: str) -> dict[str, Any]:
    document = topology.to_json()
    return {
        "output": os.fspath(output),
        "name": topology.name,
        "hosts": sum(1 for _ in topology.machine.tree.hosts()),
        "levels": level_table(topology),
        "insides": document["machine"]["insides"],
        "insides_missing": insides_missing(topology),
        "unnamed_adapters": len(topology.fabric.unnamed_adapters) if topology.fabric else 0,
        "sources": document["sources"],
        "left_out": document["left_out"],
        "warnings": document["warnings"],
    }
