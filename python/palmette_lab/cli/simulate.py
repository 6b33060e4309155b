"""`palmette-lab simulate`: collectives on clusters that you don't have, in simulated time."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click
from click.core import ParameterSource

from palmette import _core
from palmette.bench.settings import BLOCKING
from palmette.cli.common import CliError, WholeNumber, assignment, emit_json, json_option, sizes_option
from palmette.cli.duration import Seconds
from palmette.cli.level_names import note_levels
from palmette.files import write_text
from palmette.measure.errors import BenchError
from palmette.units import plural
from palmette_lab.simulate import simgrid
from palmette_lab.simulate.cluster import Cluster, from_file, from_spec, from_stored, notes_on, prepared, stored
from palmette_lab.simulate.compare import ComparisonRequest, ComparisonResult, compare
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.job import Job, background_of, make_job
from palmette_lab.simulate.kept import SimulationCache
from palmette_lab.simulate.page import write_comparison
from palmette_lab.simulate.parameters import FILE, Parameters, file_named, read
from palmette_lab.simulate.platform import platform_xml
from palmette_lab.simulate.results_page import results_page
from palmette_lab.simulate.run import PALMETTE, SELECTORS
from palmette_lab.simulate.sets import SimulatedSet, set_named, sets
from palmette_lab.simulate.table import closing_lines, load_json, load_notes, means_of, table_lines
from palmette_lab.traffic import Traffic

EXAMPLE = "palmette-lab simulate --platform gather-paper --collectives gather --sizes 64,1K"
MOST_RANKS = 16_384


@click.command("simulate", epilog=f"Example: {EXAMPLE}", context_settings={"max_content_width": 80})
@click.option("--machine", metavar="SPEC", help="A synthetic machine: 2leaf@3GB/s:4node@1.5GB/s:16core.")
@click.option("--topology", metavar="FILE", help="A topology.json instead, or what ibnetdiscover wrote.")
@click.option("--platform", metavar="NAME", help="A platform that palmette brings: see --list.")
@click.option("--ranks", type=WholeNumber(2, MOST_RANKS), help="Number of ranks; default: all places.")
@click.option(
    "--ppn", type=WholeNumber(1), default=1, show_default=True, help="Places a host, if the machine has none."
)
@click.option("--placement", default="block", show_default=True, metavar="FORM,...",
              help="block, cyclic, random:SEED or a file with one host a line; several with commas.")  # fmt: skip
@click.option("--collectives", default="gather,allgather,allreduce", show_default=True, metavar="NAME,...")
@sizes_option("64,1K,16K", "As in `palmette bench`.", "BYTES,...")
@click.option("--root", type=WholeNumber(0), default=0, show_default=True, help="The root rank.")
@click.option("--rivals", default=",".join(SELECTORS), show_default=True, metavar="NAME,...",
              help="SimGrid's selectors, or single algorithms of its MPI.")  # fmt: skip
@click.option("--uplink-share", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True,
              help="Share of the switches' uplinks that there is.")  # fmt: skip
@click.option("--traffic", metavar="FORM", help="Also simulate under load: alltoall[:half|:all][:SIZE].")
@click.option("--env", "assignments", multiple=True, metavar="K=V",
              help="Set a variable of palmette's: PALMETTE_FORCE=gather=linear (repeatable).")  # fmt: skip
@click.option(
    "--parameters",
    type=click.Path(),
    help="Another file of the simulator's parameters, or `servers`: hosts whose ranks share memory.",
)
@click.option("--cpu-limit", type=Seconds(1, whole=True), default="120s", show_default=True,
              help="Of CPU for each contender and collective, and for each size of which all ranks together have more"
              " than 256 MB.")  # fmt: skip
@click.option("--no-checks", is_flag=True, help="Don't compare the results byte for byte.")
@click.option(
    "--set",
    "set_name",
    metavar="NAME",
    help="A named comparison, see --list; collectives, placements, sizes, rivals and --cpu-limit can be overridden.",
)
@click.option("--keep", metavar="FOLDER", help="Keep each simulation there, and take from there those done before.")
@click.option("--write-results", metavar="FILE", help="Write the tables as a Markdown page.")
@click.option("--profile", metavar="DIR", help="Record palmette's part: every MPI call, summed (`palmette top DIR`).")
@click.option("--trace", metavar="DIR", help="The same, and the calls one by one.")
@click.option("--page", metavar="FILE", help="Write the page that `palmette bench` writes, too.")
@click.option("--write-platform", metavar="FILE", help="Write SimGrid's platform there and run nothing.")
@click.option("--list", "listed", is_flag=True, help="List the platforms and sets that palmette brings.")
@json_option
def command(
    machine: str | None,
    topology: str | None,
    platform: str | None,
    ranks: int | None,
    ppn: int,
    placement: str,
    collectives: str,
    sizes: str,
    root: int,
    rivals: str,
    uplink_share: float,
    traffic: str | None,
    assignments: tuple[str, ...],
    parameters: str | None,
    cpu_limit: int,
    no_checks: bool,
    set_name: str | None,
    keep: str | None,
    write_results: str | None,
    profile: str | None,
    trace: str | None,
    page: str | None,
    write_platform: str | None,
    listed: bool,
    as_json: bool,
) -> None:
    """Run palmette and its rivals on a cluster that SimGrid simulates.

    The preload library runs there unmodified; ranks of a host share memory with `--parameters servers`. Times are
    simulated and deterministic: two runs give the same ones, to the last digit.
    """
    if listed:
        _list(as_json)
        return
    try:
        named = _named(set_name) if set_name is not None else None
        values = read(file_named(parameters)) if parameters is not None else read(FILE)
        given = (machine, topology, platform) if named is None else _only_set(machine, topology, platform, ranks, named)
        read_cluster = _cluster(*given, ppn)
        cluster = prepared(read_cluster, values, uplink_share)
        notes = notes_on(read_cluster)
        if write_platform is not None:
            _write(write_platform, platform_xml(cluster.topology, values, cluster.mesh))
            _report_written(write_platform, cluster, notes, as_json)
            return
        smpirun = simgrid.find_smpirun()
        _check_folder(write_results)
        backgrounds = [None, background_of(cluster, Traffic.parse(traffic))] if traffic is not None else [None]
        forms = named.placements if named else _forms(placement)
        jobs = [make_job(cluster, form, ranks, other) for form in forms for other in backgrounds]
        _check_ranks(jobs, root)
        names = list(named.sizes_of) if named else _names(collectives)
        asked = ComparisonRequest(
            jobs,
            names,
            _sizes(sizes, names),
            named.rivals if named else _rivals(rivals),
            named.sizes_of if named else {},
            root,
            not no_checks,
            named.cpu_limit_s if named else cpu_limit,
            min(2, os.cpu_count() or 1),
            SimulationCache(Path(keep)) if keep is not None else None,
            _environment(assignments),
            _recording(profile, trace),
            named.rivals_from if named else {},
        )
        compared = _run(smpirun, asked, values)
        notes += [*compared.notes, *load_notes(compared.loads)]
        version = simgrid.version(smpirun)
        if write_results is not None:
            title = f"{cluster.name}, {_ranks_text(jobs)}, simulated"
            sentence = named.sentence if named else f"{', '.join(names)} on {cluster.name}."
            _write(write_results, results_page(title, sentence, _command_line("page"), version, compared))
        if page is not None:
            write_comparison(Path(page), jobs, compared, version, _command_line("write_results"))
    except (SimulateError, BenchError, _core.Error) as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(_document(version, jobs, notes, compared))
    else:
        click.echo(f"{cluster.name}: {_ranks_text(jobs)}, SimGrid {version}")
        for line in [*(f"note: {note}" for note in notes), "", *table_lines(compared, bool(asked.rivals)), ""]:
            click.echo(line if line.startswith(" ") else click.wrap_text(line, 80))
        for line in closing_lines(compared):
            click.echo(click.wrap_text(line, 80, subsequent_indent="  "))
    bad = any(one.contender == PALMETTE or one.text.startswith(simgrid.UNKNOWN) for one in compared.troubles)
    click.get_current_context().exit(1 if bad else 0)


def _named(name: str) -> SimulatedSet:
    """The set with its values overridden by the options that were given."""
    whole = set_named(name)
    collectives = _given("collectives") or list(whole.sizes_of)
    sizes = _sizes(",".join(_given("sizes")), collectives) if _given("sizes") else []
    part = whole.only(_given("collectives"), _given("placement"), sizes)
    if _given("rivals"):
        part = replace(part, rivals=_rivals(",".join(_given("rivals"))), rivals_from={})
    if _given("cpu_limit"):
        part = replace(part, cpu_limit_s=click.get_current_context().params["cpu_limit"])
    return part


def _forms(text: str) -> list[str]:
    """Placements, each once; hosts=A,B,... contains commas and can't be combined with others."""
    if text.strip().startswith("hosts="):
        return [text.strip()]
    forms = list(dict.fromkeys(form.strip() for form in text.split(",") if form.strip()))
    if not forms:
        raise SimulateError("--placement: name at least one, like block,random:1")
    return forms


