"""Printed output of a comparison: tables of 80 columns, and the notes below them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from palmette.bench.results import EdgeLoad
from palmette.bench.text import size_text
from palmette.present.table import Column, Table
from palmette.present.words import clipped
from palmette.units import time_text
from palmette_lab.simulate.compare import Cell, ComparisonResult

_MPI = "mpi"
"""The algorithm of a call that palmette leaves to the MPI."""


def table_lines(compared: ComparisonResult, rivals: bool = True) -> list[str]:
    """The tables, one for each collective and placement; 80 columns. `rivals`: whether there were any."""

    def rival(cell: Cell) -> str | None:
        best = cell.best_rival
        return f"{time_text(cell.rivals_s[best])} {best}" if best is not None else "none is right" if rivals else None

    columns: list[Column[Cell]] = [
        Column("size", "size_bytes", show=size_text),
        Column(
            "palmette", "", lambda cell: cell.missing.upper() if cell.palmette_s is None else time_text(cell.palmette_s)
        ),
        Column("best rival", "", rival),
        Column("ratio", "ratio", show=_number),
        Column("bound", "multiple", show=lambda multiple: f"{_number(multiple)}x"),
        Column("algorithm", "algorithm", left=True, absent=""),
    ]
    lines: list[str] = []
    for (collective, placement), cells in groupby(compared.cells, key=lambda cell: (cell.collective, cell.placement)):
        lines += ["", clipped(f"{collective}, {placement}", 80), *Table(columns, list(cells)).lines()]
    return lines[1:]


def closing_lines(compared: ComparisonResult) -> list[str]:
    """The notes below the tables: legend, means, calls left to the MPI, failures."""
    lines = ["ratio: palmette / best rival, in simulated time. bound: multiple of the physical bound."]
    for collective, means in groupby(means_of(compared.cells), key=lambda mean: mean.collective):
        *single, whole = means
        each = [f"{mean.placement} {mean.ratio:.2f}" for mean in single if mean.ratio is not None]
        if whole.ratio is not None:
            of = f"geometric mean {whole.ratio:.2f} of {whole.cells}" + (f" ({', '.join(each)})" if each else "")
            lines.append(f"{collective}: {of}, {whole.slower} slower by more than 5 %")
    lines += _left_to_the_mpi(compared.cells)
    unchecked = sorted({(cell.collective, cell.size_bytes) for cell in compared.cells if not cell.checked})
    if unchecked:
        named = ", ".join(f"{collective} {size_text(size)}" for collective, size in unchecked)
        lines.append(f"timed without comparing the results, which take too much memory: {named}")
    for trouble in compared.troubles:
        lines.append(f"{trouble.contender} {trouble.collective}, {trouble.placement}: {trouble.text}")
    return lines


def load_notes(loads: Sequence[EdgeLoad]) -> list[str]:
    """The load by traffic that palmette knows: the busiest link of each level. Empty without traffic."""
    busiest: dict[str, EdgeLoad] = {}
    for load in loads:
        if load.level not in busiest or load.share > busiest[load.level].share:
            busiest[load.level] = load
    if not busiest:
        return []
    each = ", ".join(f"{load.name} {100 * load.share:.0f} % ({level})" for level, load in busiest.items())
    return [f"load of links by the traffic alone, as palmette knows it: {each}; of each level the busiest"]


def load_json(load: EdgeLoad) -> dict[str, Any]:
    """The load of a link by the traffic alone, as a JSON object."""
    return {"name": load.name, "level": load.level, "load": load.share}


@dataclass(frozen=True, slots=True)
class Mean:
    """The geometric mean of a collective's ratios."""

    collective: str
    placement: str | None
    """None: of all placements."""
    ratio: float | None
    cells: int
    slower: int

    def to_json(self) -> dict[str, Any]:
        """As an object."""
        return {
            "collective": self.collective,
            "placement": self.placement,
            "geometric_mean_ratio": self.ratio,
            "cells": self.cells,
            "slower": self.slower,
        }


def means_of(cells: Sequence[Cell]) -> list[Mean]:
    """For each collective the mean of each placement, where there are several, and then that of all."""
    means = []
    for collective in dict.fromkeys(cell.collective for cell in cells):
        mine = [cell for cell in cells if cell.collective == collective]
        placements: list[str | None] = list(dict.fromkeys(cell.placement for cell in mine))
        for placement in [*placements, None] if len(placements) > 1 else [None]:
            part = [cell for cell in mine if placement in (None, cell.placement)]
            slower = sum(cell.is_slower for cell in part)
            means.append(Mean(collective, placement, mean_ratio(part), len(part), slower))
    return means


def _left_to_the_mpi(cells: Sequence[Cell]) -> list[str]:
    """Why palmette left calls to the MPI."""
    at: dict[tuple[str, str], list[int]] = {}
    for cell in cells:
        if cell.algorithm == _MPI:
            at.setdefault((cell.collective, cell.reason), []).append(cell.size_bytes)
    return [
        f"{collective} {', '.join(map(size_text, dict.fromkeys(sizes)))}: mpi: {reason}"
        for (collective, reason), sizes in at.items()
    ]


def mean_ratio(cells: Sequence[Cell]) -> float | None:
    """Return the geometric mean of the cells' ratios, but for times of 0, or None where there are none."""
    ratios = [cell.ratio for cell in cells if cell.ratio]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 99.95 else f"{value:.0f}"
