"""`palmette what-if`: what a recorded job would take with other algorithms, another placement or another network."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palmette import _core
from palmette.cli.common import CliError, emit_json, json_option, write_file
from palmette.cli.printable import printable
from palmette.cli.progress import Working
from palmette.units import plural

if TYPE_CHECKING:
    from palmette.record.machine import Seats
    from palmette.record.reading import Job
    from palmette.record.what_if import Expected

EXAMPLE = "palmette what-if trace --force allreduce=recursive_doubling"
WIDTH = 80
FILE = click.Path(path_type=Path, dir_okay=False)
MOST_RANKS = 3


@click.command("what-if", epilog=f"Example: {EXAMPLE}", context_settings={"max_content_width": 80})
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--ideal", is_flag=True, help="Communication takes no time; who waits for whom stays.")
@click.option("--bound", is_flag=True, help="Collectives take what links and memory need at least.")
@click.option("--force", "forced", multiple=True, metavar="COLLECTIVE=SPEC", help="An algorithm. Repeatable.")
@click.option("--table", type=FILE, metavar="FILE", help="A decision table chooses.")
@click.option(
    "--placement", metavar="FORM", help="auto: the best that is found; block, cyclic, random:SEED, hosts=... or a file."
)
@click.option("--topology", type=FILE, metavar="FILE", help="Another network: its topology.json.")
@click.option(
    "--recorded-on", type=FILE, metavar="FILE", help="topology.json of the run, where none was kept with the trace."
)
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
    topology: Path | None,
    recorded_on: Path | None,
    written: tuple[str, ...],
    as_json: bool,
) -> None:
    """Tell what a recorded job would take if its communication were another.

    DIR is the folder of `palmette run --trace`. Its calls are replayed: computation and who waits for whom stay as they
    were, calls take what the model says of other algorithms, places or links. What is changed can be combined.
    """
    from palmette.map.errors import MapError
    from palmette.record.reading import RecordError

    changes = bool(forced or table or placement or topology)
    if ideal + bound + changes != 1:
        raise CliError(
            "say what is to be different: --ideal, --bound, or some of --force, --table, --placement and --topology; "
            f"for instance: {EXAMPLE}"
        )
    try:
        answer = _answer(folder, ideal, bound, forced, table, placement, topology, recorded_on, written)
    except (RecordError, MapError, _core.Error) as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(_document(answer))
    else:
        click.echo("\n".join(_lines(answer)))


class _Answer:
    """What is expected, of which change, and what makes it so."""

    def __init__(self, job: Job, what: str, expected: Expected, following: str, notes: list[str]) -> None:
        self.job, self.what, self.expected, self.next = job, what, expected, following
        self.notes = [*notes, *expected.notes]


def _answer(
    folder: Path,
    ideal: bool,
    bound: bool,
    forced: tuple[str, ...],
    table: Path | None,
    placement: str | None,
    topology: Path | None,
    recorded_on: Path | None,
    written: tuple[str, ...],
) -> _Answer:
    from palmette.record.findings import has_calls
    from palmette.record.machine import seats_of
    from palmette.record.reading import read_job
    from palmette.record.what_if import Wanted, with_changes, with_costs

    with Working("reading the recording") as working:
        job = read_job(folder)
        if not has_calls(job):
            raise CliError(f"{folder}: a profile has no single calls to replay; record with `palmette run --trace DIR`")
        seats, missing = seats_of(job, recorded_on)
        if ideal or bound:
            working.now(f"replaying {job.size:,} ranks")
            expected = with_costs(job, seats, "ideal" if ideal else "bound")
            what = "communication takes no time" if ideal else "collectives take what links and memory need at least"
            more = f"palmette report {shlex.quote(str(folder))}"
            return _Answer(job, what, expected, more, [missing] if missing and bound else [])
        if seats is None or not seats.has_rates:
            raise CliError(
                "of the run's network nothing is known; give --recorded-on topology.json (`palmette discover` makes it)"
            )
        force = _force(forced)
        path = _machine_file(job, recorded_on)
        placed, parts, following, notes = None, [], [], []
        if placement or topology:
            working.now("looking for the best placement" if placement == "auto" else "placing the ranks")
            placed, notes = _placed(job, seats, path, placement, topology, written)
            parts += [f"placement {placement}"] if placement else []
            parts += [f"the network of {topology}"] if topology else []
        wanted = Wanted(force, _core.Table.from_file(str(table)) if table else None, placed)
        parts += [f"{name} by {spec}" for name, spec in force.items()] + ([f"table {table}"] if table else [])
        working.now(f"replaying {job.size:,} ranks")
        expected = with_changes(job, seats, wanted)
    run = [f"--topology {shlex.quote(str(topology or path))}"]
    run += [f"--force {name}={spec}" for name, spec in force.items()] + ([f"--table {table}"] if table else [])
    following = f"palmette run {' '.join(run)} mpiexec -n {job.size} ./app"
    if placement and not written:
        following = _again_written()
    elif placement:
        from palmette.map.writers import WRITERS

        kind, _, file = written[0].partition("=")
        following = WRITERS[kind].usage.format(file=file, ranks=job.size)
    return _Answer(job, ", ".join(parts), expected, following, notes)


def _again_written() -> str:
    """Return the command line with a file of the placement, for MPICH's launcher."""
    import sys

    return f"palmette {' '.join(map(shlex.quote, sys.argv[1:]))} --write hydra=hosts.txt"


