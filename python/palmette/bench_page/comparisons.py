"""Side-by-side tables of MPIs, targets, and the overhead of calls passed through, as values for the page's template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from palmette.bench.pass_through import PassCost, pass_costs
from palmette.bench.results import Run
from palmette.bench.side_by_side import MeanSpeed, SideCell, mean_speeds, side_cells
from palmette.bench.side_text import worst_texts
from palmette.bench.targets import Answer, Outcome
from palmette.bench.text import name_text, size_text, time_text


@dataclass(frozen=True)
class Number:
    """A cell of a table; `mark` is its CSS class: `good` (no slower than the fastest), `bad`, `fastest` or empty."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Line:
    """One row: its name, and numbers in the columns."""

    name: str
    numbers: list[Number]


@dataclass(frozen=True)
class Table:
    """The cells of one collective and placement."""

    title: str
    mpis: list[str]
    lines: list[Line]
    rivals: list[str] = field(default_factory=list)
    bounded: bool = False


def _name(mpi: str) -> str:
    return name_text(mpi)


def _speed(value: float | None) -> Number:
    """Slower by up to 5 % is neither good nor bad."""
    if value is None:
        return Number("–")
    return Number(f"{value:.2f}", "good" if value >= 1 else "bad" if value < 1 / 1.05 else "")


def side_tables(cells: Sequence[SideCell]) -> list[Table]:
    """Return a table for each placement and collective: times alone, times with palmette, speeds, and
    the fastest time with palmette in physical limits where these are known.
    """
    tables = []
    for (placement, collective), group in groupby(cells, key=lambda cell: (cell.placement, cell.collective)):
        mine = list(group)
        mpis = list(dict.fromkeys(mpi for cell in mine for mpi in cell.alone_s))
        rivals = list(dict.fromkeys(rival for cell in mine for rival in cell.rivals_s))
        bounded = any(cell.multiple is not None for cell in mine)
        lines = [Line(size_text(cell.size_bytes), _numbers(cell, mpis, rivals, bounded)) for cell in mine]
        tables.append(Table(f"{collective}, {placement}", [_name(mpi) for mpi in mpis], lines, rivals, bounded))
    return tables


def _numbers(cell: SideCell, mpis: Sequence[str], rivals: Sequence[str], bounded: bool) -> list[Number]:
    alone = [
        Number(time_text(cell.alone_s[mpi]), "fastest" if mpi == cell.fastest else "")
        if mpi in cell.alone_s
        else Number("–")
        for mpi in mpis
    ]
    palmette = [Number(time_text(cell.palmette_s[mpi])) if mpi in cell.palmette_s else Number("–") for mpi in mpis]
    speeds = [_speed(cell.speed(mpi) if mpi in cell.palmette_s else None) for mpi in mpis]
    others = [Number(time_text(cell.rivals_s[one])) if one in cell.rivals_s else Number("–") for one in rivals]
    to_others = [_speed(cell.speed_to_rival(one) if one in cell.rivals_s else None) for one in rivals]
    multiples = [Number(f"{cell.multiple:.2f}" if cell.multiple is not None else "–")] if bounded else []
    return [*alone, *palmette, *speeds, *others, *to_others, *multiples]


def mean_table(means: Sequence[MeanSpeed]) -> Table | None:
    """Return the geometric means of speeds: by MPI, of the best, and the lowest with its size; None without any."""
    if not means:
        return None
    mpis = list(dict.fromkeys(mpi for mean in means for mpi in mean.by_mpi))
    rivals = list(dict.fromkeys(rival for mean in means for rival in mean.to_rivals))
    lines = []
    for mean in means:
        speeds = [_speed(mean.by_mpi.get(mpi)) for mpi in mpis]
        lowest = _speed(mean.lowest.best_speed)
        at = Number(f"{lowest.text} at {size_text(mean.lowest.size_bytes)}", lowest.mark)
        others = [_speed(mean.to_rivals.get(rival)) for rival in rivals]
        lines.append(Line(f"{mean.collective}, {mean.placement}", [*speeds, _speed(mean.best), at, *others]))
    return Table("geometric means", [_name(mpi) for mpi in mpis], lines, rivals)


def pass_table(costs: Sequence[PassCost]) -> list[Line]:
    """Return a line for each call and MPI: PMPI_X, MPI_X, difference, quartiles."""
    return [
        Line(
            f"{_name(cost.mpi)}: {cost.function} on {cost.where}",
            [
                Number(f"{cost.alone_ns:.1f}"),
                Number(f"{cost.palmette_ns:.1f}"),
                Number(f"{cost.more_ns:+.1f}"),
                Number(f"{cost.low_ns:+.1f} to {cost.high_ns:+.1f}"),
            ],
        )
        for cost in costs
    ]


@dataclass(frozen=True)
class TargetLine:
    """A target, its limit, the answer and its mark, and the worst cell of each MPI."""

    text: str
    limit: str
    answer: Answer
    mark: str
    worst: str


def target_table(outcomes: Sequence[Outcome]) -> list[TargetLine]:
    """Return a line for each target."""
    return [
        TargetLine(
            outcome.target.text,
            f"{'≥' if outcome.target.kind == 'mean_speed' else '≤'} {outcome.target.limit:g}",
            outcome.answer,
            {"met": "faster", "missed": "slower", "undecided": "ambiguous", "not measured": "same"}[outcome.answer],
            ", ".join(worst_texts(outcome)),
        )
        for outcome in outcomes
    ]


@dataclass(frozen=True)
class Comparisons:
    """All tables of one run."""

    means: Table | None
    tables: list[Table]
    passes: list[Line]
    targets: list[TargetLine]


def comparisons(run: Run, outcomes: Sequence[Outcome]) -> Comparisons:
    """Return what the page shows of a run."""
    cells = side_cells(run)
    return Comparisons(
        mean_table(mean_speeds(cells)), side_tables(cells), pass_table(pass_costs(run.jobs)), target_table(outcomes)
    )
