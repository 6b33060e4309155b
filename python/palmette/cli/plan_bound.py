"""`palmette plan --bound`: the physical limit of a collective on a machine, and what sets it."""

from __future__ import annotations

from typing import Any

import click

from palmette import _core
from palmette.bench.settings import split
from palmette.bound.table import edge_json, edge_lines, level_lines, limit_lines, other_lines, size_lines, terms_json
from palmette.cli.common import CliError, emit_json
from palmette.cli.job_options import JobOptions
from palmette.cli.progress import ActivityLine
from palmette.plan.contents import size_phrase
from palmette.present.words import wrapped

MOST_LINES = 64


def show(
    job: _core.Job, where: JobOptions, collective: str, sizes: str, *, in_network: bool, ports_given: tuple[str, ...],
    at_once: int | None, shared: bool, edges_of: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Print the time that no plan and no library can go below, and what sets it. Raises CliError."""
    try:
        given = [0] if collective == "barrier" else [_core.parse_size(size) for size in split(sizes) or ("",)]
        block_bytes = given[0]
        ports = _ports(ports_given, job)
        with ActivityLine(f"looking for the limit of {job.size:,} ranks"):
            terms_of = {
                bytes_: _core.bound_terms(
                    job, collective, bytes_, where.root, ports=ports, at_once=at_once or 0, messages_only=not shared
                )
                for bytes_ in given
            }
        terms = terms_of[block_bytes]
        if len(terms_of) > 1 and edges_of is not None:
            raise CliError("--edges shows the edges for one size; --size names several")
        edges = None
        if edges_of is not None:
            edges = _core.bound_edges(job, collective, block_bytes, _level(edges_of, job), where.root, ports=ports)
        described = where.phrase(job, collective)
    except _core.Error as error:
        raise CliError(str(error)) from None
    if as_json:
        document: dict[str, Any] = {
            "collective": collective,
            "ranks": job.size,
            "placement": where.placement,
            "root": where.root if _core.is_rooted(collective) else None,
            "in_network": in_network,
        }
        rows = [{"size_bytes": bytes_, **terms_json(terms_of[bytes_], in_network)} for bytes_ in terms_of]
        document |= rows[0] if len(rows) == 1 else {"sizes": rows}
        if edges is not None:
            document["edges"] = {"level": edges_of, "edges": [edge_json(edge) for edge in edges]}
        emit_json(document)
        return
    if len(terms_of) > 1:
        lines = wrapped(f"{collective}, {described}", rest="")
        click.echo("\n".join([*lines, "", *size_lines(terms_of, in_network)]))
        return
    phrase = size_phrase(collective, block_bytes)
    lines = wrapped(f"{collective}, {described}" + (f", {phrase}" if phrase else ""), rest="")
    limits = limit_lines(terms)
    if in_network:
        second = next(index for index, line in enumerate(limits) if line.startswith("bound where"))
        limits = [*limits[second:], "without that:", *("  " + line for line in limits[:second])]
    lines += ["", *limits, "", *level_lines(terms)]
    if others := other_lines(terms):
        lines += ["", *others]
    if edges is not None:
        shown = edges if len(edges) <= MOST_LINES else sorted(edges, key=lambda edge: -edge.seconds)[:MOST_LINES]
        lines += ["", *edge_lines(shown, edges_of or "")]
        if len(shown) < len(edges):
            lines.append(f"... the slowest {len(shown)} of {len(edges):,}; --json has them all")
    click.echo("\n".join(lines))


def _ports(given: tuple[str, ...], job: _core.Job) -> dict[str, int]:
    ports = {}
    for text in given:
        name, equals, count = text.partition("=")
        if not equals or not count.isdigit() or int(count) < 1 or int(count) > 1_000_000:
            raise CliError(f"--ports {text}: expected LEVEL=K with a number of ports K, such as --ports node=4")
        _level(name, job)
        ports[name] = int(count)
    return ports


def _level(name: str, job: _core.Job) -> int:
    names = [level.name for level in job.levels]
    if name not in names:
        raise CliError(f"this job has no level {name!r}; it has {', '.join(names)}")
    return names.index(name)
