"""`palmette explain`: which row of the decision table or which setting decides a call, and the alternatives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from palmette import _core
from palmette.cli.common import CliError, WholeNumber, emit_json, json_option
from palmette.cli.job_options import job_on, make_machine, ppn_option
from palmette.cli.progress import ActivityLine
from palmette.explain.costs import Cost, bound_of, costs
from palmette.explain.decision import CollectiveCall, Decision, decide, switched_off
from palmette.explain.measured import figures
from palmette.explain.report import ReportError, explain, read_report
from palmette.explain.text import cost_lines, decision_lines, force_lines, gain_lines, measured_lines, report_lines
from palmette.mpi import install as mpi_install
from palmette.run.sharp import find_sharp
from palmette.settings import SettingError, forced
from palmette.settings_files import Value, value_in_force, values
from palmette.tune.candidates import sizes_unknown
from palmette.tune.errors import TuneError
from palmette.tune.store import DEFAULT_PATH

BUILT_IN = "the built-in table"


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except (_core.Error, TuneError, ReportError, SettingError) as error:
        raise CliError(str(error)) from error


@click.command(
    "explain",
    epilog='Example: palmette explain allreduce 64K --machine "3leaf:3+3+2node:2core" --placement cyclic',
    context_settings={"max_content_width": 80},
)
@click.argument("collective", required=False)
@click.argument("size", required=False)
@click.option("--size", "--sizes", "named_size", hidden=True)
@click.option("--topology", metavar="FILE", help="topology.json of the cluster. [default: PALMETTE_TOPOLOGY]")
@click.option("--machine", metavar="SPEC", help="A synthetic machine instead: 2leaf:4node:2core.")
@click.option(
    "--placement",
    default="block",
    show_default=True,
    metavar="FORM",
    help="block, cyclic, random:SEED, hosts=... or a file.",
)
@ppn_option
@click.option("--ranks", type=WholeNumber(2), help="Ranks of the job. [default: all places]")
@click.option("--mpi", type=click.Choice(tuple(mpi_install.NAMES)), help="[default: the first that is installed]")
@click.option("--root", type=WholeNumber(0), default=0, show_default=True, help="The root rank.")
@click.option("--table", metavar="FILE", help="Decision table. [default: PALMETTE_TABLE, or the built-in one]")
@click.option("--ordered", is_flag=True, help="The operation isn't commutative.")
@click.option("--oversubscribed", is_flag=True, help="Ranks outnumber the cores of a node.")
@click.option("--rows", "all_rows", is_flag=True, help="Show each row of the table that doesn't match, and why.")
@click.option("--no-model", is_flag=True, help="Predict nothing: faster on large jobs.")
@click.option(
    "--store", type=click.Path(path_type=Path, dir_okay=False), default=DEFAULT_PATH, show_default=True,
    help="Samples of `palmette tune`.",
)  # fmt: skip
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Explain the report of a run instead.",
)
@json_option
def command(
    collective: str | None,
    size: str | None,
    named_size: str | None,
    topology: str | None,
    machine: str | None,
    placement: str,
    ppn: int | None,
    ranks: int | None,
    mpi: str | None,
    root: int,
    table: str | None,
    ordered: bool,
    oversubscribed: bool,
    all_rows: bool,
    no_model: bool,
    store: Path,
    report: Path | None,
    as_json: bool,
) -> None:
    """Explain which algorithm a call of COLLECTIVE with SIZE bytes gets, and why.

    Which row of the decision table or which setting decides, why no earlier row matches, the predicted times of the
    runners-up, measured times, and how to select another algorithm. COLLECTIVE is an MPI function such as allreduce,
    alltoallv or ibcast; SIZE is bytes of a block, or of the vector. With --report the rows of a run's report are
    explained (palmette run --report run.json).
    """
    if size is not None and named_size is not None:
        raise CliError(f"{size} and --size {named_size} both say how many bytes; leave one of them out")
    size = size if size is not None else named_size
    path = table or value_in_force("PALMETTE_TABLE") or None
    with _one_line_errors():
        rules = _core.Table.from_file(path) if path else _core.Table.built_in()
        if report is not None:
            _explain_report(report, rules, path or BUILT_IN, not no_model, as_json)
            return
        settings = values()
        job = _job(topology, machine, placement, ppn, ranks)
        asked = _asked(collective, size, job, mpi, root, ordered, oversubscribed)
        asked = replace(
            asked,
            shared_memory=_is_on("shared", settings),
            reproducible=_is_on("reproducible", settings),
            aggregators=_text("aggregator_token", settings) != "" or _switches_reduce(job),
        )
        name = path or BUILT_IN
        on = _is_on("enable", settings)
        with ActivityLine("looking through the table") as working:
            decision = decide(asked, rules, name, _forced(settings)) if on else switched_off(asked, name)
            working.now(f"predicting the alternatives for {asked.job.size:,} ranks; --no-model leaves that out")
            known = [] if no_model else costs(asked, decision.algorithm)
            measured = figures(asked, store)
    if as_json:
        emit_json(_as_json(decision, known, bound_of(asked), [asdict(one) for one in measured]))
        return
    other = next((one.spec for one in known if one.spec != decision.algorithm), None)
    lines = decision_lines(decision, all_rows) + cost_lines(known, decision)
    lines += measured_lines(measured, str(store)) + force_lines(decision, other, lines)
    click.echo("\n".join(lines))


def _switches_reduce(job: _core.Job) -> bool:
    return any(one.kind == "sharp" and one.level < 0 for one in job.aggregators)


def _job(topology: str | None, machine: str | None, placement: str, ppn: int | None, ranks: int | None) -> _core.Job:
    from_environment = None if machine is not None else value_in_force("PALMETTE_TOPOLOGY") or None
    made = make_machine(machine, topology if topology is not None else from_environment, ppn)
    if made is not None:
        job = job_on(made.with_reducing_switches(), placement, ranks)
        in_service = _switches_reduce(job) and find_sharp(os.environ, value_in_force("PALMETTE_SHARP")).usable
        return job if in_service else job.without_aggregators("sharp")
    if placement != "block" or ppn is not None:
        given = "--placement" if placement != "block" else "--ppn"
        raise CliError(f"{given} needs a machine; name one with --topology or --machine")
    # As a run without a topology on this host alone would find it.
    count = ranks or max(2, os.cpu_count() or 2)
    return _core.Job.from_groups(["node"], [[0]] * count)


def _asked(
    collective: str | None,
    size: str | None,
    job: _core.Job,
    mpi: str | None,
    root: int,
    ordered: bool,
    oversubscribed: bool,
) -> CollectiveCall:
    if collective is None:
        raise CliError("no collective given, such as allreduce 64K; or --report FILE for the report of a run")
    name = collective.lower().removeprefix("mpi_")
    function, blocking = name, True
    try:
        _core.collective_of(function)
    except _core.Error:
        function, blocking = name.removeprefix("i"), False
        _core.collective_of(function if name.startswith("i") else name)
    if function == "barrier":
        size = "0"
    elif size is None and not sizes_unknown(function):
        raise CliError(f"how many bytes? for instance: palmette explain {collective} 64K")
    parsed = _core.parse_size(size or "0")
    given = -1 if sizes_unknown(function) else parsed
    found = mpi_install.find_all() if mpi is None else []
    name_of_mpi = mpi or (found[0].name if found else "")
    return CollectiveCall(function, given, root, job, name_of_mpi, oversubscribed, blocking, ordered)


def _text(key: str, settings: Sequence[Value]) -> str:
    return next(value.text for value in settings if value.setting.key == key)


def _is_on(key: str, settings: Sequence[Value]) -> bool:
    return _text(key, settings) != "0"


def _forced(settings: Sequence[Value]) -> dict[str, str]:
    """What the environment and files force, as `palmette run` would pass it on."""
    return forced(_text("force", settings))


def _as_json(decision: Decision, known: list[Cost], bound_s: float, measured: list[dict[str, Any]]) -> dict[str, Any]:
    asked = decision.asked
    return {
        "function": asked.function,
        "size_bytes": asked.size_bytes if asked.size_bytes >= 0 else None,
        "root": asked.root,
        "ranks": asked.job.size,
        "mpi": asked.mpi,
        "blocking": asked.blocking,
        "table": decision.table,
        "algorithm": decision.algorithm,
        "reason": decision.reason,
        "forced_by": decision.forced_by,
        "refused": decision.refused,
        "in_rank_order": asked.in_rank_order,
        "row": asdict(decision.row) if decision.row is not None else None,
        "passed_over": [asdict(look) for look in decision.passed_over],
        "bound_s": bound_s or None,
        "predicted": [asdict(one) for one in known],
        "measured": measured,
    }


def _explain_report(path: Path, rules: _core.Table, name: str, model: bool, as_json: bool) -> None:
    report = read_report(path)
    with ActivityLine("predicting each call of the report"):
        rows, notes = explain(report, rules, name, model)
    if as_json:
        gain = report.get("gain")  # reports of earlier versions have none
        emit_json({"report": str(path), "gain": gain, "rows": [asdict(row) for row in rows], "notes": notes})
        return
    click.echo("\n".join([*gain_lines(report), *report_lines(rows, notes)]))
