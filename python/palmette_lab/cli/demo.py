"""`palmette demo`: topology, benchmark and report page on this machine, in a few minutes."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from textwrap import wrap

import click

from palmette.bench import recorded
from palmette.bench.evaluate import evaluate
from palmette.bench.results import Run
from palmette.bench.settings import Settings
from palmette.bench.store import open_store
from palmette.bench.text import MPI_NAMES, size_text, summary_lines
from palmette.bench_page.page import write_page
from palmette.cli import installations
from palmette.cli.bench_collectives import run_with_progress
from palmette.cli.bench_show import show_run, table_blocks
from palmette.cli.common import CliError, Folder, json_option
from palmette.cli.place_errors import one_line_errors
from palmette.discover.run import discover
from palmette.measure.places import LocalPlace, Place
from palmette.mpi import install as mpi_install
from palmette.show.svg import svg
from palmette.show.text import tree_text
from palmette.topology import file as topology_file
from palmette.topology.found import DiscoverError
from palmette.topology.model import Topology
from palmette_lab.cli.here import be_root
from palmette_lab.lab import Lab, LabError, user_namespace
from palmette_lab.place import LabPlace, free_lab_name
from palmette_lab.sets import LAB

PLACEMENT = "random:1"


@click.command(
    "demo", epilog="Example: palmette-lab demo --folder first-look", context_settings={"max_content_width": 80}
)
@click.option(
    "--folder",
    type=Folder(),
    default=Path("demo"),
    show_default=True,
    help="Where topology, picture, samples and page go.",
)
@click.option("--mpi", type=click.Choice(list(mpi_install.NAMES)), help="Which MPI. [default: the first installed]")
@click.option("--local", is_flag=True, help="Local ranks, also where a cluster could be emulated.")
@click.option("--profile", is_flag=True, help="Record a small program instead, and show where its time goes.")
@json_option
def command(folder: Path, mpi: str | None, local: bool, profile: bool, as_json: bool) -> None:
    """Run a demonstration on this machine.

    Emulates a cluster of 8 hosts behind 3 leaf switches, writes down how it is wired, runs a benchmark program with and
    without palmette on scattered ranks, and leaves a page. Needs no root where users may make namespaces; where nothing
    can be emulated, takes local ranks, and shows what was recorded on another machine, too.

    With --profile a program of four local ranks with known troubles is recorded, and a page shows where its time goes;
    this needs no root.
    """
    started = time.monotonic()

    def say(text: str = "") -> None:
        click.echo(text, err=as_json)

    if profile and local:
        raise CliError("--profile always takes local ranks; leave out --local")
    if profile:
        from palmette_lab.cli.demo_profile import demonstrate

        with one_line_errors():
            _make(folder)
            demonstrate(folder, mpi or installations.chosen(None)[0].name, say, as_json=as_json)
        return
    with one_line_errors():
        if mpi is None:
            mpi = installations.chosen(None)[0].name
        _make(folder)
        with ExitStack() as stack:
            place, reason = _place(stack, local=local)
            say("1. The machine")
            for line in _machine_lines(place, reason):
                say(line)
            say("\n2. How it is wired")
            topology = _topology(place)
            _write_topology(folder, topology)
            say("\n".join(tree_text(topology)))
            settings = _settings(mpi, local=bool(reason))
            sizes = ", ".join(map(size_text, settings.sizes))
            say(f"\n3. {', '.join(settings.collectives)} of {sizes}, with and without palmette")
            ranks = len(place.place(settings.placements[0], None, None))
            where = "" if reason else f" scattered over the hosts ({PLACEMENT})"
            say(f"   {MPI_NAMES[mpi]}, {ranks} ranks{where}; about half a minute\n")
            store = folder / "runs.sqlite"
            with open_store(store, create=True) as kept:
                run = run_with_progress(settings, place, kept)
        rows = evaluate(run)
        page = folder / "report.html"
        write_page(page, run, rows)
    show_run(run, rows, store, page, as_json=as_json)
    _check(run)
    if reason and not local:
        _show_recorded(folder, as_json=as_json)
    say(f"\nDone in {time.monotonic() - started:.0f} s. Open {page}. Next:")
    for line in _next(folder, bool(reason)):
        say(f"  {line}")


def _machine_lines(place: Place, reason: str) -> list[str]:
    if not reason:
        within = " within a user namespace of yours" if user_namespace.OUTER_TMPDIR in os.environ else ""
        return [
            f"   an emulated cluster: {LAB}",
            f"   hosts are network namespaces{within};",
            "   3 leaf switches, real TCP at these link rates",
        ]
    return [
        *wrap(f"{place.description}, no emulated cluster: {reason}", 79, initial_indent="   ", subsequent_indent="   "),
        "   Without links there is no wiring to fit: placements, what crosses which link",
        "   and the physical bound can't be shown, and there is nothing to win.",
    ]


def _place(stack: ExitStack, *, local: bool) -> tuple[Place, str]:
    """Return a lab and "", or local ranks and why there is no lab."""
    reason = "asked for with --local"
    if not local:
        try:
            be_root()
            return LabPlace(stack.enter_context(Lab.up(LAB, name=free_lab_name("demo")))), ""
        except LabError as error:
            reason = str(error)
    cores = len(os.sched_getaffinity(0))
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="palmette-demo-"))
    return LocalPlace(max(2, min(4, cores)), Path(directory)), reason


def _show_recorded(folder: Path, *, as_json: bool) -> None:
    """Show the run that the package brings, and write its page."""
    run = recorded.read()
    rows = evaluate(run)
    page = folder / "recorded.html"
    with one_line_errors():
        write_page(page, run, rows)
    machine = run.machine
    about = (
        f"Recorded, not measured here: {run.place}; {run.started[:10]}, {machine['cpu']}, {machine['cores']} cores,"
        f" {machine['system']}, {machine['kernel']}, palmette {machine['palmette']}"
    )
    lines = ["", *wrap(about, 79), ""]
    lines += [line for block in table_blocks(rows) for line in (*block, "")]
    click.echo("\n".join([*lines, *summary_lines(run, rows), f"page: {page}"]), err=as_json)


def _settings(mpi: str, *, local: bool) -> Settings:
    return Settings(
        collectives=("gather", "allgather", "bcast", "reduce", "allreduce"),
        sizes=(64, 16384, 32768),
        placements=("block",) if local else (PLACEMENT,),
        mpis=(mpi,),
        seconds=0.5,
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CliError(f"can't make the folder {folder}: {error.strerror}; choose another with --folder") from None


def _topology(place: Place) -> Topology:
    """Return the lab's own description, or what hwloc finds on this node."""
    if place.topology_path is not None:
        return topology_file.load(place.topology_path)
    try:
        return discover([("hwloc", None)], None)
    except DiscoverError as error:
        raise CliError(str(error)) from None


def _write_topology(folder: Path, topology: Topology) -> None:
    try:
        topology.save(folder / "topology.json")
        (folder / "topology.svg").write_text(svg(topology), encoding="utf-8")
    except OSError as error:
        raise CliError(f"can't write to {folder}: {error.strerror}; choose another folder with --folder") from None


def _check(run: Run) -> None:
    failed = [job for job in run.jobs if job.error]
    if failed:
        raise CliError(f"the job failed: {failed[0].error}", status=1)


def _next(folder: Path, local: bool) -> list[str]:
    topology = folder / "topology.json"
    own = [
        "palmette discover --from ibnetdiscover fabric.txt   # your wiring",
        "palmette run --topology topology.json mpiexec -n 64 ./app      # your program",
    ]
    if local:
        return own
    lab = [
        f"palmette plan gather --topology {shlex.quote(str(topology))} --placement {PLACEMENT}",
        "palmette-lab bench allreduce --mpi all --page report.html",
    ]
    return lab + own
