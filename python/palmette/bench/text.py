"""Text tables of a benchmark, 80 columns wide, and their formatting helpers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from palmette import _core
from palmette.bench.compare import Change
from palmette.bench.evaluate import Row
from palmette.bench.results import Run
from palmette.measure.statistics import Ratio, Summary, Verdict
from palmette.present.table import Column, Table
from palmette.present.words import wrapped
from palmette.units import plural, time_text

MPI_NAMES = {"mpich": "MPICH", "openmpi": "Open MPI", "impi": "Intel MPI"}
VERDICTS: tuple[Verdict, ...] = ("faster", "same", "ambiguous", "slower")
MARKS: dict[str, str] = {"faster": "good", "slower": "bad", "ambiguous": "doubt", "same": ""}


def spread_text(summary: Summary) -> str:
    """`13.2 ms ±2%`: median and half the distance of the quartiles."""
    return f"{time_text(summary.median_s)} ±{100 * summary.spread:.0f}%"


def ratio_text(ratio: Ratio) -> str:
    """`0.51 0.49-0.53`: the ratio of medians and its interval."""
    if not math.isfinite(ratio.value):
        return "-"
    return f"{ratio.value:.2f} {ratio.low:.2f}-{ratio.high:.2f}"


def multiple_text(row: Row) -> str:
    """`1.04x`: palmette's multiple of the bound; in brackets where the time may not be bound by the links."""
    return _multiple_text(row, row.palmette_multiple)


def _multiple_text(row: Row, multiple: float | None) -> str:
    if multiple is None:
        return "-"
    text = f"{multiple:.2f}x" if multiple < 99.95 else f"{multiple:.0f}x"
    return text if row.trusted else f"({text})"


def size_text(size_bytes: int) -> str:
    """`64K`, `64 B`, and `-` for what has no size."""
    if size_bytes == 0:
        return "-"
    text = _core.format_size(size_bytes)
    return f"{text} B" if text.isdigit() else text


def name_text(mpi: str) -> str:
    """`MPICH`; of a variant `MPICH/hosts`."""
    mpi, slash, variant = mpi.partition("/")
    return MPI_NAMES.get(mpi, mpi) + slash + variant


def mpi_text(row: Row) -> str:
    """`MPICH 5.0.2`; of a variant `MPICH 5.0.2, palmette/hosts`."""
    mpi, _, variant = row.mpi.partition("/")
    return f"{name_text(mpi)} {row.mpi_version}" + (f", palmette/{variant}" if variant else "")


def tables(rows: Iterable[Row]) -> list[tuple[str, Table[Row]]]:
    """Return one table with its title for each MPI and placement."""
    groups = [list(found) for _, found in groupby(rows, key=lambda row: (row.mpi, row.placement))]
    return [(f"{mpi_text(cells[0])}, {cells[0].placement}", Table(cell_columns(cells), cells)) for cells in groups]


def cell_columns(cells: Sequence[Row]) -> list[Column[Row]]:
    """Return the columns of a table of these cells."""
    columns: list[Column[Row]] = [
        Column("collective", "collective", show=short, left=True),
        Column("size", "size_bytes", show=size_text),
        Column("best rival" if any(row.simulated for row in cells) else "MPI alone", "alone", show=spread_text),
        Column("palmette", "palmette", show=spread_text),
        Column("ratio, 95 % CI", "ratio", show=ratio_text, note="of medians, palmette / MPI alone"),
        Column(
            "bound", "", multiple_text, note="time in physical bounds, in brackets where the links may not limit it"
        ),
    ]
    if any(row.network_bound for row in cells):
        columns.append(Column("in net", "", lambda row: _multiple_text(row, row.network_multiple)))
    return [
        *columns,
        Column("verdict", "", lambda row: "WRONG" if row.wrong else row.ratio.verdict, left=True, mark=mark_of),
    ]


def mark_of(row: Row) -> str:
    """Return how a row's verdict is colored."""
    return "bad" if row.wrong else MARKS[row.ratio.verdict]


