"""Measured patterns as lines, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from palmette import _core
from palmette.patterns.rates import WHOLE, Measured, Rate
from palmette.patterns.seats import INSIDE, SELF
from palmette.units import bytes_text, plural

WIDTH = 80
_UNITS = (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0))


def table_lines(made: Measured, where: str) -> list[str]:
    """Return the table of one pattern, its busiest link and the number of discarded calls."""
    assert made.whole is not None
    rows = [*made.rates, made.whole] if len(made.rates) > 1 else made.rates
    unit, scale = _unit(rows)
    parts = list(dict.fromkeys((rate.step, rate.part) for rate in made.rates))
    lines = [*_wrap(f"{made.plan.form.text}, {bytes_text(made.plan.size_bytes)}; {where}"), _header(unit)]
    for step, part in parts:
        if len(parts) > 1:
            lines += _wrap(f"step {step + 1}: {part}" if made.plan.steps > 1 else part)
        lines += [
            _row(_between(rate.level), rate, scale) for rate in made.rates if (rate.step, rate.part) == (step, part)
        ]
    if len(rows) > len(made.rates):
        lines.append(_row(WHOLE, made.whole, scale))
    ratio = made.multiple_of_bound
    if made.busiest is not None and ratio is not None:
        lines += _wrap(
            f"busiest link: {made.busiest.text}, {bytes_text(made.busiest.bytes)}; the links need"
            f" {_core.format_duration(made.busiest.seconds)}, the pattern takes {ratio:.2f} times that"
        )
    if made.late == made.whole.samples:
        lines += _wrap(f"all {made.late} calls started late: the machine is too busy, and rates are higher than these")
    elif made.late:
        lines.append(f"{plural(made.late, 'call')} started late and didn't count")
    return lines


def _between(level: str) -> str:
    if level in (SELF, WHOLE):
        return "to itself" if level == SELF else level
    return "inside" if level == INSIDE else "between " + plural(2, level).removeprefix("2 ")


def _header(unit: str) -> str:
    return _columns(f"rates in {unit}", "messages", "bytes", "time", "min", "median", "95 % interval", "max")


def _columns(name: str, *cells: str) -> str:
    widths = (8, 6, 8, 7, 7, 14, 7)
    return " ".join([f"{name[:15]:<15}", *(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))])


def _row(name: str, rate: Rate, scale: float) -> str:
    def text(seconds: float) -> str:
        value = rate.bytes_per_s(seconds) / scale
        return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"

    return _columns(
        name,
        f"{rate.messages:,}",
        bytes_text(rate.bytes),
        _core.format_duration(rate.median_s),
        text(rate.max_s),
        text(rate.median_s),
        f"{text(rate.high_s)} to {text(rate.low_s)}",
        text(rate.min_s),
    )


def _unit(rates: Sequence[Rate]) -> tuple[str, float]:
    """One unit for a table, in which the median of the slowest row is 1 at least."""
    least = min(rate.bytes_per_s(rate.median_s) for rate in rates)
    return next(((name, scale) for name, scale in _UNITS if least >= scale), _UNITS[-1])


def _wrap(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


CSV_HEADER = (
    "where", "pattern", "size_bytes", "step", "part", "level", "messages", "bytes", "samples",
    "time_min_s", "time_median_s", "time_low_s", "time_high_s", "time_max_s",
    "rate_min_bytes_per_s", "rate_median_bytes_per_s", "rate_low_bytes_per_s", "rate_high_bytes_per_s",
    "rate_max_bytes_per_s", "bound_s", "multiple_of_bound",
)  # fmt: skip


def csv_text(measured: Sequence[tuple[str, Measured]]) -> str:
    """Return a line for each pattern, part and level, and one for each whole pattern; (where, measured) each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for where, made in measured:
        assert made.whole is not None
        for rate in [*made.rates, made.whole]:
            entry = rate.to_json()
            whole = rate is made.whole
            writer.writerow(
                [
                    where, made.plan.form.text, made.plan.size_bytes,
                    "" if whole else rate.step + 1, rate.part, rate.level,
                    rate.messages, rate.bytes, rate.samples,
                    *(f"{entry['time_s'][name]:.9g}" for name in ("min", "median", "low", "high", "max")),
                    *(f"{entry['bytes_per_s'][name]:.9g}" for name in ("min", "median", "low", "high", "max")),
                    f"{made.busiest.seconds:.9g}" if whole and made.busiest else "",
                    f"{ratio:.9g}" if whole and (ratio := made.multiple_of_bound) is not None else "",
                ]
            )  # fmt: skip
    return out.getvalue()


def to_json(where: str, made: Measured) -> dict[str, Any]:
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