def _rivals(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if PALMETTE in names:
        raise SimulateError("--rivals: palmette takes part anyway; name others, or none: --rivals none")
    if not names:
        raise SimulateError(f"--rivals: names nobody; give some of {', '.join(SELECTORS)}, or none: --rivals none")
    return [] if names == ["none"] else names


def _environment(assignments: Sequence[str]) -> dict[str, str]:
    environment = dict(map(assignment, assignments))
    for name in environment:
        if not name.startswith("PALMETTE_"):
            raise SimulateError(f"--env {name}: only palmette's variables mean something here, like PALMETTE_FORCE")
    return environment


def _recording(profile: str | None, trace: str | None) -> tuple[str, Path] | None:
    """The variable and the folder of a recording."""
    if profile is not None and trace is not None:
        raise SimulateError("--profile and --trace: give one of them; a trace holds the sums of a profile, too")
    if profile is None and trace is None:
        return None
    return ("PALMETTE_TRACE", Path(trace)) if trace is not None else ("PALMETTE_PROFILE", Path(profile or ""))


def _check_ranks(jobs: Sequence[Job], root: int) -> None:
    for job in jobs:
        ranks = len(job.seats)
        if not 2 <= ranks <= MOST_RANKS:
            raise SimulateError(
                f"{job.cluster.name}, {job.placement}: {plural(ranks, 'rank')}; a simulation takes 2 to {MOST_RANKS:,},"
                " see --ranks"
            )
        if root >= ranks:
            raise SimulateError(f"--root {root}: the job placed by {job.placement} has {plural(ranks, 'rank')}")


def _ranks_text(jobs: Sequence[Job]) -> str:
    """Jobs placed by files may have different numbers."""
    numbers = sorted({len(job.seats) for job in jobs})
    return plural(numbers[0], "rank") if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,} ranks"


