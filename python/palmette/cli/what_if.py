"""`palmette what-if`: what a recorded job would take with other algorithms, another placement or another network."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palmette import _core
from palmette.cli.common import CliError, emit_json, json_option, write_file
from palmette.cli.printable import printable
from palmette.cli.progress import ActivityLine
from palmette.present.table import Column, Table
from palmette.present.words import wrapped
from palmette.units import plural

if TYPE_CHECKING:
    from palmette.record.machine import Seats
    from palmette.record.reading import Job
    from palmette.record.what_if import Expected

EXAMPLE = "palmette what-if trace --force allreduce=recursive_doubling"
FILE = click.Path(path_type=Path, dir_okay=False)
MOST_RANKS = 3
GIVE_MACHINE = "give --topology topology.json (`palmette discover` makes it, `palmette calibrate` measures its costs)"


@click.command("what-if", epilog=f"Example: {EXAMPLE}", context_settings={"max_content_width": 80})
@click.argument("folder", metavar="RECORDING", type=click.Path(path_type=Path))
@click.option("--ideal", is_flag=True, help="Communication takes no time; who waits for whom stays.")
@click.option(
    "--bound", is_flag=True, help="Collectives take what links and memory need at least; the fullest link is full."
)
@click.option("--force", "forced", multiple=True, metavar="COLLECTIVE=SPEC", help="An algorithm. Repeatable.")
@click.option("--table", type=FILE, metavar="FILE", help="A decision table chooses.")
@click.option(
    "--placement", metavar="FORM", help="auto: the best that is found; block, cyclic, random:SEED, hosts=... or a file."
)
@click.option("--network", type=FILE, metavar="FILE", help="Another network: its topology.json.")
@click.option(
    "--topology", type=FILE, metavar="FILE", help="topology.json of the run, where none was kept with the trace."
)
@click.option("--hosts", metavar="A,B,...", help="The run's host of rank 0, 1, ..., where others are meant.")
@click.option(
    "--write", "written", multiple=True, metavar="KIND=FILE",
    help="Write the placement for a launcher, as `palmette map --write`. Repeatable.",
)  # fmt: skip
@json_option
def command(
    folder: Path,
    ideal: bool,
    bound: bool,
    forced: tuple[str, ...],
    table: Path | None,
    placement: str | None,
    network: Path | None,
    topology: Path | None,
    hosts: str | None,
    written: tuple[str, ...],
    as_json: bool,
) -> None:
    """Tell what a recorded job would take if its communication were another.

    RECORDING is the folder of `palmette run --trace`. Its calls are replayed: computation and who waits for whom stay
    as they were, calls take what the model says of other algorithms, places or links. What is changed can be combined.
    """
    from palmette.map.errors import MapError
    from palmette.record.reading import RecordError

    asked = _Request(
        folder, "ideal" if ideal else "bound" if bound else "", _force(forced), table, placement, network, topology,
        hosts.split(",") if hosts else None, _files(written, placement),
    )  # fmt: skip
    if ideal + bound + bool(forced or table or placement or network) != 1:
        raise CliError(
            "say what is to be different: --ideal, --bound, or some of --force, --table, --placement and --network; "
            f"for instance: {EXAMPLE}"
        )
    try:
        answer = _answer(asked)
    except (RecordError, MapError, _core.Error) as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(_document(answer))
    else:
        click.echo("\n".join(_lines(answer)))


@dataclass(frozen=True)
class _Request:
    folder: Path
    costs: str
    """ideal, bound, or empty: what follows."""
    force: dict[str, str]
    table: Path | None
    placement: str | None
    network: Path | None
    topology: Path | None
    hosts: list[str] | None
    files: list[tuple[str, str]]
    """Kind and name of launchers' files."""

    @property
    def what(self) -> str:
        """The change in a few words."""
        if self.costs:
            return {
                "ideal": "communication takes no time",
                "bound": "communication takes what links and memory need at least",
            }[self.costs]
        parts = [f"placement {self.placement}"] if self.placement else []
        parts += [f"the network of {self.network}"] if self.network else []
        parts += [f"{name} by {spec}" for name, spec in self.force.items()]
        return ", ".join(parts + ([f"table {self.table}"] if self.table else []))


@dataclass
class _Answer:
    """What is expected, of which change, and what makes it so."""

    job: Job
    what: str
    expected: Expected
    next: str
    notes: list[str]


def _answer(asked: _Request) -> _Answer:
    from palmette.analysis import Trace

    with ActivityLine("reading the recording") as working:
        trace = Trace(asked.folder, topology=asked.topology, hosts=asked.hosts)
        job, seats = trace.job, trace.seats
        if not trace.has_calls:
            raise CliError(
                f"{asked.folder}: a profile has no single calls to replay; record with `palmette run --trace DIR`"
            )
        if asked.costs:
            working.now(f"replaying {job.size:,} ranks")
            expected = trace.ideal() if asked.costs == "ideal" else trace.bound()
            more = f"palmette report {shlex.quote(str(asked.folder))}"
            notes = [trace.missing] if trace.missing and asked.costs == "bound" else []
            return _Answer(job, asked.what, expected, more, notes + expected.notes)
        if seats is None or (not seats.is_known and (asked.placement or asked.network)):
            raise CliError(
                f"the run's machine isn't known; {GIVE_MACHINE}"
                + (f": {trace.missing}" if trace.missing and seats is None else "")
            )
        machine_file = asked.network or trace.machine_file
        placed, notes = None, _assumed(seats, trace.missing)
        if machine_file is not None and (asked.placement or asked.network):
            working.now("looking for the best placement" if asked.placement == "auto" else "placing the ranks")
            placed, told = trace.placement(asked.placement or "", asked.network)
            _write(asked.files, placed)
            notes += told
        working.now(f"replaying {job.size:,} ranks")
        expected = trace.what_if(force=asked.force, table=asked.table, placed=placed)
    return _Answer(job, asked.what, expected, _next(job, machine_file, asked), notes + expected.notes)


