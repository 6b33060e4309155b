"""MPIs side by side, targets, and pass-through overhead: tables for text of 80 columns and for the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

from palmette.bench.pass_through import PassCost
from palmette.bench.side_by_side import MeanSpeed, SideCell
from palmette.bench.targets import Outcome, Target, Value
from palmette.bench.text import MPI_NAMES, short, size_text
from palmette.present.table import Column, Table
from palmette.present.words import wrapped

_SHORT = {"mpich": "MPICH", "openmpi": "OMPI", "impi": "Intel"}


def number_text(value: float) -> str:
    """Three digits, four and more where they are whole: `0.412`, `41.2`, `2624000`."""
    if value >= 99.95:
        return f"{value:.0f}"
    digits = 1 if value >= 9.995 else 2 if value >= 0.9995 else 3
    return f"{value:.{digits}f}"


def _unit(cells: Sequence[SideCell]) -> tuple[str, float]:
    """One unit for a table: microseconds, or milliseconds where a time has ten seconds."""
    most = max(max([*cell.alone_s.values(), *cell.palmette_s.values(), *cell.rivals_s.values()]) for cell in cells)
    return ("ms", 1e3) if most >= 10 else ("us", 1e6)


def _short(mpi: str) -> str:
    return _SHORT.get(mpi, mpi)


def _speed_text(value: float) -> str:
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def _mark(value: float | None) -> str:
    """Slower by up to 5 % is neither good nor bad."""
    return "" if value is None else "good" if value >= 1 else "bad" if value < 1 / 1.05 else ""


def _to(rival: str) -> str:
    return f"to {rival}" if len(rival) < 8 else "to rival"


def _times(
    names: Sequence[str], times: Callable[[SideCell], dict[str, float]], per_s: float, group: str
) -> list[Column[SideCell]]:
    def of(name: str, cell: SideCell) -> str | None:
        return number_text(times(cell)[name] * per_s) if name in times(cell) else None

    return [Column(_short(name), "", partial(of, name), group=group) for name in names]


def _speeds(mpis: Sequence[str]) -> list[Column[SideCell]]:
    def of(mpi: str, cell: SideCell) -> float | None:
        return cell.speed(mpi) if mpi in cell.palmette_s else None

    def mark(mpi: str, cell: SideCell) -> str:
        return _mark(of(mpi, cell))

    return [
        Column(_short(mpi), "", partial(of, mpi), _speed_text, group="speed", mark=partial(mark, mpi)) for mpi in mpis
    ]


def _to_rival(rival: str, cell: SideCell) -> float | None:
    return cell.speed_to_rival(rival) if rival in cell.rivals_s else None


def _alone(mpi: str, per_s: float, cell: SideCell) -> str:
    if mpi not in cell.alone_s:
        return "- "
    return number_text(cell.alone_s[mpi] * per_s) + ("*" if mpi == cell.fastest else " ")


def side_tables(cells: Sequence[SideCell]) -> list[tuple[str, Table[SideCell]]]:
    """Return one table with its title for each placement and collective: times by MPI and rival, and
    palmette's speed to the fastest MPI.

    Rivals and variants take the columns of palmette's times under each MPI: then only its best time is shown, with its
    speed relative to the fastest MPI and to each rival.
    """
    groups = [list(found) for _, found in groupby(cells, key=lambda cell: (cell.placement, cell.collective))]
    return [
        (
            mine[0].collective + (f", {mine[0].placement}" if mine[0].placement != "block" else ""),
            Table(_columns(mine), mine),
        )
        for mine in groups
    ]


def _columns(cells: Sequence[SideCell]) -> list[Column[SideCell]]:
    mpis = list(dict.fromkeys(mpi for cell in cells for mpi in cell.alone_s))
    rivals = list(dict.fromkeys(rival for cell in cells for rival in cell.rivals_s))
    variants = list(dict.fromkeys(name for cell in cells for name in cell.variants_s))
    unit, per_s = _unit(cells)
    columns: list[Column[SideCell]] = [Column("size", "size_bytes", show=size_text, left=True)]
    columns += [Column(_short(mpi), "", partial(_alone, mpi, per_s), group=f"MPI alone, {unit}") for mpi in mpis]
    in_network = any(cell.network_multiple is not None for cell in cells)
    if rivals or variants or in_network:
        columns += _times(rivals, lambda cell: cell.rivals_s, per_s, f"rivals, {unit}")
        columns += _times(variants, lambda cell: cell.variants_s, per_s, f"palmette so set, {unit}")
        columns += [
            Column("best", "", lambda cell: number_text(min(cell.palmette_s.values()) * per_s)),
            Column("speed", "best_speed", show=_speed_text, mark=lambda cell: _mark(cell.best_speed)),
        ]
        columns += [
            Column(_to(rival), "", partial(_to_rival, rival), _speed_text, note=f"speed to {rival}") for rival in rivals
        ]
    else:
        columns += _times(mpis, lambda cell: cell.palmette_s, per_s, f"palmette, {unit}")
        columns += _speeds(mpis)
    if any(cell.multiple is not None for cell in cells):
        columns.append(Column("bound", "multiple", show=_speed_text, note="the fastest time in physical limits"))
    return [*columns, *([Column("in net", "network_multiple", show=_speed_text)] if in_network else [])]


def side_lines(cells: Sequence[SideCell]) -> list[str]:
    """Return the tables, below what their columns mean."""
    if not cells:
        return []
    lines = ["speed: time of the fastest MPI alone (*) / time with palmette; more is faster"]
    if any(cell.multiple is not None for cell in cells):
        lines.append("bound: the fastest time with palmette in physical limits")
    if any(cell.network_multiple is not None for cell in cells):
        lines.append("in net: the same, variants included, where aggregators reduce on the way")
    variants = list(dict.fromkeys(name for cell in cells for name in cell.variants_s))
    if any(cell.rivals_s for cell in cells) or variants:
        lines.append("best: palmette on its fastest MPI")
    if variants:
        lines += wrapped(f"{', '.join(variants)}: palmette so set, on its fastest MPI")
    for title, table in side_tables(cells):
        lines += ["", title, *table.lines()]
    return lines


def mean_table(means: Sequence[MeanSpeed]) -> Table[MeanSpeed]:
    """Return a row for each collective: the geometric means by MPI, the best, to rivals, and the slowest size."""
    several = len({mean.placement for mean in means}) > 1

    def speed(name: str, of: Callable[[MeanSpeed], dict[str, float]], title: str, note: str = "") -> Column[MeanSpeed]:
        def mark(mean: MeanSpeed) -> str:
            return _mark(of(mean).get(name))

        return Column(title, "", lambda mean: of(mean).get(name), _speed_text, mark=mark, note=note)

    def lowest(mean: MeanSpeed) -> str:
        size = size_text(mean.lowest.size_bytes).removesuffix(" B")
        return _speed_text(mean.lowest.best_speed) + (f" at {size}" if mean.lowest.size_bytes else "")

    return Table(
        [
            Column("collective", "", lambda mean: short(mean.collective) + (f", {mean.placement}" if several else ""),
                   left=True, most=28),
            *(speed(mpi, lambda mean: mean.by_mpi, _short(mpi))
              for mpi in dict.fromkeys(mpi for mean in means for mpi in mean.by_mpi)),
            Column("best", "best", show=_speed_text, mark=lambda mean: _mark(mean.best)),
            *(speed(rival, lambda mean: mean.to_rivals, _to(rival), f"the best palmette to {rival}")
              for rival in dict.fromkeys(rival for mean in means for rival in mean.to_rivals)),
            Column("lowest", "", lowest, left=True, mark=lambda mean: _mark(mean.lowest.best_speed)),
        ],
        means,
    )  # fmt: skip


def mean_lines(means: Sequence[MeanSpeed]) -> list[str]:
    """Return the table of means, below what it shows."""
    if not means:
        return []
    lines = ["geometric mean of palmette's speed to the fastest MPI alone; more is faster"]
    rivals = dict.fromkeys(rival for mean in means for rival in mean.to_rivals)
    lines += [f"{_to(rival)}: of the best palmette to {rival}" for rival in rivals]
    return lines + mean_table(means).lines()


def pass_table(costs: Sequence[PassCost]) -> Table[PassCost]:
    """Return a row for each call and MPI: nanoseconds as PMPI_X and as MPI_X, and the difference with its quartiles."""
    return Table(
        [
            Column("call left to the MPI, ns", "", _passed, left=True),
            Column("PMPI_X", "alone_ns", show=_nanos),
            Column("MPI_X", "palmette_ns", show=_nanos),
            Column("difference", "more_ns", show=lambda ns: _nanos(ns, "+")),
            Column(
                "quartiles", "", lambda cost: f"({_nanos(cost.low_ns, '+')} to {_nanos(cost.high_ns, '+')})", left=True
            ),
        ],
        costs,
    )


def _passed(cost: PassCost) -> str:
    where = cost.where.replace("MPI_COMM_", "").lower()
    return f"{MPI_NAMES.get(cost.mpi, cost.mpi).replace(' ', '')} {cost.function} on {where}"


def pass_lines(costs: Sequence[PassCost]) -> list[str]:
    """Return the table, nothing without calls."""
    return pass_table(costs).lines() if costs else []


def _nanos(value: float, sign: str = "") -> str:
    return f"{value:{sign}.1f}" if abs(value) < 999.95 else f"{value:{sign}.0f}"


def target_lines(found: Sequence[Outcome]) -> list[str]:
    """At least two lines per target: the limit and whether it is met; then the worst cell of each MPI."""
    lines: list[str] = []
    for outcome in found:
        limit = f"at {'least' if outcome.target.kind == 'mean_speed' else 'most'} {outcome.target.limit:g}"
        lines += wrapped(f"{outcome.answer}: {outcome.target.text}, {limit}")
        worst = worst_texts(outcome)
        if worst:
            lines += wrapped(f"worst: {', '.join(worst)}", "  ", "    ")
        if any(outcome.missed.values()) and max(outcome.cells.values()) > 1:
            counts = [
                f"{MPI_NAMES.get(mpi, mpi)} {len(missed)} of {outcome.cells[mpi]}"
                for mpi, missed in outcome.missed.items()
            ]
            lines += wrapped(f"beyond the limit: {', '.join(counts)}", "  ", "    ")
    return lines


def worst_texts(outcome: Outcome) -> list[str]:
    """`MPICH 1.12! (bcast 64K)` for each MPI, and the outcome with the best MPI of each cell."""
    found = [(MPI_NAMES.get(mpi, mpi), worst) for mpi, worst in outcome.worst.items()]
    found += [("best MPI", outcome.best)] if outcome.best else []
    return [f"{name} {_value_text(outcome.target, value)} ({value.cell})" for name, value in found]


def _value_text(target: Target, value: Value) -> str:
    """The value, with an exclamation mark for a certain miss of the limit, a question mark for an uncertain one."""
    text = f"{value.value:.1f}" if target.kind == "pass_through" else f"{value.value:.2f}"
    return text if target.is_met(value.value) else f"{text}{'!' if value.certain else '?'}"