def short(collective: str) -> str:
    """Return the name, of the longest an abbreviation."""
    return {"reduce_scatter_block": "red_scat_blk", "reduce_scatter": "red_scatter"}.get(collective, collective)


def summary_lines(run: Run, rows: Sequence[Row]) -> list[str]:
    """Return the lines below the tables: counts of verdicts, a legend, failures."""
    counts = Counter(row.ratio.verdict for row in rows if not row.wrong)
    lines = []
    if rows:
        lines.append(
            f"{plural(len(rows), 'cell')}: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
        )
        lines.append("±: half the distance of the quartiles. ratio: palmette / MPI alone.")
    if (memory := run.settings.get("memory", "host")) != "host":
        lines.append(f"buffers in memory of the kind: {memory}")
        if copies := run.settings.get("copies"):
            lines.append(f"alone can't read it: {', '.join(copies)}; MPI alone: with the program's own copies")
    if rows and rows[0].own_clocks:
        lines.append("Hosts have clocks of their own: calls run from a barrier on, and times are a little low.")
        if any(row.bound for row in rows):
            lines.append("bound: time in physical bounds, in brackets therefore.")
    elif any(row.bound for row in rows):
        lines.append("bound: time in physical bounds; in brackets where it is under 10 ms, or under 5")
        floor = "" if run.settings.get("floor") else " (not measured: --floor)"
        lines.append(f"times what it is with the link rates off{floor}.")
    if any(row.network_bound for row in rows):
        lines.append("in net: time in bounds where aggregators reduce; bound: hosts alone.")
    if any(row.palmette_loaded_multiple is not None for row in rows):
        lines.append("loaded: the bound includes what the traffic moved over the links, up to twice")
        lines.append("the bound of the empty network; beyond that, it is that one.")
    lines += _hidden_lines(rows)
    if not run.settings.get("preload", True):
        lines.append("No preload: both columns are the MPI alone, and every verdict should be `same`.")
    left_out = sum(row.left_out for row in rows)
    if left_out:
        pairs = sum(row.pairs for row in rows)
        lines.append(f"{left_out} of {pairs} pairs left out: a rank started too late, the machine was busy.")
    for job in run.jobs:
        lines += (
            wrapped(f"failed: {job.mpi} {job.where} ({job.kind}): {job.error}", whole_words=False) if job.error else []
        )
    return lines


def hidden_text(row: Row) -> str:
    """`0 % → 52 %`: overlapped share of a nonblocking call's time, alone and with palmette; else empty."""
    if row.hidden_alone is None or row.hidden_palmette is None:
        return ""
    return f"{100 * row.hidden_alone:.0f} % → {100 * row.hidden_palmette:.0f} %"


def _hidden_lines(rows: Sequence[Row]) -> list[str]:
    lines = [
        f"  {name_text(row.mpi)} {row.placement} {row.collective} {size_text(row.size_bytes)}: {text}"
        for row in rows
        if (text := hidden_text(row))
    ]
    return ["hidden behind computation that calls MPI_Test, alone → with palmette:", *lines] if lines else []


def change_table(changes: Sequence[Change], first: Run, second: Run) -> Table[Change]:
    """Return the table of a comparison of two runs."""
    return Table(
        [
            Column("MPI", "mpi", left=True, most=12),
            Column("placement", "placement", left=True, most=12),
            Column("collective", "collective", show=short, left=True),
            Column("size", "size_bytes", show=size_text),
            Column(f"run {first.id}", "before.median_s", show=time_text),
            Column(f"run {second.id}", "after.median_s", show=time_text),
            Column("ratio", "palmette.value", show="{:.2f}".format),
            Column("control", "alone.value", show="{:.2f}".format),
            Column(
                "verdict", "", lambda one: one.palmette.verdict + ("" if one.alone.verdict == "same" else " ?"),
                left=True, mark=lambda one: MARKS[one.palmette.verdict],
            ),
        ],
        changes,
    )  # fmt: skip