def _check_folder(file: str | None) -> None:
    """Checked before hours of simulation, not after."""
    if file is not None and (not Path(file).parent.is_dir() or Path(file).is_dir()):
        raise SimulateError(f"can't write {file}: it is a folder, or in none that there is; choose another file")


def _given(option: str) -> list[str]:
    """Return the words of an option that was given, empty where it has its default."""
    context = click.get_current_context()
    if context.get_parameter_source(option) is not ParameterSource.COMMANDLINE:
        return []
    return [word.strip() for word in str(context.params[option]).split(",") if word.strip()]


def _only_set(
    machine: str | None, topology: str | None, platform: str | None, ranks: int | None, named: SimulatedSet
) -> tuple[None, None, str]:
    if machine or topology or platform or ranks:
        raise SimulateError(
            f"--set {named.name} brings its platform, with all ranks; leave out --machine, --topology, --platform and"
            " --ranks"
        )
    return None, None, named.platform


def _command_line(elsewhere: str) -> str:
    """Return the command as typed, but for `elsewhere`, an option for another place of the results."""
    context = click.get_current_context()
    words = ["palmette-lab", "simulate"]
    for option in context.command.params:
        name = option.name or ""
        if (
            name not in ("keep", "as_json", elsewhere)
            and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        ):
            value = context.params[name]
            for one in value if isinstance(value, tuple) else [value]:
                words += [option.opts[0]] if one is True else [option.opts[0], str(one)]
    return shlex.join(words)