def _force(forced: tuple[str, ...]) -> dict[str, str]:
    from palmette.record.functions import COLLECTIVES

    known = {(row.collective, row.name) for row in _core.algorithms()}
    found = {}
    for text in forced:
        name, equals, spec = text.partition("=")
        if not equals or name not in COLLECTIVES:
            raise CliError(f"--force {text}: give COLLECTIVE=SPEC, for instance allreduce=recursive_doubling")
        if (_core.collective_of(name), spec.partition(":")[0]) not in known:
            raise CliError(
                f"--force {text}: {_core.collective_of(name)} has no such algorithm; "
                f"`palmette plan {_core.collective_of(name)} --list` shows them"
            )
        found[name] = spec
    return found


def _machine_file(job: Job, recorded_on: Path | None) -> Path:
    from palmette.run.choices import KEPT_TOPOLOGY

    return recorded_on or job.folder / KEPT_TOPOLOGY


def _placed(
    job: Job, seats: Seats, path: Path, placement: str | None, topology: Path | None, written: tuple[str, ...]
) -> tuple[_core.Job, list[str]]:
    """Return where the ranks would be, and notes. Writes launchers' files."""
    from palmette.map.writers import WRITERS
    from palmette.record.what_if import auto_placement

    machine = _core.Machine.from_file(str(topology or path))
    notes = []
    was = [seats.job.host_of(rank) for rank in range(job.size)]
    order = list(range(job.size))
    if placement == "auto":
        mapped = auto_placement(job, seats)
        order = mapped.order
        notes += [f"placement by {mapped.method}"] + ([mapped.note] if mapped.note else [])
        placed = _core.Job.on_hosts(machine, [was[place] for place in order])
    elif placement:
        placed = _core.Job(machine, placement, job.size)
    else:
        missing = sorted(set(was) - set(machine.hosts))
        if missing:
            notes.append(f"{topology} has no host {missing[0]}: ranks are placed block")
        placed = _core.Job(machine, "block", job.size) if missing else _core.Job.on_hosts(machine, was)
    for word in written:
        kind, equals, file = word.partition("=")
        if kind not in WRITERS or not equals or not file:
            raise CliError(f"--write {word}: give KIND=FILE, where KIND is one of {', '.join(WRITERS)}")
        text = WRITERS[kind].text(placed, list(range(job.size)))
        write_file(Path(file), text, "--write")
    return placed, notes


def _lines(answer: _Answer) -> list[str]:
    from palmette.record.tables import program_of

    expected, duration = answer.expected, _core.format_duration
    head = f"{program_of(answer.job)}, {plural(answer.job.size, 'rank')}: what if {answer.what}"
    shown = textwrap.wrap(printable(head), WIDTH, subsequent_indent="  ")
    low, high = expected.range_s
    change = f"{abs(expected.gain):.0%} {'less' if expected.gain >= 0 else 'more'}"
    between = f" ({duration(low)} to {duration(high)})" if high - low > 1e-3 * expected.time_s else ""
    shown.append(f"{duration(expected.time_s)} recorded, {duration(expected.expected_s)} expected{between}, {change}")
    if expected.rows:
        shown += ["", f"{'calls of all ranks together':<55} {'recorded':>11} {'expected':>11}"]
        for row in expected.rows:
            where = printable(f"{row.function} at {row.place}")
            shown.append(f"{where[:55]:<55} {duration(row.measured_s):>11} {duration(row.expected_s):>11}")
    gaining = [one for one in expected.ranks if one[1] - one[2] > 1e-3 * expected.time_s][:MOST_RANKS]
    if gaining:
        parts = [f"rank {rank} {duration(was - now)}" for rank, was, now in gaining]
        shown += ["", *textwrap.wrap(f"ranks that gain most: {', '.join(parts)}", WIDTH)]
    for note in answer.notes:
        shown += ["", *textwrap.wrap(printable(f"note: {note}"), WIDTH, subsequent_indent="  ")]
    return [*shown, "", printable(f"next: {answer.next}")]


def _document(answer: _Answer) -> dict[str, Any]:
    expected = answer.expected
    return {
        "what": answer.what, "time_s": expected.time_s, "expected_s": expected.expected_s,
        "range_s": list(expected.range_s), "gain": expected.gain,
        "calls": [
            {"function": row.function, "place": row.place, "recorded_s": row.measured_s, "expected_s": row.expected_s}
            for row in expected.rows
        ],
        "ranks": [
            {"rank": rank, "in_mpi_recorded_s": was, "in_mpi_expected_s": now}
            for rank, was, now in sorted(expected.ranks)
        ],
        "next": answer.next, "notes": answer.notes,
    }  # fmt: skip
