"""`palmette calibrate`: measure latency, overhead and rates of each level in a job; write them to topology.json."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from palmette.calibrate.layout import Layout
from palmette.calibrate.measure import Effort, MachineSteps, measure, plan_steps
from palmette.calibrate.text import level_lines, memory_line, node_memory_line, notes, to_json, unsure_lines
from palmette.calibrate.write import calibration_of, write_into
from palmette.cli.calibrate_progress import CalibrateProgress
from palmette.cli.common import CliError, emit_json, errors, json_option
from palmette.cli.duration import duration
from palmette.cli.measuring_job import JobRequest, one_line_errors
from palmette.cli.place import LineCommand, PlaceOptions, place_options, with_bare_line
from palmette.discover.run import discover
from palmette.measure.jobs import JobCommand, running
from palmette.mpi import install as mpi_install
from palmette.present.words import wrapped
from palmette.topology import file as topology_file
from palmette.topology.found import DiscoverError
from palmette.topology.model import Topology

DEFAULT_OUTPUT = Path("topology.json")


def _percent(context: click.Context, parameter: click.Parameter, value: str) -> float:
    try:
        share = float(value.rstrip("%")) / 100
    except ValueError:
        share = 0.0
    if not 0.001 <= share <= 1:
        raise CliError(f"--target {value}: expected a percentage from 0.1 to 100, like 5%")
    return share


@click.command(
    cls=LineCommand,
    context_settings={"max_content_width": 80, "allow_interspersed_args": False},
    epilog="Example: palmette calibrate --topology topology.json -- mpiexec -n 64 -f hosts",
)
@click.option(
    "--topology",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What to calibrate. [default: what hwloc finds here]",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to write. [default: as read]"
)
@place_options(topology=False)
@click.option(
    "--mpi", type=click.Choice(list(mpi_install.NAMES)), help="Which MPI without a launcher. [default: the first]"
)
@click.option(
    "--target", default="5%", show_default=True, callback=_percent, help="Half of the 95 % interval to reach."
)
@click.option("--budget", default="60s", show_default=True, callback=duration, metavar="TIME", help="Stop after this.")
@click.option("--one-at-a-time", is_flag=True, help="Never measure two pairs at once.")
@click.option("--load", "loads", is_flag=True, help="Attribute missing bandwidth to other traffic: write loads.")
@json_option
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="")
def command(
    topology: Path | None,
    output: Path | None,
    where: PlaceOptions,
    mpi: str | None,
    target: float,
    budget: float,
    one_at_a_time: bool,
    loads: bool,
    as_json: bool,
    command_line: tuple[str, ...],
) -> None:
    """Measure what messages cost on each level of a machine.

    LAUNCHER is the line that starts your jobs, without the program: mpiexec -n 64.
    Or the job runs on this machine alone. A few pairs of ranks
    represent each level of the topology: latency, overhead, stream rate, and the
    capacity that flows share on an edge. Costs and their errors are written into
    the topology; the file is replaced atomically.
    """
    where = with_bare_line(where, command_line)
    asked = JobRequest(where, mpi)
    with one_line_errors(), asked.job() as (job, place_topology):
        source = topology or place_topology
        read, name = _read(source, local=where.local_ranks is not None)
        target_file = _output(output, topology, place_topology if where.elsewhere and where.elsewhere.lasts else None)
        effort = Effort(target, budget, at_once=not (one_at_a_time or job.shares_processors))
        errors.print(f"palmette calibrate: {job.description}", markup=False)
        measured, remarks = _calibrate(read, name, job, effort, loads=loads)
        try:
            read.save(target_file)
        except OSError as error:
            raise CliError(f"can't write {target_file}: {error.strerror}; choose another file with -o") from None
    if as_json:
        emit_json(to_json(measured, read, remarks, str(target_file)))
        return
    lines = [*level_lines(measured), *wrapped(memory_line(measured))]
    lines += wrapped(node_memory_line(measured) or "")
    lines += [part for line in (*notes(measured), *remarks) for part in wrapped(line)]
    lines += wrapped(f"wrote {target_file}; palmette plan and palmette run take it with --topology")
    follows = f"palmette plan all --predict --size 1K,64K --topology {shlex.quote(str(target_file))}"
    click.echo("\n".join([*lines, *wrapped(f"what follows: {follows}")]))


def _read(source: Path | None, *, local: bool) -> tuple[Topology, str]:
    """Return the topology to calibrate and what to call it. Raises TopologyError, CliError."""
    if source is not None:
        return topology_file.load(source), str(source)
    if not local:
        raise CliError(
            "no topology of these hosts; name it with --topology FILE, or find one: "
            "palmette discover --from measurement"
        )
    try:
        return discover([("hwloc", None)]), "this machine's topology"
    except DiscoverError as error:
        raise CliError(str(error)) from None


def _output(output: Path | None, topology: Path | None, of_lab: Path | None) -> Path:
    """Return where to write, checked before anything is measured. Raises CliError."""
    chosen = output or topology or of_lab or DEFAULT_OUTPUT
    if chosen == DEFAULT_OUTPUT and not (output or topology) and chosen.exists():
        quoted = shlex.quote(str(chosen))
        raise CliError(f"{chosen} is there already; calibrate it with --topology {quoted}, or choose another with -o")
    folder = chosen.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or chosen.is_dir():
        raise CliError(f"can't write {chosen}; choose another file with -o")
    return chosen


def _calibrate(
    topology: Topology, name: str, job: JobCommand, effort: Effort, *, loads: bool
) -> tuple[MachineSteps, list[str]]:
    """Measure, and put the results into `topology`. Raises CalibrateError."""
    with running(job) as session, CalibrateProgress(errors) as progress:
        layout = Layout(topology.machine, session.job, name)
        measured = plan_steps(layout, effort)
        measure(measured, session, progress)
    calibration = calibration_of(measured, session.job, layout)
    written = write_into(topology, measured, calibration, loads=loads)
    return measured, [*unsure_lines(measured), *written.remarks]
