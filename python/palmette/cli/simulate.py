"""`palmette simulate`: collectives on clusters that you don't have, in simulated time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from palmette import _core
from palmette.bench.errors import BenchError
from palmette.bench.settings import BLOCKING
from palmette.bench.traffic import Traffic
from palmette.cli.common import CliError, emit_json, json_option
from palmette.simulate import simgrid
from palmette.simulate.cluster import Cluster, from_file, from_spec, from_stored, prepared, stored
from palmette.simulate.compare import Asked, Compared, closing_lines, compare, table_lines
from palmette.simulate.errors import SimulateError
from palmette.simulate.parameters import FILE, Parameters, read
from palmette.simulate.platform import platform_xml
from palmette.simulate.run import PALMETTE, SELECTORS, Job, background_of, make_job
from palmette.units import plural

EXAMPLE = "palmette simulate --platform gather-paper --collectives gather --sizes 64,1K"
MOST_RANKS = 16_384


@click.command("simulate", epilog=f"Example: {EXAMPLE}", context_settings={"max_content_width": 80})
@click.option("--machine", metavar="SPEC", help="A synthetic machine: 2leaf@3GB/s:4node@1.5GB/s:16core.")
@click.option("--topology", metavar="FILE", help="A topology.json instead, as `palmette discover` writes it.")
@click.option("--platform", metavar="NAME", help="A platform that palmette brings: see --list.")
@click.option("--ranks", type=click.IntRange(2, MOST_RANKS), help="Number of ranks; default: all places.")
@click.option("--placement", default="block", show_default=True, metavar="FORM,...",
              help="block, cyclic, random:SEED or a file with one host a line; several with commas.")  # fmt: skip
@click.option("--collectives", default="gather,allgather,allreduce", show_default=True, metavar="NAME,...")
@click.option("--sizes", default="64,1K,16K", show_default=True, metavar="BYTES,...", help="As in `palmette bench`.")
@click.option("--root", type=click.IntRange(0), default=0, show_default=True, help="The root rank.")
@click.option("--rivals", default=",".join(SELECTORS), show_default=True, metavar="NAME,...",
              help="SimGrid's selectors, or single algorithms of its MPI.")  # fmt: skip
@click.option("--uplink-share", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True,
              help="Share of the switches' uplinks that there is.")  # fmt: skip
@click.option("--traffic", metavar="FORM", help="Background as in `palmette bench`: alltoall[:half|:all][:SIZE].")
@click.option("--parameters", type=click.Path(), help="Another file of the simulator's parameters.")
@click.option("--cpu-limit", type=click.IntRange(1), default=120, show_default=True, metavar="SECONDS",
              help="Of CPU for each contender and collective.")  # fmt: skip
@click.option("--no-checks", is_flag=True, help="Don't compare the results byte for byte.")
@click.option("--write-platform", metavar="FILE", help="Write SimGrid's platform there and run nothing.")
@click.option("--list", "listed", is_flag=True, help="List the platforms that palmette brings.")
@json_option
def command(
    machine: str | None,
    topology: str | None,
    platform: str | None,
    ranks: int | None,
    placement: str,
    collectives: str,
    sizes: str,
    root: int,
    rivals: str,
    uplink_share: float,
    traffic: str | None,
    parameters: str | None,
    cpu_limit: int,
    no_checks: bool,
    write_platform: str | None,
    listed: bool,
    as_json: bool,
) -> None:
    """Run palmette and its rivals on a cluster that SimGrid simulates.

    The library that runs under MPI programs runs there as it is, without the memory that ranks of a host share. Times are
    simulated: two runs give the same ones, to the last digit.
    """
    if listed:
        _list(as_json)
        return
    try:
        values = read(Path(parameters)) if parameters is not None else read(FILE)
        cluster = prepared(_cluster(machine, topology, platform), values, uplink_share)
        if write_platform is not None:
            _write(cluster, values, write_platform, as_json)
            return
        smpirun = simgrid.find_smpirun()
        loads = [None, background_of(cluster, Traffic.parse(traffic))] if traffic is not None else [None]
        jobs = [make_job(cluster, form.strip(), ranks, load) for form in placement.split(",") for load in loads]
        if not 2 <= len(jobs[0].seats) <= MOST_RANKS:
            raise SimulateError(
                f"{cluster.name}: {len(jobs[0].seats):,} ranks; a simulation takes 2 to {MOST_RANKS:,}, see --ranks"
            )
        if root >= len(jobs[0].seats):
            raise SimulateError(f"--root {root}: the job has {len(jobs[0].seats)} ranks")
        names = _names(collectives)
        asked = Asked(
            jobs,
            names,
            _sizes(sizes, names),
            [name.strip() for name in rivals.split(",") if name.strip()],
            root,
            not no_checks,
            cpu_limit,
            min(2, os.cpu_count() or 1),
        )
        compared = _run(smpirun, asked, values)
    except (SimulateError, BenchError, _core.Error) as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(_document(smpirun, cluster, jobs[0], compared))
    else:
        click.echo(f"{cluster.name}: {plural(len(jobs[0].seats), 'rank')}, SimGrid {simgrid.version(smpirun)}\n")
        click.echo("\n".join(table_lines(compared)))
        click.echo()
        click.echo(
            "\n".join(line for long in closing_lines(compared) for line in click.wrap_text(long, 80).split("\n"))
        )
    own_trouble = any(trouble.contender == PALMETTE for trouble in compared.troubles)
    click.get_current_context().exit(1 if own_trouble else 0)


def _cluster(machine: str | None, topology: str | None, platform: str | None) -> Cluster:
    given = [name for name in (machine, topology, platform) if name is not None]
    if len(given) != 1:
        raise SimulateError(f"give one of --machine, --topology and --platform, for instance: {EXAMPLE}")
    if machine is not None:
        return from_spec(machine)
    return from_file(topology) if topology is not None else from_stored(platform or "")


def _names(text: str) -> list[str]:
    known = BLOCKING
    names = [name.strip() for name in text.split(",") if name.strip()]
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        raise SimulateError(f"--collectives: '{wrong[0] if wrong else ''}' is none of {', '.join(known)}")
    return list(dict.fromkeys(names))


def _sizes(text: str, collectives: list[str]) -> list[int]:
    sizes = sorted({_core.parse_size(size.strip()) for size in text.split(",")})
    adds = any(_core.is_reduction(_core.collective_of(name)) for name in collectives)
    odd = [size for size in sizes if size % 4]
    if adds and odd:
        raise SimulateError(f"--sizes: {odd[0]} is no multiple of 4, and reductions add up numbers of 4 bytes")
    if sizes[-1] > 1 << 30:
        raise SimulateError(f"--sizes: {sizes[-1]} is more than 1G")
    return sizes


def _run(smpirun: str, asked: Asked, values: Parameters) -> Compared:
    total = len(asked.jobs) * len(asked.collectives) * (1 + len(asked.rivals))
    count = 0

    def done(what: str) -> None:
        nonlocal count
        count += 1
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{count}/{total} simulations, last: {what}", nl=count == total, err=True)

    return compare(smpirun, asked, values, done)


def _document(smpirun: str, cluster: Cluster, job: Job, compared: Compared) -> dict[str, object]:
    return {
        "format": "palmette-simulation",
        "version": 1,
        "cluster": cluster.name,
        "ranks": len(job.seats),
        "simgrid": simgrid.version(smpirun),
        "cells": [cell.to_json() for cell in compared.cells],
        "troubles": [trouble.to_json() for trouble in compared.troubles],
    }


def _write(cluster: Cluster, values: Parameters, path: str, as_json: bool) -> None:
    text = platform_xml(cluster.topology, values)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SimulateError(f"can't write {path}: {error.strerror}; choose another file") from None
    if as_json:
        emit_json({"wrote": path, "hosts": len(cluster.hosts)})
    else:
        click.echo(f"wrote {path}: {plural(len(cluster.hosts), 'host')}")


def _list(as_json: bool) -> None:
    platforms = stored()
    if as_json:
        emit_json(platforms)
        return
    for name, entry in platforms.items():
        click.echo(click.style(name, bold=True))
        click.echo(click.wrap_text(f"{entry['sentence']} Source: {entry['source']}.", 80, "  ", "  "))