def _assumed(seats: Seats, missing: str) -> list[str]:
    """Return what of the machine's costs is assumed, as `palmette plan --predict` assumes it."""
    if not seats.is_known:
        return [f"of the run's machine nodes alone are known, so that all costs are assumed; {GIVE_MACHINE}"]
    notes = [missing] if missing else []
    if all(one.provenance == "assumed" for one in _core.Costs.of(seats.job).assumptions(seats.job)):
        notes.append(
            "all costs of this machine are assumed (`palmette plan --predict` lists them); `palmette calibrate`"
            " measures them"
        )
    return notes


def _next(job: Job, machine_file: Path | None, asked: _Request) -> str:
    """Return the command that makes it so."""
    from palmette.map.writers import WRITERS

    if asked.placement and not asked.files:
        return f"palmette {' '.join(map(shlex.quote, sys.argv[1:]))} --write hydra=map.hydra"
    options = ["--topology", str(machine_file)] if machine_file is not None else []
    for name, spec in asked.force.items():
        options += ["--force", f"{name}={spec}"]
    options += ["--table", str(asked.table)] if asked.table else []
    started = f"mpiexec -n {job.size} ./app"
    if asked.files:
        kind, file = asked.files[0]
        started = WRITERS[kind].usage.format(file=shlex.quote(file), ranks=job.size)
    return f"palmette run {shlex.join(options)} {started}"


def _force(forced: tuple[str, ...]) -> dict[str, str]:
    from palmette.record.functions import COLLECTIVES

    known = {(row.collective, row.name) for row in _core.algorithms()}
    found = {}
    for text in forced:
        name, equals, spec = text.partition("=")
        if not equals or name not in COLLECTIVES:
            raise CliError(f"--force {text}: give COLLECTIVE=SPEC, for instance allreduce=recursive_doubling")
        collective = _core.collective_of(name)
        if (collective, spec.partition(":")[0]) not in known:
            raise CliError(
                f"--force {text}: {collective} has no such algorithm; `palmette plan {collective} --list` shows them"
            )
        found[name] = spec
    return found


def _files(written: tuple[str, ...], placement: str | None) -> list[tuple[str, str]]:
    from palmette.map.errors import MapError
    from palmette.map.writers import WRITERS, check_replaces

    if written and not placement:
        raise CliError("--write is for a placement; give --placement auto, for instance")
    files = []
    for word in written:
        kind, equals, file = word.partition("=")
        if kind not in WRITERS or not equals or not file:
            raise CliError(f"--write {word}: give KIND=FILE, where KIND is one of {', '.join(WRITERS)}")
        try:
            check_replaces(kind, file)
        except MapError as error:
            raise CliError(str(error)) from None
        files.append((kind, file))
    return files


def _write(files: list[tuple[str, str]], placed: _core.Job) -> None:
    """Write launchers' files."""
    from palmette.map.writers import WRITERS

    for kind, file in files:
        write_file(Path(file), WRITERS[kind].text(placed, list(range(placed.size))), "--write")


def _lines(answer: _Answer) -> list[str]:
    from palmette.record.tables import program_of

    expected, duration = answer.expected, _core.format_duration
    head = f"{program_of(answer.job)}, {plural(answer.job.size, 'rank')}: what if {answer.what}"
    shown = wrapped(printable(head), whole_words=False)
    low, high = expected.range_s
    change = f"{abs(expected.gain):.0%} {'less' if expected.gain >= 0 else 'more'}"
    between = f" ({duration(low)} to {duration(high)})" if high - low > 1e-3 * expected.time_s else ""
    shown.append(f"{duration(expected.time_s)} recorded, {duration(expected.expected_s)} expected{between}, {change}")
    if expected.rows:
        shown += ["", *Table(_CALLS, expected.rows).lines()]
    gaining = [one for one in expected.ranks if one[1] - one[2] > 1e-3 * expected.time_s][:MOST_RANKS]
    if gaining:
        parts = [f"rank {rank} {duration(was - now)}" for rank, was, now in gaining]
        shown += ["", *wrapped(f"ranks that gain most: {', '.join(parts)}", rest="", whole_words=False)]
    for note in answer.notes:
        shown += ["", *wrapped(printable(f"note: {note}"), whole_words=False)]
    return [*shown, "", printable(f"next: {answer.next}")]


def _document(answer: _Answer) -> dict[str, Any]:
    expected = answer.expected
    return {
        "what": answer.what, "time_s": expected.time_s, "expected_s": expected.expected_s,
        "range_s": list(expected.range_s), "gain": expected.gain,
        "calls": Table(_CALLS, expected.rows).records(),
        "ranks": [
            {"rank": rank, "in_mpi_recorded_s": was, "in_mpi_expected_s": now}
            for rank, was, now in sorted(expected.ranks)
        ],
        "next": answer.next, "notes": answer.notes,
    }  # fmt: skip


_CALLS: list[Column[Any]] = [
    Column(
        "calls of all ranks together", "", lambda row: printable(f"{row.function} at {row.place}"), left=True, most=55
    ),
    Column(None, "function"),
    Column(None, "place"),
    Column("recorded", "recorded_s", lambda row: row.measured_s, _core.format_duration),
    Column("expected", "expected_s", show=_core.format_duration),
]