def _cluster(machine: str | None, topology: str | None, platform: str | None, ppn: int) -> Cluster:
    given = [name for name in (machine, topology, platform) if name is not None]
    if len(given) != 1:
        raise SimulateError(f"give one of --machine, --topology and --platform, for instance: {EXAMPLE}")
    if machine is not None:
        note_levels(machine)
        return from_spec(machine, places=ppn)
    return from_file(topology, ppn) if topology is not None else from_stored(platform or "")


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


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _run(smpirun: str, asked: ComparisonRequest, values: Parameters) -> ComparisonResult:
    total = len(asked.runs())
    count = 0

    def done(what: str) -> None:
        nonlocal count
        count += 1
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{count}/{total} simulations, last: {what}", nl=count == total, err=True)

    if threading.current_thread() is not threading.main_thread():
        return compare(smpirun, asked, values, done)
    # SIGTERM, like Ctrl-C, ends the simulations, too.
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return compare(smpirun, asked, values, done)
    finally:
        signal.signal(signal.SIGTERM, before)


def _document(version: str, jobs: Sequence[Job], notes: Sequence[str], compared: ComparisonResult) -> dict[str, object]:
    params = click.get_current_context().params
    return {
        "format": "palmette-simulation",
        "version": 1,
        "cluster": jobs[0].cluster.name,
        "ranks": len(jobs[0].seats),
        "ranks_by_placement": {job.placement: len(job.seats) for job in jobs},
        "simgrid": version,
        "command": _command_line("page"),
        "root": params["root"],
        "uplink_share": params["uplink_share"],
        "traffic": params["traffic"],
        "loads": [load_json(load) for load in compared.loads],
        "parameters": params["parameters"] or FILE.name,
        "notes": list(notes),
        "means": [mean.to_json() for mean in means_of(compared.cells)],
        "cells": [cell.to_json() for cell in compared.cells],
        "troubles": [trouble.to_json() for trouble in compared.troubles],
    }


def _write(path: str, text: str) -> None:
    try:
        write_text(path, text)
    except OSError as error:
        raise SimulateError(f"can't write {path}: {error.strerror}; choose another file") from None


def _report_written(path: str, cluster: Cluster, notes: Sequence[str], as_json: bool) -> None:
    if as_json:
        emit_json({"wrote": path, "hosts": len(cluster.hosts), "notes": list(notes)})
        return
    click.echo(f"wrote {path}: {plural(len(cluster.hosts), 'host')}")
    for note in notes:
        click.echo(click.wrap_text(f"note: {note}", 80))


def _list(as_json: bool) -> None:
    platforms = stored()
    if as_json:
        emit_json({"platforms": platforms, "sets": {one.name: one.to_json() for one in sets()}})
        return
    for name, entry in platforms.items():
        click.echo(click.style(name, bold=True))
        click.echo(click.wrap_text(f"{entry['sentence']} Source: {entry['source']}.", 80, "  ", "  "))
    click.echo("\nsets, for --set:")
    for one in sets():
        click.echo(click.style(one.name, bold=True))
        click.echo(click.wrap_text(f"{one.sentence} Takes {one.takes} on two cores.", 80, "  ", "  "))
