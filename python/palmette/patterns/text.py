"""Measured patterns as lines, as CSV and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from palmette import _core
from palmette.patterns.rates import WHOLE, PatternResult, Rate
from palmette.patterns.seats import INSIDE, SELF
from palmette.present.table import Column, Table
from palmette.present.words import wrapped
from palmette.units import bytes_text, plural

_UNITS = (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0))


def table_lines(made: PatternResult, where: str) -> list[str]:
    """Return the table of one pattern, its busiest link and the number of discarded calls."""
    assert made.whole is not None
    rows = [*made.rates, made.whole] if len(made.rates) > 1 else made.rates
    parts = list(dict.fromkeys((rate.step, rate.part) for rate in made.rates))
    heading, *shown = _table(rows).lines()
    lines = [*wrapped(f"{made.plan.form.text}, {bytes_text(made.plan.size_bytes)}; {where}"), heading]
    for step, part in parts:
        if len(parts) > 1:
            lines += wrapped(f"step {step + 1}: {part}" if made.plan.steps > 1 else part)
        lines += [line for line, rate in zip(shown, made.rates, strict=False) if (rate.step, rate.part) == (step, part)]
    lines += shown[len(made.rates) :]
    ratio = made.multiple_of_bound
    if made.busiest is not None and ratio is not None:
        lines += wrapped(
            f"busiest link: {made.busiest.text}, {bytes_text(made.busiest.bytes)}; the links need"
            f" {_core.format_duration(made.busiest.seconds)}, the pattern takes {ratio:.2f} times that"
        )
    if made.late == made.whole.samples:
        lines += wrapped(
            f"all {made.late} calls started late: the machine is too busy, and rates are higher than these"
        )
    elif made.late:
        lines.append(f"{plural(made.late, 'call')} started late and didn't count")
    return lines


def _between(level: str) -> str:
    if level in (SELF, WHOLE):
        return "to itself" if level == SELF else level
    return "inside" if level == INSIDE else "between " + plural(2, level).removeprefix("2 ")


def _table(rows: Sequence[Rate]) -> Table[Rate]:
    unit, scale = _unit(rows)

    def text(rate: Rate, seconds: float) -> str:
        value = rate.bytes_per_s(seconds) / scale
        return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"

    return Table(
        [
            Column(f"rates in {unit}", "level", show=_between, left=True, most=18),
            Column("messages", "messages", show="{:,}".format),
            Column("bytes", "bytes", show=bytes_text),
            Column("time", "median_s", show=_core.format_duration),
            Column("min", "", lambda rate: text(rate, rate.max_s)),
            Column("median", "", lambda rate: text(rate, rate.median_s)),
            Column("95 % interval", "", lambda rate: f"{text(rate, rate.high_s)} to {text(rate, rate.low_s)}"),
            Column("max", "", lambda rate: text(rate, rate.min_s)),
        ],
        rows,
    )


def _unit(rates: Sequence[Rate]) -> tuple[str, float]:
    """One unit for a table, in which the median of the slowest row is 1 at least."""
    least = min(rate.bytes_per_s(rate.median_s) for rate in rates)
    return next(((name, scale) for name, scale in _UNITS if least >= scale), _UNITS[-1])


_Entry = tuple[str, PatternResult, Rate]
_SPREAD = ("min", "median", "low", "high", "max")


def _of_rate(key: str) -> Callable[[_Entry], Any]:
    return lambda one: getattr(one[2], key)


def _entry(key: str, name: str) -> Callable[[_Entry], float]:
    return lambda one: one[2].to_json()[key][name]


def _of_whole(value: Callable[[PatternResult], Any]) -> Callable[[_Entry], Any]:
    return lambda one: value(one[1]) if one[2] is one[1].whole else None


_CSV: list[Column[_Entry]] = [
    Column(None, "where", lambda one: one[0]),
    Column(None, "pattern", lambda one: one[1].plan.form.text),
    Column(None, "size_bytes", lambda one: one[1].plan.size_bytes),
    Column(None, "step", lambda one: None if one[2] is one[1].whole else one[2].step + 1),
    *(Column(None, key, _of_rate(key)) for key in ("part", "level", "messages", "bytes", "samples")),
    *(Column(None, f"time_{name}_s", _entry("time_s", name)) for name in _SPREAD),
    *(Column(None, f"rate_{name}_bytes_per_s", _entry("bytes_per_s", name)) for name in _SPREAD),
    Column(None, "bound_s", _of_whole(lambda made: made.busiest.seconds if made.busiest else None)),
    Column(None, "multiple_of_bound", _of_whole(lambda made: made.multiple_of_bound)),
]


def csv_text(measured: Sequence[tuple[str, PatternResult]]) -> str:
    """Return a line for each pattern, part and level, and one for each whole pattern; (where, measured) each."""
    rows = [(where, made, rate) for where, made in measured for rate in (*made.rates, made.whole) if rate is not None]
    return Table(_CSV, rows).csv()


def to_json(where: str, made: PatternResult) -> dict[str, Any]:
    """Return everything but the raw samples."""
    assert made.whole is not None
    return {
        "where": where,
        "pattern": made.plan.form.text,
        "size_bytes": made.plan.size_bytes,
        "steps": made.plan.steps,
        "rates": [rate.to_json() for rate in made.rates],
        "whole": made.whole.to_json(),
        "bound": {"link": made.busiest.text, "bytes": made.busiest.bytes, "seconds": made.busiest.seconds}
        if made.busiest
        else None,
        "multiple_of_bound": made.multiple_of_bound,
        "late_calls": made.late,
        "messages": [
            {"source": one.source, "target": one.target, "bytes": one.bytes, "step": one.step, "library": one.library,
             "median_s": seconds}
            for one, seconds in zip(made.plan.transfers, made.message_s, strict=True)
        ],
    }  # fmt: skip
