"""A comparison as a Markdown page, for docs/results: means first, then every cell, targets missed marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from palmette.bench.text import size_text
from palmette.units import time_text
from palmette_lab.simulate.compare import NEAR_BOUND, NEAR_BOUND_OTHERS, SLOWER_RATIO, WON, Cell, ComparisonResult
from palmette_lab.simulate.table import Mean, means_of


def results_page(title: str, sentence: str, command: str, simgrid: str, compared: ComparisonResult) -> str:
    """Return the page. `command` makes it again."""
    return "\n".join(_lines(title, sentence, command, simgrid, compared)) + "\n"


def _lines(title: str, sentence: str, command: str, simgrid: str, compared: ComparisonResult) -> Iterator[str]:
    cells = [cell for cell in compared.cells if cell.rivals_s or cell.palmette_s is None]
    yield from (f"# {title}", "", sentence, "")
    yield f"SimGrid {simgrid}; [how it is simulated, and what that can't see](../method/simulating.md). Made by"
    yield from ("", f"    {command}", "")
    slower = [cell for cell in cells if cell.is_slower or cell.palmette_s is None]
    good = sum(cell.is_good for cell in cells)
    yield f"Of {len(cells)} cells {len(cells) - len(slower)} are not slower than the best rival by more than"
    yield (
        f"{100 * (SLOWER_RATIO - 1):.0f} %, and {good} are at least {WON} times faster than it "
        f"or within {NEAR_BOUND_OTHERS} bounds"
    )
    yield f"({NEAR_BOUND['bcast']} for broadcast and reductions)."
    alone = [cell for cell in compared.cells if not cell.rivals_s and cell.palmette_s is not None]
    if alone:
        near = sum(cell.is_good for cell in alone)
        yield f"{len(alone)} more have no right rival that ended in its time; {near} of them are within these bounds."
    for note in compared.notes:
        yield from ("", f"Note: {note}.")
    yield from ("", "## Means", "")
    yield from _means(compared.cells)
    yield from ("", "## Cells", "")
    yield "Simulated time with palmette / ratio to the best rival / multiple of the bound."
    yield "**Bold**: slower by more than 5 %. *Slanted*: neither far ahead of the best rival nor near the bound."
    if not all(cell.checked for cell in cells):
        yield "~: timed without comparing the results, which take too much memory."
    for collective in dict.fromkeys(cell.collective for cell in compared.cells):
        yield from ("", f"### {collective}", "")
        yield from _cells([cell for cell in compared.cells if cell.collective == collective])
    if compared.troubles:
        yield from (
            "",
            "## Left out",
            "",
            "What was wrong, crashed or took too long, and is compared with nowhere:",
            "",
        )
        yield from (
            f"- {trouble.contender}, {trouble.collective}, {trouble.placement}: {trouble.text}"
            for trouble in compared.troubles
        )


def _means(cells: Sequence[Cell]) -> Iterator[str]:
    placements = list(dict.fromkeys(cell.placement for cell in cells))
    yield "Geometric mean of palmette's time over the best rival's; in brackets cells slower by more than 5 %."
    yield ""
    yield "| collective | " + " | ".join(placements) + " | all |"
    yield "|---" * (len(placements) + 2) + "|"
    for collective in dict.fromkeys(cell.collective for cell in cells):
        means = {mean.placement: mean for mean in means_of(cells) if mean.collective == collective}
        whole = means[None]
        yield f"| {collective} | " + " | ".join(_mean_text(means.get(at, whole)) for at in [*placements, None]) + " |"


def _mean_text(mean: Mean) -> str:
    return "-" if mean.ratio is None else f"{mean.ratio:.2f}" + (f" ({mean.slower})" if mean.slower else "")


def _cells(cells: Sequence[Cell]) -> Iterator[str]:
    placements = list(dict.fromkeys(cell.placement for cell in cells))
    at = {(cell.placement, cell.size_bytes): cell for cell in cells}
    yield "| size | " + " | ".join(placements) + " | algorithm |"
    yield "|---" * (len(placements) + 2) + "|"
    for size in dict.fromkeys(cell.size_bytes for cell in cells):
        found = [at.get((placement, size)) for placement in placements]
        names = dict.fromkeys(cell.algorithm for cell in found if cell is not None and cell.algorithm)
        texts = [_cell_text(cell) if cell is not None else "-" for cell in found]
        yield f"| {size_text(size)} | " + " | ".join(texts) + f" | {', '.join(names)} |"


def _cell_text(cell: Cell) -> str:
    if cell.palmette_s is None:
        return f"**{cell.missing}**"
    parts = [time_text(cell.palmette_s), "-" if cell.ratio is None else f"{cell.ratio:.2f} {cell.best_rival}"]
    parts.append("-" if cell.multiple is None else f"{cell.multiple:.2f}x")
    text = ("" if cell.checked else "~") + " / ".join(parts)
    if cell.is_slower:
        return f"**{text}**"
    return text if cell.is_good else f"*{text}*"
