"""`palmette map`: process mapping, a rank order for a communication pattern, and the resulting link loads."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palmette import _core
from palmette.cli.common import CliError, SingleNameOption, emit_json, errors, json_option, write_file
from palmette.cli.job_options import (
    PLACEMENT_FORMS,
    machine_option,
    make_job,
    make_machine,
    placement_option,
    ppn_option,
    ranks_option,
    topology_option,
)
from palmette.cli.measuring_job import JobRequest, one_line_errors
from palmette.cli.place import LineCommand, PlaceOptions, place_options
from palmette.cli.progress import ActivityLine
from palmette.files import is_file
from palmette.map.errors import MapError
from palmette.present.words import wrapped

if TYPE_CHECKING:
    from palmette.map.pattern import Pattern
    from palmette.map.traffic_file import RecordedTraffic

EXAMPLE = 'palmette map --pattern stencil:8x2 --machine "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core" --placement random:1'
MEASURED_FILE = "distances.txt"
PROGRESS_S = 2.0
MOST_RANKS = 200_000
"""A pattern of more ranks has millions of messages."""


@click.command("map", cls=LineCommand, epilog=f"Example: {EXAMPLE}", context_settings={"max_content_width": 80})
@click.option(
    "--pattern",
    "form",
    metavar="FORM",
    help="ring, recursive_doubling, gather, bcast, stencil:8x2[,periodic], or a file as with --matrix.",
)
@click.option(
    "--matrix",
    "matrix_file",
    metavar="DIR|FILE",
    help="Or who sent how much to whom: a recording (`palmette run --profile DIR`), Open MPI's monitoring "
    "(PREFIX.0.prof), rows of numbers, or JSON.",
)
@machine_option
@topology_option
@click.option("--distances", metavar="FILE", help="Or a matrix of distances between ranks, rows of numbers.")
@click.option(
    "--measure",
    "measured",
    is_flag=True,
    help=f"Measure these first: ping-pongs of --size bytes in a job whose line stands behind --. They are written to "
    f"the file of --distances. [default: {MEASURED_FILE}]",
)
@placement_option(f"The slots to map to: {PLACEMENT_FORMS}")
@ppn_option
@ranks_option
@click.option(
    "--size",
    "--sizes",
    "size",
    cls=SingleNameOption,
    default="1K",
    show_default=True,
    metavar="BYTES",
    help="Of one block of the pattern.",
)
@click.option("--method", default="auto", show_default=True, metavar="NAME", help="How; --list shows the methods.")
@click.option(
    "--write",
    "written",
    multiple=True,
    metavar="KIND=FILE",
    help="Write the order for a launcher: hydra, intel, rankfile, seq, slurm or coordinates. May be repeated.",
)
@click.option("--svg", "picture", metavar="FILE", help="Write a picture: traffic over each link before and after.")
@click.option("--list", "listed", is_flag=True, help="List methods and kinds of files.")
@place_options(local=None, topology=False)
@json_option
def command(
    form: str | None,
    matrix_file: str | None,
    machine: str | None,
    topology: str | None,
    distances: str | None,
    measured: bool,
    placement: str,
    ppn: int | None,
    ranks: int | None,
    size: str,
    method: str,
    written: tuple[str, ...],
    picture: str | None,
    listed: bool,
    where: PlaceOptions,
    as_json: bool,
) -> None:
    """Map ranks to slots for a communication pattern.

    The placement defines the slots; the order assigns ranks to them. The default for a recorded run is the run's own
    placement. With --distances the order alone is printed: entry r is the place of rank r. With --measure and without a
    pattern the distances are only measured.
    """
    if listed:
        _list(as_json)
        return
    try:
        files = _files_to_write(written)
        if form is not None and matrix_file is None and is_file(form):
            form, matrix_file = None, form
        _check_measuring(measured, where, machine, topology)
        if measured and distances is None:
            distances = MEASURED_FILE
        only_measured = measured and form is None and matrix_file is None
        if not only_measured:
            _check_choice(form, matrix_file, machine, topology, distances)
            _check_method(method)
        elif files or picture:
            raise CliError("--write and --svg need an order; add --pattern or --matrix")
        if distances is not None:
            if ppn is not None:
                raise CliError("--ppn is for a machine; --distances has the places")
            if picture:
                raise CliError("--svg needs links; give --topology or --machine, not --distances")
            if measured:
                _measure(distances, size, where, as_json and only_measured)
            if not only_measured:
                _by_distance(distances, form, matrix_file, ranks, size, method, files, as_json)
            return
        if matrix_file is not None:
            seats = _seats_of_recorded(matrix_file, machine, topology, placement, ranks, ppn)
        else:
            job = make_job(machine, topology, placement, ranks, EXAMPLE, ppn)
            seats = _Seats(job, _pattern(str(form), job.size, size), placement)
        _on_job(seats, method, files, picture, as_json)
    except (_core.Error, MapError) as error:
        raise CliError(str(error)) from None


def _check_choice(
    form: str | None, matrix_file: str | None, machine: str | None, topology: str | None, distances: str | None
) -> None:
    if (form is None) == (matrix_file is None):
        what = "no pattern given" if form is None else "--pattern and --matrix both name messages"
        raise CliError(f"{what}; give one of --pattern and --matrix, for instance: {EXAMPLE}")
    if sum(place is not None for place in (machine, topology, distances)) != 1:
        raise CliError(f"give exactly one of --topology, --machine and --distances, for instance: {EXAMPLE}")


def _check_measuring(measured: bool, where: PlaceOptions, machine: str | None, topology: str | None) -> None:
    if measured and (machine is not None or topology is not None):
        raise CliError(
            f"--measure and {'--machine' if machine is not None else '--topology'} both say how far ranks are"
        )
    if not measured and (where.line or where.abi):
        raise CliError(f"only --measure runs a job; leave out {where.named[0] if where.line else '--abi'}, or say so")


def _measure(path: str, size: str, where: PlaceOptions, as_json: bool) -> None:
    """Measure distances between the ranks of a job, and write them. Raises CliError, MapError."""
    from palmette.map.measured import LatencyMatrix, check_replaces, measure
    from palmette.measure.jobs import running

    check_replaces(path)
    reported = time.monotonic()

    def report(done: int, rounds: int) -> None:
        nonlocal reported
        if time.monotonic() - reported > PROGRESS_S:
            reported = time.monotonic()
            click.echo(f"palmette map: {done} of {rounds} rounds of pairs measured", err=True)

    size_bytes = _core.parse_size(size)
    with one_line_errors(), JobRequest(where).job() as (job, _):
        click.echo(f"palmette map: {job.description}", err=True)
        with running(job) as session:
            found: LatencyMatrix = measure(
                session, session.job, size_bytes, f"{job.description}, {session.job.mpi}", report
            )
    write_file(Path(path), found.text(), "--distances")
    largest, a, b = found.worst
    if as_json:
        emit_json(
            {
                "distances": path, "ranks": len(found.hosts), "bytes": found.size_bytes, "hosts": list(found.hosts),
                "typical_spread": found.typical_spread, "largest_spread": largest, "largest_spread_of": [a, b],
            }
        )  # fmt: skip
    else:
        text = f"palmette map: wrote {path}; {found.sentence()}"
        click.echo("\n".join(wrapped(text)), err=True)


def _check_method(method: str) -> None:
    from palmette.map.methods import METHODS

    if method not in METHODS:
        raise CliError(
            f"'{method}' is no method; take one of {', '.join(METHODS)} (`palmette map --list` explains them)"
        )


@dataclass(frozen=True)
class _Seats:
    """The ranks that are mapped, and the machine."""

    job: _core.Job
    pattern: Pattern
    placed: str
    """How, in a few words."""
    notes: tuple[str, ...] = ()


def _pattern(form: str, ranks: int, size: str) -> Pattern:
    from palmette.map.pattern import parse_pattern

    _check_ranks(ranks)
    return parse_pattern(form, ranks, _core.parse_size(size))


def _traffic(matrix_file: str, ranks: int | None) -> RecordedTraffic:
    """Read the file. Raises CliError where it holds another number of ranks than `ranks`."""
    found = _read_traffic(matrix_file)
    _check_ranks(found.pattern.ranks)
    if ranks is not None and found.pattern.ranks != ranks:
        raise CliError(f"{matrix_file} holds {found.pattern.ranks} ranks, not {ranks}; leave --ranks out")
    return found


def _read_traffic(path: str) -> RecordedTraffic:
    if Path(path).is_dir():
        from palmette.record.reading import RecordError
        from palmette.record.sent import traffic_of

        try:
            return traffic_of(Path(path))
        except RecordError as error:
            raise CliError(str(error)) from None
    from palmette.map.traffic_file import read_traffic

    return read_traffic(path)


def _check_ranks(ranks: int) -> None:
    if ranks > MOST_RANKS:
        raise CliError(
            f"{ranks:,} ranks are more than the {MOST_RANKS:,} that can be mapped; choose fewer with --ranks"
        )


def _seats_of_recorded(
    matrix_file: str, machine: str | None, topology: str | None, placement: str, ranks: int | None, ppn: int | None
) -> _Seats:
    """Return the seats for a file's messages: where the run had its ranks, unless --placement says otherwise."""
    found = _traffic(matrix_file, ranks)
    placed, notes = placement, [f"not in {found.pattern.name}: {sentence}" for sentence in found.uncounted]
    context = click.get_current_context()
    given = context.get_parameter_source("placement") is not click.core.ParameterSource.DEFAULT
    if found.hosts and not given:
        made = make_machine(machine, topology)
        known = set(made.hosts) if made is not None else set()
        unknown = next((host for host in found.hosts if host not in known), None)
        if unknown is None:
            placement, placed = f"hosts={','.join(found.hosts)}", "as in the run"
        else:
            notes.append(f"the run's host {unknown} isn't on this machine: placed {placement}; see --placement")
    job = make_job(machine, topology, placement, found.pattern.ranks, EXAMPLE, ppn)
    return _Seats(job, found.pattern, placed, tuple(notes))


