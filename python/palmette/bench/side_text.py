"""Text tables of MPIs side by side, targets, and pass-through overhead: lines of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from palmette.bench.pass_through import PassCost
from palmette.bench.side_by_side import MeanSpeed, SideCell
from palmette.bench.targets import Outcome, Target, Value
from palmette.bench.text import MPI_NAMES, short, size_text

_SHORT = {"mpich": "MPICH", "openmpi": "OpenMPI", "impi": "Intel"}
_NICK = {"openmpi": "OMPI"} | {mpi: _SHORT[mpi] for mpi in ("mpich", "impi")}
_TIME, _SPEED, _NARROW, _BOUND = 8, 8, 6, 6


def micros_text(seconds: float) -> str:
    """Microseconds with three digits, four and more where they are whole: `0.412`, `41.2`, `2624000`."""
    micros = seconds * 1e6
    if micros >= 99.95:
        return f"{micros:.0f}"
    digits = 1 if micros >= 9.995 else 2 if micros >= 0.9995 else 3
    return f"{micros:.{digits}f}"


def side_lines(cells: Sequence[SideCell], means: Sequence[MeanSpeed]) -> list[str]:
    """One table for each placement and collective: times by MPI and rival, and palmette's speed to the fastest MPI."""
    if not cells:
        return []
    lines = ["speed: time of the fastest MPI alone (*) / time with palmette; more is faster"]
    if any(cell.multiple is not None for cell in cells):
        lines.append("bound: the fastest time with palmette in physical limits")
    if any(cell.network_multiple is not None for cell in cells):
        lines.append("in net: the same, variants included, where aggregators reduce on the way")
    variants = list(dict.fromkeys(name for cell in cells for name in cell.variants_s))
    if any(cell.rivals_s for cell in cells) or variants:
        lines.append("times in microseconds, MPIs and rivals alone; best: palmette on its fastest MPI")
    if variants:
        lines += _folded(f"{', '.join(variants)}: palmette so set, on its fastest MPI")
    for (placement, collective), group in groupby(cells, key=lambda cell: (cell.placement, cell.collective)):
        mine = list(group)
        mean = next(one for one in means if (one.placement, one.collective) == (placement, collective))
        lines += ["", f"{collective}, {placement}" if placement != "block" else collective]
        rivals = list(dict.fromkeys(rival for cell in mine for rival in cell.rivals_s))
        plain = not rivals and not any(cell.variants_s or cell.network_multiple is not None for cell in mine)
        lines += _without_rivals(mine, mean) if plain else _with_rivals(mine, mean, rivals)
    return lines


def _without_rivals(cells: Sequence[SideCell], mean: MeanSpeed) -> list[str]:
    mpis = list(dict.fromkeys(mpi for cell in cells for mpi in cell.alone_s))
    bounded = any(cell.multiple is not None for cell in cells)
    width, speed = _TIME * len(mpis), _NARROW if bounded else _SPEED
    titles = f"{'MPI alone, us':>{width}}{'palmette, us':>{width}}{'speed':>{speed * len(mpis)}}"
    lines = [" " * 5 + titles]
    headings = "".join(f"{_SHORT.get(mpi, mpi):>{_TIME}}" for mpi in mpis)
    nicks = "".join(f"{(_NICK if bounded else _SHORT).get(mpi, mpi):>{speed}}" for mpi in mpis)
    lines.append(f"{'size':<5}{headings}{headings}{nicks}" + (f"{'bound':>{_BOUND}}" if bounded else ""))
    for cell in cells:
        text = f"{size_text(cell.size_bytes):<5}" + "".join(_alone(cell, mpi) for mpi in mpis)
        for mpi in mpis:
            text += _right(micros_text(cell.palmette_s[mpi]) if mpi in cell.palmette_s else "-", _TIME)
        text += "".join(_speed_of(cell, mpi, speed) for mpi in mpis)
        lines.append(text + (_multiple(cell.multiple) if bounded else ""))
    speeds = "".join(_right(f"{mean.by_mpi[mpi]:.2f}" if mpi in mean.by_mpi else "-", speed) for mpi in mpis)
    lines.append(f"{'geometric mean':<{5 + 2 * width}}{speeds}")
    return lines


def _with_rivals(cells: Sequence[SideCell], mean: MeanSpeed, rivals: Sequence[str]) -> list[str]:
    """Rivals and variants take the columns of palmette's times under each MPI: only palmette's best time is shown, with
    its speed relative to the fastest MPI and to each rival.
    """
    variants = list(dict.fromkeys(name for cell in cells for name in cell.variants_s))
    mpis = list(dict.fromkeys(mpi for cell in cells for mpi in cell.alone_s))
    lines = [f"{'size':<5}" + "".join(f"{_SHORT.get(mpi, mpi):>{_TIME}}" for mpi in mpis)]
    lines[0] += "".join(_right(name, _rival_width(name)) for name in (*rivals, *variants)) + "    best   speed"
    lines[0] += "".join(_right(f"to {_nick(rival)}", _nick_width(rival)) for rival in rivals)
    bounded = any(cell.multiple is not None for cell in cells)
    in_network = any(cell.network_multiple is not None for cell in cells)
    lines[0] += f"{'bound':>{_BOUND}}" if bounded else ""
    lines[0] += f"{'in net':>{_BOUND + 1}}" if in_network else ""
    for cell in cells:
        text = f"{size_text(cell.size_bytes):<5}" + "".join(_alone(cell, mpi) for mpi in mpis)
        for name in (*rivals, *variants):
            seconds = cell.rivals_s.get(name, cell.variants_s.get(name))
            text += _right("-" if seconds is None else micros_text(seconds), _rival_width(name))
        text += _right(micros_text(min(cell.palmette_s.values())), _TIME) + _right(f"{cell.best_speed:.2f}", _SPEED)
        for rival in rivals:
            speed = f"{cell.speed_to_rival(rival):.2f}" if rival in cell.rivals_s else "-"
            text += _right(speed, _nick_width(rival))
        text += _multiple(cell.multiple) if bounded else ""
        lines.append(text + (" " + _multiple(cell.network_multiple) if in_network else ""))
    text = f"{'geometric mean':<{5 + _TIME * len(mpis) + sum(map(_rival_width, (*rivals, *variants))) + _TIME}}"
    text += _right(f"{mean.best:.2f}", _SPEED)
    for rival in rivals:
        text += _right(f"{mean.to_rivals[rival]:.2f}" if rival in mean.to_rivals else "-", _nick_width(rival))
    return [*lines, text]


