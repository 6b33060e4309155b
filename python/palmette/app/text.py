"""What `palmette bench app` prints, as lines, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

from palmette import _core
from palmette.app.measure import Comparisons, VariantRuns
from palmette.measure.statistics import FEWEST_PAIRS, Ratio
from palmette.present.picture import Picture
from palmette.present.table import Column, Table
from palmette.present.words import wrapped
from palmette.units import bytes_text, plural

MOST_FUNCTIONS = 8
_ROW, _NAMES, _WIDTH = 26.0, 140.0, 720.0
"""Height of a row, width of the names and of the whole picture of all samples, in pixels."""


def ratio_text(ratio: Ratio) -> str:
    """Return `0.87 0.85-0.90, faster`, as in tables of calls, where brackets say that a bound isn't trusted."""
    return f"{ratio.value:.2f} {ratio.low:.2f}-{ratio.high:.2f}, {ratio.verdict}"


def variants(found: Comparisons) -> Table[VariantRuns]:
    """Return a row for each variant."""
    alone = found.variants[0]

    def ratio(name: str) -> Callable[[VariantRuns], Any]:
        return lambda one: None if one is alone else getattr(found.ratio(one), name)

    def recorded(name: str) -> Callable[[VariantRuns], Any]:
        return lambda one: getattr(one.recorded, name) if one.recorded else None

    return Table(
        [
            Column("", "name", lambda one: one.variant.name, left=True, most=14),
            Column(None, "settings", lambda one: None if (given := one.variant.settings) is None else dict(given)),
            Column(None, "seconds"),
            Column("time", "median_s", lambda one: one.summary.median_s, _core.format_duration),
            Column("spread", "", lambda one: one.summary.spread, "{:.1%}".format),
            Column("over alone, 95 % CI", "", lambda one: None if one is alone else found.ratio(one), ratio_text,
                   left=True, absent=""),
            *(Column(None, key, ratio(name)) for key, name in _RATIO.items()),
            Column(None, "same_output", lambda one: not one.difference),
            Column(None, "difference", lambda one: one.difference or None),
            Column(None, "other_order", lambda one: one.order or None),
            Column("in MPI", "in_mpi_s", recorded("in_mpi_s"), _core.format_duration, absent="",
                   note="all ranks together"),
            *(Column(None, key, recorded(key)) for key in ("by_function_s", "calls", "busiest_bytes")),
            Column(None, "served_calls", recorded("served")),
            Column(None, "busiest_link", lambda one: one.recorded.busiest_link or None if one.recorded else None),
            Column(None, "busiest_without_calls", recorded("uncounted")),
            Column("output", "", lambda one: "differs" if one.difference else "order" if one.order else "same"),
        ],
        found.variants,
    )  # fmt: skip


_RATIO = {"ratio": "value", "ratio_low": "low", "ratio_high": "high", "verdict": "verdict"}


def functions(found: Comparisons) -> Table[str]:
    """Return the functions with most time in any variant, the costliest first, and their times by variant."""
    most: dict[str, float] = {}
    recorded = [(one.variant.name, one.recorded) for one in found.variants if one.recorded]
    for _, one in recorded:
        for name, seconds in one.by_function_s.items():
            most[name] = max(most.get(name, 0.0), seconds)
    columns: list[Column[str]] = [Column("time of all ranks in", "", str, left=True, most=26)]
    for variant, one in recorded[:3]:
        columns.append(Column(variant[:12], "", partial(_of, one.by_function_s), _core.format_duration))
    if recorded:
        columns.append(Column("calls", "", lambda name: recorded[0][1].calls.get(name, 0), "{:,}".format))
    return Table(columns, sorted(most, key=lambda name: -most[name])[:MOST_FUNCTIONS])


def _of(by_function_s: dict[str, float], name: str) -> float:
    return by_function_s.get(name, 0.0)


def lines(found: Comparisons) -> list[str]:
    """Return the result in 80 columns."""
    shown = [found.name[:80], "", *variants(found).lines(), ""]
    if any(one.recorded for one in found.variants):
        shown += [*functions(found).lines(), ""]
    shown += _link_lines(found)
    missing = max((one.recorded.missing_ranks for one in found.variants if one.recorded), default=0)
    if missing:
        shown.append(f"{missing:,} ranks recorded on other nodes: calls and times in MPI are without theirs")
    if crowded := next((one.recorded.oversubscribed for one in found.variants if one.recorded), ""):
        shown.append(f"{crowded}: ranks that wait keep others from computing, so that")
        shown.append("the ratio says nothing of machines with a processor for each rank")
    for one in found.variants:
        if one.difference:
            shown.append(f"{one.variant.name}: {one.difference}")
        elif one.order:
            shown += wrapped(f"{one.variant.name}: {one.order}", rest="")
    for text in (_compared(found), found.first_run, *(verdict(found, one) for one in found.variants[1:])):
        shown += wrapped(text, rest="")
    return shown