@dataclass(frozen=True)
class _File:
    kind: str
    path: Path


def _by_distance(
    file: str,
    form: str | None,
    matrix_file: str | None,
    ranks: int | None,
    size: str,
    method: str,
    files: list[_File],
    as_json: bool,
) -> None:
    from palmette.map.by_distance import compare, json_of, line_of
    from palmette.map.matrix import read_matrix
    from palmette.map.methods import map_by_distance

    distances = read_matrix(file)
    if ranks is not None and ranks != len(distances):
        raise CliError(f"{file} holds the distances of {len(distances)} ranks, not {ranks}; leave --ranks out")
    if matrix_file is not None:
        pattern = _traffic(matrix_file, len(distances)).pattern
    else:
        pattern = _pattern(str(form), len(distances), size)
    with ActivityLine(f"looking for an order of {len(distances):,} ranks, method {method}"):
        mapped = map_by_distance(distances, pattern, method)
    compared = compare(distances, pattern, mapped)
    usages = _write_by_hosts(file, mapped.order, files)
    if as_json:
        document = json_of(pattern, mapped, compared)
        emit_json({**document, "files": {one.kind: str(one.path) for one in files}} if files else document)
        return
    click.echo(" ".join(map(str, mapped.order)))
    # Apart from the order, so that a script can read that alone.
    errors.print(line_of(pattern, mapped, compared), markup=False)
    for line in usages:
        click.echo(line, err=True)


