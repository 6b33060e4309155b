"""`palmette-lab bench collectives`: named sets and their targets, other MPIs, traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from palmette.bench.rivals import parse_rival
from palmette.bench.settings import Settings
from palmette.cli import bench_report
from palmette.cli.bench_collectives import SECTIONS as BASIC
from palmette.cli.bench_collectives import ResultOptions, basic_options, basic_values, measure_and_show
from palmette.cli.common import CliError, WholeNumber, json_option
from palmette.cli.place import LineCommand, PlaceOptions, place_options
from palmette.cli.place_errors import one_line_errors
from palmette_lab.cli.place import LAB_PARAMETERS, choose, lab_options
from palmette_lab.sets import SETS, BenchSet, outcomes_of
from palmette_lab.traffic import Traffic

_FILE = click.Path(path_type=Path, dir_okay=False)
SECTIONS = {
    "On a lab": LAB_PARAMETERS,
    **BASIC,
    "More to measure": (
        *("set_name", "repeat", "floor", "pass_through", "side_by_side", "rivals", "variants", "traffic"),
        *("write_load", "no_preload"),
    ),
    "Results": (*BASIC["Results"], "fail_if_missed", "fail_if_any_slower"),
}
_PARAMETERS = {
    "min_pairs": "min_iterations",
    "max_pairs": "max_iterations",
    "preload": "no_preload",
    "env": "assignments",
    "budget_s": "budget",
    "placements": "placement",
}
"""Fields of Settings whose option has another name."""


@click.command(
    "collectives",
    cls=LineCommand,
    sections=SECTIONS,
    context_settings={"max_content_width": 80},
    epilog="Example: palmette-lab bench allgather --lab 2leaf@50Mbit/s:2node@100Mbit/s:2core --placement random:1",
)
@basic_options
@click.option(
    "--set", "set_name", type=click.Choice(list(SETS)), metavar="NAME",
    help=f"Collectives, sizes, place and targets by one name: {', '.join(SETS)}.",
)  # fmt: skip
@place_options()
@click.option("--repeat", type=WholeNumber(1), default=1, show_default=True, help="Jobs for each MPI and placement.")
@click.option("--floor", is_flag=True, help="Also measure with the lab's rate limits off: the lower bound.")
@click.option("--pass-through", is_flag=True, help="Also measure the overhead of calls left to the MPI.")
@click.option("--side-by-side", is_flag=True, help="Compare the MPIs side by side, against the fastest.")
@click.option("--rival", "rivals", multiple=True, metavar="NAME", help="And mpich-topology, or NAME:MPI[:K=V,...].")
@click.option("--traffic", metavar="KIND", help="Also measure under load: alltoall[:half|:all][:SIZE].")
@click.option("--write-load", type=_FILE, metavar="FILE", help="Write topology.json with the traffic's load of links.")
@click.option("--no-preload", is_flag=True, help="Compare the MPI with itself: the noise level.")
@click.option("--fail-if-missed", is_flag=True, help="Exit with 1 unless every target of the set is met.")
@click.option("--fail-if-any-slower", is_flag=True, help="As --fail-if-slower for all cells, trusted or not.")
@json_option
def command(
    where: PlaceOptions, set_name: str | None, mpis: str | None, repeat: int, floor: bool,
    pass_through: bool, side_by_side: bool, rivals: tuple[str, ...], traffic: str | None, write_load: Path | None,
    no_preload: bool, store: Path, page: Path | None, resume: bool, fail_if_slower: bool, fail_if_missed: bool,
    fail_if_any_slower: bool, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Measure collectives under MPIs alone and with palmette.

    As `palmette bench collectives`, on a lab where nothing else is named. A set defines all options and its targets;
    options that are given override it.
    """
    context = click.get_current_context()
    where = where.checked()
    where.refuse_with_line({"--mpi": mpis, "--floor": floor or None})
    named_set = SETS[set_name] if set_name else None
    local = where.is_local()
    with one_line_errors():
        values = basic_values(mpis=mpis or ("all" if named_set else None), line=bool(where.line), **given)
        values |= {
            "placements": where.placements("block,cyclic,random:1"),
            "ppn": where.ppn,
            "ranks": where.ranks,
            "repeat": repeat,
            "floor": floor,
            "preload": not no_preload,
            "pass_through": pass_through,
            "named_set": set_name,
            "rivals": tuple(map(parse_rival, rivals)),
            "traffic": Traffic.parse(traffic).text if traffic is not None else None,
        }
        if named_set is not None:
            values |= {name: value for name, value in named_set.settings.items() if not _is_given(context, name)}
            if not rivals:  # the set's own, as far as their MPIs are there
                values["rivals"] = tuple(rival for rival in values["rivals"] if rival.mpi in values["mpis"])
        settings = Settings(**values)
    if local and settings.placements != ("block",):
        raise CliError("--placement has no meaning for local ranks, which share one host; leave it out or give --lab")
    if write_load is not None and settings.traffic is None:
        raise CliError("--write-load has nothing to write without --traffic; give it, as in --traffic alltoall:half")
    show = ResultOptions(
        store, page, as_json, resume=resume, side_by_side=side_by_side or bool(named_set and named_set.side_by_side),
        write_load=write_load, fail_if_slower=fail_if_slower, fail_if_any_slower=fail_if_any_slower,
        outcomes=outcomes_of, must_meet=fail_if_missed,
    )  # fmt: skip
    measure_and_show(settings, where, show, local=local)


def _is_given(context: click.Context, field: str) -> bool:
    """Whether a field of Settings was given on the command line."""
    source = context.get_parameter_source(_PARAMETERS.get(field, field))
    return source is click.core.ParameterSource.COMMANDLINE


def _with_lab() -> None:
    """Let the command take a lab, or that of its set."""
    callback = command.callback
    assert callback is not None

    def run(**values: Any) -> Any:
        named_set = SETS[values["set_name"]] if values["set_name"] else None
        if named_set is not None:
            _take_place(named_set, values)
        choose(values, makes_default=True)
        return callback(**values)

    command.callback = run
    command.params += lab_options(placement="block,cyclic,random:1")


def _take_place(named_set: BenchSet, values: dict[str, Any]) -> None:
    """Take the place of a set where none is named. Raises CliError for a launcher's line."""
    from palmette.cli.place import line_of

    if line_of(click.get_current_context()):
        raise CliError(f"--set {named_set.name} has a place of its own; leave out the set or the launcher line")
    if values["lab"] is None and values["local_ranks"] is None:
        values["lab"], values["local_ranks"] = named_set.lab, named_set.local_ranks
        if values["spine_delay"] is None and named_set.lab is not None:
            values["spine_delay"] = named_set.spine_delay_s


_with_lab()


@click.command(
    "report", context_settings={"max_content_width": 80}, epilog="Example: palmette-lab bench report last~1 last"
)
@bench_report.report_options
def report(runs: tuple[str, ...], output: Path | None, store: Path, speedups: Path | None, as_json: bool) -> None:
    """Write the page of a stored benchmark run with the targets of its set, or compare two.

    As `palmette bench report`.
    """
    bench_report.show(runs, output, store, speedups, as_json=as_json, outcomes=outcomes_of)
