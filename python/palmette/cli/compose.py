"""`palmette compose`: factor a composition over a machine, verify it, count it, draw it, choose its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from palmette import _core
from palmette.cli.common import CliError, SingleNameOption, WholeNumber, emit_json, json_option, write_file
from palmette.cli.job_options import (
    job_on,
    machine_option,
    make_machine,
    ordered_option,
    placement_option,
    ppn_option,
    ranks_option,
    root_option,
)
from palmette.cli.progress import ActivityLine
from palmette.compose.auto import Variant, ablation, predicted_s
from palmette.compose.composition import Composition, methods_list, named
from palmette.compose.errors import ComposeError
from palmette.compose.factoring import Factoring, bound_s
from palmette.compose.files import read
from palmette.compose.linking import headers, library_for
from palmette.compose.text import (
    lengths_text,
    primitive_lines,
    scratch_line,
    stage_lines,
    stages_json,
)
from palmette.plan.counts import count_json, count_lines
from palmette.plan.svg import TooLargeError, svg
from palmette.present.table import Column, Table, aligned
from palmette.present.words import wrapped
from palmette.topology.file import TopologyError, load
from palmette.units import bytes_text, plural

EXAMPLE = "palmette compose allreduce --hierarchy 2:4"


@click.command("compose", epilog=f"Example: {EXAMPLE} --svg plan.svg", context_settings={"max_content_width": 80})
@click.argument("what", metavar="NAME|FILE", required=False)
@click.option("--hierarchy", metavar="N:M", help="Groups, outermost first: 3:8, or uneven 2:4+3.")
@machine_option
@click.option("--topology", metavar="FILE", help="A topology.json.")
@placement_option("As for palmette plan.")
@ppn_option
@ranks_option
@click.option(
    "--method",
    default="direct",
    show_default=True,
    help="direct, tree.K, ring, with /LANES, @copy, @ipc or @nccl; one for each level.",
)
@click.option(
    "--stripes",
    default="1",
    show_default=True,
    metavar="N|nics",
    help="Parts over ranks of a node, or one for each NIC.",
)
@click.option("--pipeline", type=WholeNumber(1, 512), default=1, show_default=True, help="Parts one after the other.")
@click.option("--landings", type=WholeNumber(1), default=4, show_default=True, help="Partial results buffered at once.")
@click.option(
    "--size",
    "--sizes",
    "size",
    cls=SingleNameOption,
    default="1K",
    show_default=True,
    metavar="BYTES",
    help="Of a block, or of the vector.",
)
@root_option
@ordered_option
@click.option("--auto", is_flag=True, help="Compare direct, hierarchical, striped, pipelined; take the best.")
@click.option("--rank", type=WholeNumber(0), metavar="RANK", help="Show the steps of one rank only.")
@click.option("--svg", "picture", metavar="FILE", help="Write a picture: ranks, times, arrows.")
@click.option("--list", "listed", is_flag=True, help="List MPI's collectives as compositions.")
@click.option("--cflags", is_flag=True, help="Print what to compile C and C++ programs with.")
@click.option("--libs", metavar="MPI", help="Print what to link for mpich, impi, openmpi or abi.")
@json_option
def command(what: str | None, listed: bool, cflags: bool, libs: str | None, as_json: bool, **options: Any) -> None:
    """Factor a composition and show its stages, counts, scratch and proof.

    NAME is one of MPI's collectives (--list); FILE is a composition in JSON, or a Python file that defines
    composition(ranks, bytes).
    """
    if listed:
        _list(as_json)
        return
    if cflags or libs is not None:
        _flags(cflags, libs, as_json)
        return
    if what is None:
        raise CliError(f"no composition given; `palmette compose --list` names some, for instance: {EXAMPLE}")
    try:
        asked = _ask(what, **options)
        if options["auto"]:
            asked = _choose(asked)
        if options["rank"] is not None:
            _show_rank(asked, options["rank"], as_json)
            return
        with ActivityLine(f"factoring for {asked.job.size:,} ranks") as working:
            plan = asked.factoring.plan(asked.composition, asked.job)
            working.now("verifying the plan")
            complaint = plan.verify()
            if options["picture"] is not None:
                write_file(options["picture"], svg(plan, asked.composition.name), "--svg")
    except (_core.Error, ComposeError, TooLargeError, TopologyError) as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(_as_json(asked, plan, complaint, options["picture"]))
    else:
        click.echo("\n".join(_lines(asked, plan, complaint, options["picture"])))
    if complaint is not None:
        click.get_current_context().exit(1)


@dataclass(frozen=True)
class _Request:
    """The request, and the variants compared for it."""

    composition: Composition
    job: _core.Job
    factoring: Factoring
    variants: tuple[Variant, ...] = ()


def _list(as_json: bool) -> None:
    rows = _core.compositions()
    if as_json:
        emit_json([{"name": n, "sentence": s, "rooted": root, "reduces": reduces} for n, s, root, reduces in rows])
        return
    click.echo("\n".join(aligned([row[:2] for row in rows], (0, 1))))


def _flags(cflags: bool, libs: str | None, as_json: bool) -> None:
    """Print what a program needs to compose communication itself."""
    flags: dict[str, str] = {}
    try:
        library = library_for(libs) if libs is not None else None
        if cflags:
            flags["cflags"] = f"-I{headers()}"
    except ComposeError as error:
        raise CliError(str(error)) from None
    if library is not None:
        # In front of the MPI's own, so that its collectives are served as well.
        flags["libs"] = f"-L{library.parent} -l{library.stem.removeprefix('lib')} -Wl,-rpath,{library.parent}"
    if as_json:
        emit_json(flags)
    else:
        click.echo(" ".join(flags.values()))


def _ask(
    what: str,
    *,
    hierarchy: str | None,
    machine: str | None,
    topology: str | None,
    placement: str,
    ppn: int | None,
    ranks: int | None,
    method: str,
    stripes: str,
    pipeline: int,
    landings: int,
    size: str,
    root: int,
    ordered: bool,
    **_: object,
) -> _Request:
    size_bytes = _core.parse_size(size)
    path = Path(what)
    is_file = path.suffix in (".json", ".py") or "/" in what
    made = make_machine(machine, topology, ppn)
    job = job_on(made, placement, ranks) if made is not None else None
    count = job.size if job is not None else ranks
    if count is None and hierarchy is not None:
        count = _ranks_of(hierarchy)
    if is_file:
        composition = read(path, count, size_bytes)
        count = composition.ranks
    elif count is None:
        raise CliError(f"no ranks given; name them with --hierarchy, --machine, --topology or --ranks: {EXAMPLE}")
    else:
        composition = named(
            what, count, size_bytes, root=root, commutative=not ordered, element_bytes=_element(size_bytes)
        )
    inner = hierarchy if job is not None else None
    if job is None:
        job = _core.hierarchy_job(hierarchy or str(count), count)
    parts = _stripes(stripes, topology, job)
    return _Request(composition, job, Factoring(inner, tuple(methods_list(method)), parts, pipeline, landings))


def _stripes(text: str, topology: str | None, job: _core.Job) -> int:
    """A number, or the fewest adapters of any of the job's hosts."""
    if text != "nics":
        if not text.isdecimal() or int(text) < 1:
            raise CliError(f"--stripes {text}: expected a number of 1 or more, or nics")
        return int(text)
    if topology is None:
        raise CliError("--stripes nics needs --topology, whose fabric lists the adapters of each host; give both")
    fabric = load(topology).fabric
    adapters = {host.name: len(host.adapters) for host in fabric.hosts} if fabric is not None else {}
    counts = [adapters.get(name, 0) for name in set(job.hosts)]
    if min(counts) == 0:
        raise CliError(f"--stripes nics: {topology} lists no adapters of some hosts; give a number instead")
    return min(counts)