def _rival_width(rival: str) -> int:
    return max(_TIME, len(rival) + 1)


def _nick(rival: str) -> str:
    return rival if len(rival) < 8 else "rival"


def _nick_width(rival: str) -> int:
    return len(_nick(rival)) + 5


def _alone(cell: SideCell, mpi: str) -> str:
    mark = "*" if mpi == cell.fastest else " "
    return _right(micros_text(cell.alone_s[mpi]) + mark if mpi in cell.alone_s else "- ", _TIME)


def _speed_of(cell: SideCell, mpi: str, width: int) -> str:
    return _right(f"{cell.speed(mpi):.2f}" if mpi in cell.palmette_s else "-", width)


def _multiple(multiple: float | None) -> str:
    if multiple is None:
        return _right("-", _BOUND)
    return _right(f"{multiple:.2f}" if multiple < 99.95 else f"{multiple:.0f}", _BOUND)


def mean_lines(means: Sequence[MeanSpeed]) -> list[str]:
    """One line per collective: the geometric means by MPI, the best, the slowest size, and relative to rivals."""
    if not means:
        return []
    mpis = list(dict.fromkeys(mpi for mean in means for mpi in mean.by_mpi))
    rivals = list(dict.fromkeys(rival for mean in means for rival in mean.to_rivals))
    several = len({mean.placement for mean in means}) > 1
    lines = ["geometric mean of palmette's speed to the fastest MPI alone; more is faster"]
    lines += [f"rival {rival}: of the best palmette to it" for rival in rivals]
    headings = "".join(f"{_SHORT.get(mpi, mpi):>{_SPEED}}" for mpi in mpis)
    headings += f"{'best':>{_SPEED}}" + "".join(f"{'rival':>{_SPEED}}" for _ in rivals)
    width = 32 - _SPEED * max(0, len(rivals) - 1)
    lines.append(f"{'collective':<{width}}{headings}  lowest")
    for mean in means:
        name = f"{short(mean.collective)}, {mean.placement}" if several else mean.collective
        speeds = "".join(_right(f"{mean.by_mpi[mpi]:.2f}" if mpi in mean.by_mpi else "-", _SPEED) for mpi in mpis)
        others = "".join(
            _right(f"{mean.to_rivals[one]:.2f}" if one in mean.to_rivals else "-", _SPEED) for one in rivals
        )
        # With rivals the line is too short for the size.
        show_size = mean.lowest.size_bytes and not rivals
        at = f" at {size_text(mean.lowest.size_bytes).removesuffix(' B')}" if show_size else ""
        head = f"{name[: width - 1]:<{width}}{speeds}{mean.best:>{_SPEED}.2f}{others}"
        lines.append(f"{head}  {mean.lowest.best_speed:.2f}{at}")
    return lines


def pass_lines(costs: Sequence[PassCost]) -> list[str]:
    """One line per call and MPI: nanoseconds as PMPI_X and as MPI_X, and the difference with its quartiles."""
    if not costs:
        return []
    lines = ["a call that palmette leaves to the MPI, ns", f"{'':<38}  PMPI_X   MPI_X  difference (quartiles)"]
    for cost in costs:
        where = cost.where.replace("MPI_COMM_", "").lower()
        what = f"{_SHORT.get(cost.mpi, cost.mpi):<8}{cost.function} on {where}"
        more = f"{_nanos(cost.more_ns, '+')} ({_nanos(cost.low_ns, '+')} to {_nanos(cost.high_ns, '+')})"
        lines.append(f"{what:<38}{_nanos(cost.alone_ns):>8}{_nanos(cost.palmette_ns):>8}  {more}")
    return lines


def _nanos(value: float, sign: str = "") -> str:
    return f"{value:{sign}.1f}" if abs(value) < 999.95 else f"{value:{sign}.0f}"


def target_lines(found: Sequence[Outcome]) -> list[str]:
    """At least two lines per target: the limit and whether it is met; then the worst cell of each MPI."""
    lines: list[str] = []
    for outcome in found:
        limit = f"at {'least' if outcome.target.kind == 'mean_speed' else 'most'} {outcome.target.limit:g}"
        lines += _folded(f"{outcome.answer}: {outcome.target.text}, {limit}")
        worst = worst_texts(outcome)
        if worst:
            lines += _folded("  worst: " + ", ".join(worst))
        if any(outcome.missed.values()) and max(outcome.cells.values()) > 1:
            counts = [
                f"{MPI_NAMES.get(mpi, mpi)} {len(missed)} of {outcome.cells[mpi]}"
                for mpi, missed in outcome.missed.items()
            ]
            lines += _folded("  beyond the limit: " + ", ".join(counts))
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


def _right(text: str, width: int) -> str:
    return f"{text:>{width}}"


def _folded(text: str) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return textwrap.wrap(text, 80, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