def _write_by_hosts(distances: str, order: list[int], files: list[_File]) -> list[str]:
    """Write the files of launchers for the hosts that a file of distances names; return how they are used."""
    from palmette.map.measured import hosts_in, job_on
    from palmette.map.writers import WRITERS

    if not files:
        return []
    if any(file.kind == "coordinates" for file in files):
        raise CliError("--write coordinates needs switches; give --topology or --machine, not --distances")
    hosts = hosts_in(distances)
    if len(hosts) != len(order):
        raise CliError(
            f"--write needs hosts, and {distances} names those of {len(hosts)} ranks, not of {len(order)}; measure it "
            "with --measure, or give --topology or --machine"
        )
    job, lines = job_on(hosts), []
    for file in files:
        write_file(file.path, WRITERS[file.kind].text(job, order), "--write")
        lines += [f"wrote {file.path}; use it so:", f"  {_usage(file, job.size)}"]
    return lines


def _usage(file: _File, ranks: int) -> str:
    from palmette.map.writers import WRITERS

    return WRITERS[file.kind].usage.format(file=shlex.quote(str(file.path)), ranks=ranks)


def _files_to_write(written: tuple[str, ...]) -> list[_File]:
    from palmette.map.writers import WRITERS, check_replaces

    files = []
    for word in written:
        kind, equals, path = word.partition("=")
        if kind not in WRITERS or not equals or not path:
            raise CliError(f"--write {word}: give KIND=FILE, where KIND is one of {', '.join(WRITERS)}")
        check_replaces(kind, path)
        files.append(_File(kind, Path(path)))
    return files