def _element(size_bytes: int) -> int:
    """Elements of 4 bytes, as most programs have them, where the size allows."""
    return 4 if size_bytes % 4 == 0 else 1


def _ranks_of(hierarchy: str) -> int | None:
    """Number of ranks of a hierarchy, 1 where it can't be parsed: the core reports the error later."""
    groups = 1
    for level in hierarchy.split(":"):
        try:
            counts = [int(count) for count in level.split("+")]
        except ValueError:
            return 1
        groups = sum(counts) if len(counts) > 1 else groups * counts[0]
    return max(groups, 1)


def _choose(asked: _Request) -> _Request:
    with ActivityLine(f"factoring for {asked.job.size:,} ranks") as working:
        variants = ablation(asked.composition, asked.job, working.now)
    return _Request(asked.composition, asked.job, variants[-1].factoring, tuple(variants))


def _show_rank(asked: _Request, rank: int, as_json: bool) -> None:
    f = asked.factoring
    program = asked.composition.core.program(
        asked.job, rank, f.hierarchy, list(f.methods), f.stripes, f.pipeline, f.landings
    )
    if as_json:
        emit_json(program.to_json())
    else:
        click.echo("\n".join(line for long in _head(asked) for line in wrapped(long, rest="    ")))
        click.echo(
            f"rank {rank}; `send`, `recv`, `named`... are the buffers " + ", ".join(asked.composition.core.buffers)
        )
        click.echo()
        click.echo(program.text(), nl=False)


