"""What is printed of a comparison: tables of 80 columns, and what stands below them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from palmette.bench.text import size_text, time_text
from palmette.simulate.compare import Cell, Compared


def table_lines(compared: Compared) -> list[str]:
    """The tables, one for each collective and placement; 80 columns."""
    lines: list[str] = []
    last = None
    for cell in compared.cells:
        if (cell.collective, cell.placement) != last:
            last = (cell.collective, cell.placement)
            lines += ["", f"{cell.collective}, {cell.placement}"]
            lines.append(f"{'size':>6} {'palmette':>9} {'best rival':>20} {'ratio':>6} {'bound':>7}  algorithm")
        best = cell.best_rival
        rival = f"{time_text(cell.rivals_s[best])} {best}" if best is not None else "none is right"
        own = time_text(cell.palmette_s) if cell.palmette_s is not None else "WRONG"
        lines.append(
            f"{size_text(cell.size_bytes):>6} {own:>9} {rival:>20} {_number(cell.ratio):>6} "
            f"{_number(cell.multiple) + 'x' if cell.multiple is not None else '-':>7}  {cell.algorithm}"[:80]
        )
    return lines[1:]


def closing_lines(compared: Compared) -> list[str]:
    """What stands below the tables: how to read them, means, troubles."""
    lines = ["ratio: palmette / best rival, in simulated time. bound: in physical bounds."]
    for collective in dict.fromkeys(cell.collective for cell in compared.cells):
        cells = [cell for cell in compared.cells if cell.collective == collective]
        mean = mean_ratio(cells)
        if mean is not None:
            slower = sum(cell.is_slower for cell in cells)
            lines.append(f"{collective}: geometric mean {mean:.2f} of {len(cells)}, {slower} slower by more than 5 %")
    unchecked = sorted({(cell.collective, cell.size_bytes) for cell in compared.cells if not cell.checked})
    if unchecked:
        named = ", ".join(f"{collective} {size_text(size)}" for collective, size in unchecked)
        lines.append(f"timed without comparing the results, which take too much memory: {named}")
    for trouble in compared.troubles:
        lines.append(f"{trouble.contender} {trouble.collective}, {trouble.placement}: {trouble.text}")
    return lines


def mean_ratio(cells: Sequence[Cell]) -> float | None:
    """Return the geometric mean of the cells' ratios, or None where there are none."""
    ratios = [cell.ratio for cell in cells if cell.ratio is not None]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 99.95 else f"{value:.0f}"