def verdict(found: Comparisons, one: VariantRuns) -> str:
    """Return what the ratio says, in a sentence."""
    ratio, name = found.ratio(one), one.variant.name
    if ratio.verdict == "faster":
        return f"faster with {name}: {_less(ratio.value)} time ({_span(ratio)})"
    if ratio.verdict == "slower":
        return f"slower with {name}: {_less(ratio.value)} time ({_span(ratio)})"
    if ratio.verdict == "same":
        return f"as fast with {name} as by the MPI alone, within 5%"
    rounds = max(20, 4 * len(one.seconds))
    again = f"more runs: palmette bench app --rounds {rounds} -- ..."
    if len(one.seconds) < FEWEST_PAIRS:
        return f"{plural(len(one.seconds), 'run')} of each are too few to tell whether {name} is faster; {again}"
    return f"can't tell whether {name} is faster, {_span(ratio)} time; {again}"


def _span(ratio: Ratio) -> str:
    return f"between {_less(ratio.low)} and {_less(ratio.high)}"


def _less(ratio: float) -> str:
    """Return `13 % less` of a ratio of times."""
    if abs(ratio - 1) < 0.005:
        return "no less"
    return f"{1 - ratio:.0%} less" if ratio < 1 else f"{ratio - 1:.0%} more"


def _compared(found: Comparisons) -> str:
    if found.checker is not None:
        return f"outputs checked by {found.checker}"
    line = f"{plural(found.compared_numbers, 'number')} of the output compared"
    if found.varying:
        line += f"; {found.varying:,} words change from run to run of the MPI alone"
    return line


def _link_lines(found: Comparisons) -> list[str]:
    shown = [
        f"busiest link, {one.variant.name}: {one.recorded.busiest_link}, {bytes_text(one.recorded.busiest_bytes)} bytes"
        + (f"\n  (and {one.recorded.uncounted:,} irregular collectives, not counted)" if one.recorded.uncounted else "")
        for one in found.variants
        if one.recorded and one.recorded.busiest_bytes is not None
    ]
    return [*shown, "(of the MPI's own collectives the least that must cross)", ""] if shown else []


def to_json(found: Comparisons) -> dict[str, Any]:
    """Return all samples and what they amount to."""
    return {
        "name": found.name,
        "compared_numbers": found.compared_numbers,
        "varying_words": found.varying,
        "first_run": found.first_run or None,
        "variants": variants(found).records(),
    }


def strip(found: Comparisons) -> str:
    """Return a picture of all samples: a row for each variant, its median as a line."""
    times = [seconds for one in found.variants for seconds in one.seconds]
    margin = 0.05 * (max(times) - min(times)) or 0.05 * max(times)
    low, high = max(0.0, min(times) - margin), max(times) + margin
    height = _ROW * len(found.variants) + 24
    picture = Picture("times of the runs")

    def x(seconds: float) -> float:
        return _NAMES + (_WIDTH - _NAMES - 20) * (seconds - low) / (high - low)

    for row, one in enumerate(found.variants):
        y, color = _ROW * (row + 0.5), "palmette" if row else "alone"
        picture.text(_NAMES - 10, y + 4, one.variant.name, anchor="end", most=_NAMES - 10)
        for seconds in one.seconds:
            picture.circle(x(seconds), y, 4, color, opacity=0.6, tip=_core.format_duration(seconds))
        middle = x(one.summary.median_s)
        picture.line(middle, y - 9, middle, y + 9, color, 2)
    for seconds, anchor in ((low, "start"), (high, "end")):
        picture.text(x(seconds), height - 6, _core.format_duration(seconds), 11, "muted", anchor)
    return picture.document(_WIDTH, height, inline="strip")


def page(found: Comparisons, style: str) -> str:
    """Return an HTML page that needs no other file."""
    said = [*_link_lines(found), found.first_run]
    said += [f"{one.variant.name}: {told}" for one in found.variants if (told := one.difference or one.order)]
    said += [
        f"{one.variant.name}: {plural(one.recorded.served, 'call')} served"
        for one in found.variants
        if one.recorded and one.recorded.served
    ]
    said += [verdict(found, one) for one in found.variants[1:]]
    said.append(f"{_compared(found)}. Each point is a run; variants ran by turns.")
    return "".join(
        [
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
            f"<title>palmette bench app</title><style>{style}</style><main><h1>With and without palmette</h1>",
            f"<p><code>{escape(found.name)}</code></p>", strip(found), variants(found).html(),
            "<h2>By function</h2>" + functions(found).html() if functions(found).rows else "",
            *(f"<p>{escape(line)}</p>" for line in said if line), "</main></html>",
        ]
    )  # fmt: skip
