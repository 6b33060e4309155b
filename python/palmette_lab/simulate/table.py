"""Printed output of a comparison: tables of 80 columns, and the notes below them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from palmette.bench.results import EdgeLoad
from palmette.bench.text import size_text, time_text
from palmette_lab.simulate.compare import Cell, Compared

_WIDTH = 80
_MPI = "mpi"
"""The algorithm of a call that palmette leaves to the MPI."""


def table_lines(compared: Compared, rivals: bool = True) -> list[str]:
    """The tables, one for each collective and placement; 80 columns. `rivals`: whether there were any."""
    lines: list[str] = []
    last = None
    for cell in compared.cells:
        if (cell.collective, cell.placement) != last:
            last = (cell.collective, cell.placement)
            lines += ["", _cut(f"{cell.collective}, {cell.placement}", _WIDTH)]
            lines.append(f"{'size':>6} {'palmette':>9} {'best rival':>20} {'ratio':>6} {'bound':>7}  algorithm")
        best = cell.best_rival
        rival = f"{time_text(cell.rivals_s[best])} {best}" if best is not None else "none is right" if rivals else "-"
        own = time_text(cell.palmette_s) if cell.palmette_s is not None else cell.missing.upper()
        line = (
            f"{size_text(cell.size_bytes):>6} {own:>9} {rival:>20} {_number(cell.ratio):>6} "
            f"{_number(cell.multiple) + 'x' if cell.multiple is not None else '-':>7}  "
        )
        lines.append(line + _cut(cell.algorithm, _width_left(line)))
    return lines[1:]


def closing_lines(compared: Compared) -> list[str]:
    """The notes below the tables: legend, means, algorithms in full, failures."""
    lines = ["ratio: palmette / best rival, in simulated time. bound: multiple of the physical bound."]
    for collective, means in groupby(means_of(compared.cells), key=lambda mean: mean.collective):
        *single, whole = means
        each = [f"{mean.placement} {mean.ratio:.2f}" for mean in single if mean.ratio is not None]
        if whole.ratio is not None:
            of = f"geometric mean {whole.ratio:.2f} of {whole.cells}" + (f" ({', '.join(each)})" if each else "")
            lines.append(f"{collective}: {of}, {whole.slower} slower by more than 5 %")
    lines += _algorithms_in_full(compared.cells)
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


def _algorithms_in_full(cells: Sequence[Cell]) -> list[str]:
    """Names that the tables cut, and why palmette left calls to the MPI."""
    lines = []
    at: dict[tuple[str, str], list[int]] = {}
    for cell in cells:
        is_cut = len(cell.algorithm) > _width_left(" " * _TEXT)
        if is_cut or cell.algorithm == _MPI:
            what = f"mpi: {cell.reason}" if cell.algorithm == _MPI else cell.algorithm
            at.setdefault((cell.collective, what), []).append(cell.size_bytes)
    for (collective, what), sizes in at.items():
        lines.append(f"{collective} {', '.join(map(size_text, dict.fromkeys(sizes)))}: {what}")
    return lines


_TEXT = 6 + 1 + 9 + 1 + 20 + 1 + 6 + 1 + 7 + 2
"""Columns before the algorithm."""


def _width_left(line: str) -> int:
    return max(_WIDTH - len(line), 1)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def mean_ratio(cells: Sequence[Cell]) -> float | None:
    """Return the geometric mean of the cells' ratios, but for times of 0, or None where there are none."""
    ratios = [cell.ratio for cell in cells if cell.ratio]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 99.95 else f"{value:.0f}"
