"""Bar chart (SVG) of how many times as fast as the MPI alone calls are: a group for each call, a bar for each MPI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from palmette.bench.evaluate import Row
from palmette.bench.results import Run
from palmette.bench.text import mpi_text, size_text
from palmette.files import write_text
from palmette.measure.errors import BenchError
from palmette.present.charts import Bar, Bars, swatch
from palmette.present.picture import Picture

_COLORS = ("palmette", "curve1", "curve2", "curve3", "alone")


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
    if len(mpis) > len(_COLORS):
        raise BenchError(f"run {run.id} has {len(mpis)} MPIs and variants; a chart shows at most {len(_COLORS)}")
    color_of = dict(zip(mpis, _COLORS, strict=False))
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in shown:
        groups.setdefault((row.placement, row.collective, row.size_bytes), []).append(row)
    ordered = sorted(groups.items(), key=lambda one: -max(1 / row.ratio.value for row in one[1]))
    several = len({placement for placement, _, _ in groups}) > 1
    picture = Picture("times as fast as the MPI alone")
    # A picture travels without the page that says what a lab is.
    place = f"emulated cluster, {run.place}" if run.place.startswith("lab ") else run.place
    picture.head("Times as fast as the MPI alone", f"{place}; {run.machine['cpu']}, {run.machine['cores']} cores")
    top = picture.legend([(swatch(picture, color), name) for name, color in color_of.items()], 84, 760)
    bars = Bars(190.0, 510.0, max(1.2, max(1 / row.ratio.low for row in shown if row.ratio.low > 0)))
    rows_of_bars = sum(map(len, groups.values()))
    bottom = top + rows_of_bars * (bars.thick + 2) + (len(groups) - 1) * bars.gap + 8
    bars.axis(picture, top - 6, bottom, lambda tick: f"{tick:g}x")
    picture.line(bars.x(1), top - 6, bars.x(1), bottom, "muted")
    named = [
        (
            " ".join(filter(None, [name, size_text(size) if size else "", placement if several else ""])),
            [
                _bar(row, color_of[mpi_text(row)], bars.most)
                for row in sorted(rows, key=lambda row: mpis.index(mpi_text(row)))
            ],
        )
        for (placement, name, size), rows in ordered
    ]
    bars.draw(picture, named, top)
    return picture.document(760, bottom + 26)


def _bar(row: Row, color: str, most: float) -> Bar:
    end = 1 / row.ratio.low if row.ratio.low > 0 else most
    return Bar(1 / row.ratio.value, f"{1 / row.ratio.value:.1f}x", color, 1 / row.ratio.high, end)