def _on_job(seats: _Seats, method: str, files: list[_File], picture: str | None, as_json: bool) -> None:
    from palmette.map.methods import map_on_job
    from palmette.map.svg import svg
    from palmette.map.text import json_of, lines_of
    from palmette.map.traffic import count_traffic
    from palmette.map.writers import WRITERS

    job, pattern, placement = seats.job, seats.pattern, seats.placed
    with ActivityLine(f"counting traffic of {job.size:,} ranks") as working:
        before = count_traffic(job, pattern, range(job.size))
        working.now(f"looking for an order of {job.size:,} ranks, method {method}")
        mapped = map_on_job(job, pattern, method)
    notes = [*seats.notes, *([mapped.note] if mapped.note else [])]
    for file in files:
        write_file(file.path, WRITERS[file.kind].text(job, mapped.order), "--write")
    if picture is not None:
        write_file(picture, svg(pattern, placement, before, mapped), "--svg")
    if as_json:
        document = json_of(job, pattern, placement, before, mapped)
        document["files"] = {file.kind: str(file.path) for file in files}
        document["svg"] = picture
        document["notes"] = notes
        emit_json(document)
        return
    lines = lines_of(job, pattern, placement, before, mapped)
    for file in files:
        lines += ["", f"wrote {file.path}; use it so:", f"  {_usage(file, job.size)}"]
    if picture is not None:
        lines += ["", f"wrote {picture}"]
    for note in notes:
        lines += ["", *wrapped(f"note: {note}", whole_words=False)]
    click.echo("\n".join(lines))


def _list(as_json: bool) -> None:
    from palmette.map.methods import METHODS
    from palmette.map.writers import WRITERS

    if as_json:
        kinds: dict[str, Any] = {
            name: {"for": writer.sentence, "usage": writer.usage} for name, writer in WRITERS.items()
        }
        emit_json({"methods": METHODS, "files": kinds})
        return
    rows = [("Methods:", "")] + [(f"  {name}", sentence) for name, sentence in METHODS.items()]
    rows += [("", ""), ("Files:", "")] + [(f"  {name}", writer.sentence) for name, writer in WRITERS.items()]
    for name, sentence in rows:
        click.echo("\n".join(wrapped(sentence, f"{name:<15}", " " * 15) or [name]))
