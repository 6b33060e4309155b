"""Bar chart (SVG) of how many times as fast as the MPI alone calls are: a group for each call, a bar for each MPI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from palmette.bench.evaluate import Row
from palmette.bench.results import Run
from palmette.bench.text import mpi_text, size_text
from palmette.draw.elements import BLUE, GRAY, INK, MUTED, document, text
from palmette.files import write_text
from palmette.measure.errors import BenchError

WIDTH, LEFT, RIGHT = 760.0, 190.0, 60.0
BAR, GAP, BETWEEN = 11.0, 2.0, 12.0
COLORS = (BLUE, "#7fb6d6", INK, "#c8a44d", GRAY)
MARGIN_TICKS = 8
"""More lines than so many are drawn at every second, fifth, ... multiple."""


def write_speedups(path: Path, run: Run, rows: Sequence[Row]) -> None:
    """Write the chart. Raises BenchError where that can't be done."""
    try:
        write_text(path, speedups(run, rows))
    except OSError as error:
        raise BenchError(f"can't write {path}: {error.strerror}; choose another file") from None


def speedups(run: Run, rows: Sequence[Row]) -> str:
    """Return the chart of a run's cells. Raises BenchError where it has none that can be shown.

    Bars are ratios of medians, whiskers their 95 % intervals. Cells with wrong results aren't shown.
    """
    shown = [row for row in rows if not row.wrong and row.ratio.value > 0]
    if not shown:
        raise BenchError(f"run {run.id} has no cell with right results to draw")
    mpis = list(dict.fromkeys(mpi_text(row) for row in shown))
    if len(mpis) > len(COLORS):
        raise BenchError(f"run {run.id} has {len(mpis)} MPIs and variants; a chart shows at most {len(COLORS)}")
    groups: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in shown:
        groups.setdefault((row.placement, row.collective, row.size_bytes), {})[mpi_text(row)] = row
    ordered = sorted(groups.items(), key=lambda one: -max(1 / row.ratio.value for row in one[1].values()))
    high = max(1.2, max(1 / row.ratio.low for row in shown if row.ratio.low > 0))
    top = 74.0
    height = top + len(groups) * (len(mpis) * (BAR + GAP) + BETWEEN) + 34
    return "".join(
        [
            document(WIDTH, height).replace(">", ' role="img" aria-label="speed-ups over the MPI alone">', 1),
            '<rect width="100%" height="100%" fill="#fff"/>',
            *_head(run, mpis),
            *_grid(high, top - 8, height - 26),
            *_bars(ordered, mpis, high, top, several=len({placement for placement, _, _ in groups}) > 1),
            "</svg>\n",
        ]
    )


def _x(speedup: float, high: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * speedup / high


def _head(run: Run, mpis: Sequence[str]) -> list[str]:
    # A picture travels without the page that says what a lab is.
    place = f"emulated cluster, {run.place}" if run.place.startswith("lab ") else run.place
    parts = [
        text(14, 22, "Times as fast as the MPI alone", 15, INK, weight=600),
        text(14, 40, f"{place}; {run.machine['cpu']}, {run.machine['cores']} cores", 11, MUTED),
    ]
    x = 14.0
    for color, name in zip(COLORS, mpis, strict=False):
        parts.append(f'<rect x="{x:.1f}" y="49" width="10" height="10" fill="{color}"/>')
        parts.append(text(x + 15, 58, name, 11, INK))
        x += 36 + 6.4 * len(name)
    return parts


def _grid(high: float, top: float, bottom: float) -> list[str]:
    step = next(step for step in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if high / step <= MARGIN_TICKS)
    parts = []
    tick = 0.0
    while tick <= high:
        x = _x(tick, high)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" stroke="#e4e8ef"/>')
        parts.append(text(x, bottom + 15, f"{tick:g}x", 10.5, MUTED, "middle"))
        tick += step
    x = _x(1, high)
    parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" stroke="{MUTED}"/>')
    return parts


def _bars(
    groups: Sequence[tuple[tuple[str, str, int], dict[str, Row]]],
    mpis: Sequence[str],
    high: float,
    top: float,
    several: bool,
) -> list[str]:
    parts = []
    y = top
    for (placement, collective, size_bytes), by_mpi in groups:
        words = [collective, *([] if size_bytes == 0 else [size_text(size_bytes)]), *([placement] if several else [])]
        middle = y + len(mpis) * (BAR + GAP) / 2 + 3
        parts.append(text(LEFT - 10, middle, " ".join(words), 12, INK, "end"))
        for color, mpi in zip(COLORS, mpis, strict=False):
            if row := by_mpi.get(mpi):
                parts += _bar(row, y, color, high)
            y += BAR + GAP
        y += BETWEEN
    return parts


def _bar(row: Row, y: float, color: str, high: float) -> list[str]:
    speedup = 1 / row.ratio.value
    low, end = 1 / row.ratio.high, 1 / row.ratio.low if row.ratio.low > 0 else high
    center = y + BAR / 2
    x, whisker = _x(speedup, high), _x(end, high)
    return [
        f'<rect x="{LEFT:.1f}" y="{y:.1f}" width="{x - LEFT:.1f}" height="{BAR:.1f}" fill="{color}"/>',
        f'<line x1="{_x(low, high):.1f}" x2="{whisker:.1f}" y1="{center:.1f}" y2="{center:.1f}" stroke="#000" '
        'stroke-opacity="0.5"/>',
        text(max(x, whisker) + 5, y + BAR - 1.5, f"{speedup:.1f}x", 10.5, INK),
    ]