def _head(asked: _Request) -> list[str]:
    composition, job = asked.composition, asked.job
    levels = [plural(level.count, level.name) for level in reversed(job.levels) if level.count > 1]
    on = f" on {', '.join(levels)}" if levels else ""
    return [
        f"{composition.name}: {plural(job.size, 'rank')}{on}, {lengths_text(composition)}",
        *primitive_lines(composition),
        f"factored with {asked.factoring.text()}",
    ]


def _variant_lines(variants: tuple[Variant, ...]) -> list[str]:
    columns: list[Column[Variant]] = [
        Column("", "name", left=True),
        Column("predicted", "seconds", lambda one: one.seconds or None, _core.format_duration),
        Column("of bound", "", lambda one: one.seconds / one.bound_s if one.seconds and one.bound_s else None,
               "{:.2f}".format),
        Column("messages", "messages", show="{:,}".format),
        Column("outer", "", lambda one: f"{bytes_text(one.outer_bytes)} in {one.outer_messages:,}"),
        Column("scratch", "scratch_bytes", show=bytes_text),
    ]  # fmt: skip
    lines = ["", *Table(columns, variants).lines()]
    for one in variants:
        lines += wrapped(f"{one.name}: {one.factoring.text()} (by {one.basis})", "  ", "    ")
    if variants[-1].basis == "bytes and messages":
        lines.append("nothing is known of the links; palmette bench compose --tune measures")
    return lines


def _lines(asked: _Request, plan: _core.Plan, complaint: str | None, picture: str | None) -> list[str]:
    lines = [line for long in _head(asked) for line in wrapped(long, rest="    ")]
    if asked.variants:
        lines += _variant_lines(asked.variants)
    lines += ["", *stage_lines(plan), "", *count_lines(plan, bound_s(asked.composition, asked.job)), scratch_line(plan)]
    seconds = predicted_s(plan)
    if seconds is not None:
        lines.append(f"predicted: {_core.format_duration(seconds)} by the model")
    verdict = f"wrong: {complaint}" if complaint is not None else "verified: right, without deadlocks or races"
    lines += wrapped(verdict, rest="")
    if picture is not None:
        lines.append(f"wrote {picture}")
    return lines


def _as_json(asked: _Request, plan: _core.Plan, complaint: str | None, picture: str | None) -> dict[str, Any]:
    composition = asked.composition
    document: dict[str, Any] = {
        "composition": composition.name,
        "ranks": composition.ranks,
        "blocks": composition.core.blocks,
        "phases": composition.core.phases,
        "buffers": composition.core.buffers,
        "factoring": asked.factoring.__dict__ | {"methods": list(asked.factoring.methods)},
        "stages": stages_json(plan),
        "count": count_json(plan, bound_s(composition, asked.job)),
        "scratch_bytes": plan.scratch_bytes,
        "predicted_s": predicted_s(plan),
        "verified": complaint is None,
        "complaint": complaint,
    }
    if asked.variants:
        document["variants"] = [
            variant.__dict__ | {"factoring": variant.factoring.text()} for variant in asked.variants
        ]
    if picture is not None:
        document["svg"] = picture
    return document
