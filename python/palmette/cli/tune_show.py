"""What `palmette tune` prints: the plan before, the verdicts after."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.present.table import Column, Table
from palmette.tune.candidates import sizes_unknown
from palmette.tune.plan import SitePlan
from palmette.tune.rows import FinalVerdict
from palmette.tune.session import MOST_REFINEMENTS, Outcome
from palmette.units import plural, time_text


def plan_lines(plans: Sequence[SitePlan], budget: float, base: Path | None) -> list[str]:
    """Return what is going to be measured, and how long it should take."""
    lines: list[str] = [f"tuning against {base or 'the built-in table'}, {budget:.0f} s at most"]
    for plan in plans:
        share = budget / len(plans)
        lines.append(f"{plan.site.description}, {plural(plan.job.size, 'rank')}:")
        lines.append(
            f"  2 to {2 + MOST_REFINEMENTS} jobs, {plural(len(plan.questions), 'cell')}, {plan.measured} candidates of"
            f" {plan.tried} that fit;"
        )
        lines.append(f"  about {plan.expected_s:.0f} s expected, {share:.0f} s at most")
    return lines


def result_lines(outcome: Outcome, output: Path, store: Path) -> list[str]:
    """Return the verdicts as a table, and what was written."""
    lines: list[str] = []
    for plan in dict.fromkeys(id(site) for site, _ in outcome.verdicts):
        found = [(site, one) for site, one in outcome.verdicts if id(site) == plan]
        lines += ["", found[0][0].site.description, *_verdict_lines(found[0][0], [one for _, one in found])]
    better = sum(1 for _, one in outcome.verdicts if one.verdict.outcome == "better")
    unsure = sum(1 for _, one in outcome.verdicts if one.verdict.outcome == "unsure")
    lines.append("")
    if any(bound_s(*one) for one in outcome.verdicts):
        lines.append("bound: the taken one's time in physical limits")
    lines.append(
        f"{better} of {plural(len(outcome.verdicts), 'cell')} better than the present choice by more than 5 %"
        + (f", {unsure} with too few samples to say" if unsure else "")
        + f"; {outcome.seconds:.0f} s"
    )
    lines += [f"job: {error}" for error in outcome.errors]
    open_ones = sum(one.verdict.outcome == "better" and not one.confirmed for _, one in outcome.verdicts)
    if open_ones:
        lines.append(f"{plural(open_ones, 'cell')} better in the search alone: no row without --unconfirmed")
    if outcome.interrupted:
        lines.append("interrupted: what was measured by then is kept")
    if outcome.rows:
        lines.append(f"{output}: {plural(len(outcome.rows), 'new row')} in front; samples in {store}")
        lines.append(f"Use it: palmette run --table {shlex.quote(str(output))} mpiexec ...")
        lines.append(f"Why:    palmette explain {outcome.rows[0]['function']} SIZE --table {shlex.quote(str(output))}")
    else:
        lines.append(f"no row to write: the present table stays; samples in {store}")
    return lines


def bound_s(plan: SitePlan, one: FinalVerdict) -> float | None:
    """Return the physical limit of a cell, None where the topology is unknown or only ranks know their sizes."""
    cell = one.verdict.cell
    if plan.machine is None or sizes_unknown(cell.function):
        return None
    return _core.bound(plan.job, _core.collective_of(cell.function), cell.size_bytes, cell.root).seconds or None


def _verdict_lines(plan: SitePlan, found: Sequence[FinalVerdict]) -> list[str]:
    """Two lines a cell: the times, and below them the specification, which may be long and is there to be copied."""
    says = {"better": "better", "present": "present stays", "unsure": "too few samples"}

    def said(one: FinalVerdict) -> str:
        outcome = one.verdict.outcome
        return says[outcome] + ("" if one.confirmed or outcome != "better" else ", not confirmed")

    def multiple(one: FinalVerdict) -> float | None:
        limit = bound_s(plan, one)
        return one.verdict.time_s / limit if limit and one.verdict.time_s else None

    columns: list[Column[FinalVerdict]] = [
        Column("cell", "verdict.cell", show=lambda cell: f"{cell.function} {_core.format_size(cell.size_bytes)}"
               if cell.size_bytes else cell.function, left=True),
        Column("present", "", lambda one: one.verdict.present_s or None, time_text, absent=""),
        Column("MPI alone", "verdict.mpi_s", show=time_text, absent=""),
        Column("taken", "", lambda one: one.verdict.time_s or None, time_text, absent=""),
    ]  # fmt: skip
    if any(bound_s(plan, one) for one in found):
        columns.append(
            Column("bound", "", multiple, lambda times: f"{times:.2f}" if times < 99.95 else f"{times:.0f}", absent="")
        )
    columns.append(Column("", "", said, left=True))
    head, *shown = Table(columns, found).lines(first="  ")
    return [head] + [
        part
        for line, one in zip(shown, found, strict=True)
        for part in (line, f"      {one.verdict.spec if one.verdict.outcome == 'better' else one.before}")
    ]


def result_json(outcome: Outcome, output: Path, store: Path) -> dict[str, Any]:
    """Return the outcome as a JSON object."""
    return {
        "table": str(output) if outcome.rows else None,
        "store": str(store),
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
        "errors": outcome.errors,
        "rows": outcome.rows,
        "cells": [_cell_json(plan, one) for plan, one in outcome.verdicts],
    }


def _cell_json(plan: SitePlan, one: FinalVerdict) -> dict[str, Any]:
    verdict = one.verdict
    return {
        "site": plan.site.description,
        "mpi": plan.mpi,
        "placement": plan.site.placement,
        "function": verdict.cell.function,
        "size_bytes": verdict.cell.size_bytes,
        "root": verdict.cell.root,
        "outcome": verdict.outcome,
        "spec": verdict.spec,
        "present": one.before,
        "time_s": verdict.time_s,
        "present_s": verdict.present_s,
        "mpi_s": verdict.mpi_s,
        "bound_s": bound_s(plan, one),
        "rounds": verdict.rounds,
        "confirmed": one.confirmed,
        "ranks": [one.holds.min_ranks, one.holds.max_ranks],
        "nodes": [one.holds.min_nodes, one.holds.max_nodes],
    }
