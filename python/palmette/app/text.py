"""What `palmette bench app` prints, as lines, as JSON and as a page."""

from __future__ import annotations

import textwrap
from html import escape
from typing import Any

from palmette import _core
from palmette.app.measure import Comparisons, Measured
from palmette.draw.elements import BLUE, GRAY, INK, MUTED, document, text
from palmette.measure.statistics import FEWEST_PAIRS, Ratio
from palmette.units import bytes_text, plural

MOST_FUNCTIONS = 8
STRIP_HEIGHT = 26
STRIP_WIDTH = 720
NAMES_WIDTH = 140


def ratio_text(ratio: Ratio) -> str:
    """Return `0.87 0.85-0.90, faster`, as in tables of calls, where brackets say that a bound isn't trusted."""
    return f"{ratio.value:.2f} {ratio.low:.2f}-{ratio.high:.2f}, {ratio.verdict}"


def lines(found: Comparisons) -> list[str]:
    """Return the result in 80 columns."""
    shown = [found.name[:80], ""]
    shown.append(f"{'':<14} {'time':>9} {'spread':>6}  {'over alone, 95 % CI':<28} {'in MPI':>9} {'output':>6}")
    for one in found.variants:
        summary, recorded = one.summary, one.recorded
        ratio = "" if one is found.variants[0] else ratio_text(found.ratio(one))
        in_mpi = _core.format_duration(recorded.in_mpi_s) if recorded else ""
        shown.append(
            f"{one.variant.name[:14]:<14} {_core.format_duration(summary.median_s):>9} {summary.spread:>6.1%}  "
            f"{ratio:<28} {in_mpi:>9} {_output(one):>6}"
        )
    shown += ["", *_function_lines(found), *_link_lines(found)]
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
            shown += _wrapped(f"{one.variant.name}: {one.order}")
    shown += _wrapped(_compared(found))
    shown += _wrapped(found.first_run)
    for one in found.variants[1:]:
        shown += _wrapped(verdict(found, one))
    return shown


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 80, break_long_words=False, break_on_hyphens=False)


def _output(one: Measured) -> str:
    return "differs" if one.difference else "order" if one.order else "same"


def verdict(found: Comparisons, one: Measured) -> str:
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


def functions(found: Comparisons) -> list[str]:
    """Return the functions with most time in any variant, the costliest first."""
    most: dict[str, float] = {}
    for one in found.variants:
        for name, seconds in (one.recorded.by_function_s if one.recorded else {}).items():
            most[name] = max(most.get(name, 0.0), seconds)
    return sorted(most, key=lambda name: -most[name])[:MOST_FUNCTIONS]


def _function_lines(found: Comparisons) -> list[str]:
    recorded = [one for one in found.variants if one.recorded]
    if not recorded:
        return []
    shown = [
        "time of all ranks in"
        + " " * 8
        + "".join(f"{one.variant.name[:12]:>14}" for one in recorded[:3])
        + f"{'calls':>11}"
    ]
    for name in functions(found):
        times = "".join(
            f"{_core.format_duration(one.recorded.by_function_s.get(name, 0.0)):>14}"
            for one in recorded[:3]
            if one.recorded
        )
        calls = recorded[0].recorded.calls.get(name, 0) if recorded[0].recorded else 0
        shown.append(f"  {name[:26]:<26}{times}{calls:>11,}")
    return [*shown, ""]


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
        "variants": [_variant(found, one) for one in found.variants],
    }


def _variant(found: Comparisons, one: Measured) -> dict[str, Any]:
    summary, ratio, recorded = one.summary, found.ratio(one), one.recorded
    return {
        "name": one.variant.name,
        "settings": dict(one.variant.settings) if one.variant.settings is not None else None,
        "seconds": one.seconds,
        "median_s": summary.median_s,
        "ratio": None if one is found.variants[0] else ratio.value,
        "ratio_low": None if one is found.variants[0] else ratio.low,
        "ratio_high": None if one is found.variants[0] else ratio.high,
        "verdict": None if one is found.variants[0] else ratio.verdict,
        "same_output": not one.difference,
        "difference": one.difference or None,
        "other_order": one.order or None,
        "in_mpi_s": recorded.in_mpi_s if recorded else None,
        "by_function_s": recorded.by_function_s if recorded else None,
        "calls": recorded.calls if recorded else None,
        "served_calls": recorded.served if recorded else None,
        "busiest_link": recorded.busiest_link or None if recorded else None,
        "busiest_bytes": recorded.busiest_bytes if recorded else None,
        "busiest_without_calls": recorded.uncounted if recorded else None,
    }


def strip(found: Comparisons) -> str:
    """Return a picture of all samples: a row for each variant, its median as a line."""
    times = [seconds for one in found.variants for seconds in one.seconds]
    low, high = min(times), max(times)
    margin = 0.05 * (high - low) or 0.05 * high
    low, high = max(0.0, low - margin), high + margin
    height = STRIP_HEIGHT * len(found.variants) + 24
    parts = [document(STRIP_WIDTH, height)]

    def x(seconds: float) -> float:
        return NAMES_WIDTH + (STRIP_WIDTH - NAMES_WIDTH - 20) * (seconds - low) / (high - low)

    for row, one in enumerate(found.variants):
        y = STRIP_HEIGHT * (row + 0.5)
        color = GRAY if row == 0 else BLUE
        parts.append(text(NAMES_WIDTH - 10, y + 4, one.variant.name[:18], 12, INK, "end"))
        parts += [
            f'<circle cx="{x(t):.1f}" cy="{y:.1f}" r="4" fill="{color}" fill-opacity="0.6"/>' for t in one.seconds
        ]
        middle = x(one.summary.median_s)
        parts.append(f'<path d="M{middle:.1f} {y - 9:.1f}v18" stroke="{color}" stroke-width="2"/>')
    for seconds in (low, high):
        anchor = "start" if seconds == low else "end"
        parts.append(text(x(seconds), height - 6, _core.format_duration(seconds), 11, MUTED, anchor))
    return "".join([*parts, "</svg>"])


def page(found: Comparisons, style: str) -> str:
    """Return an HTML page that needs no other file."""
    rows = []
    for one in found.variants:
        ratio = "" if one is found.variants[0] else ratio_text(found.ratio(one))
        in_mpi = _core.format_duration(one.recorded.in_mpi_s) if one.recorded else ""
        rows.append(
            [one.variant.name, _core.format_duration(one.summary.median_s), f"{one.summary.spread:.1%}", ratio, in_mpi,
             f"{one.recorded.served:,}" if one.recorded else "", one.difference or one.order or "the same"]
        )  # fmt: skip
    head = ["variant", "median time", "spread", "over the MPI alone", "in MPI, all ranks", "served calls", "output"]
    recorded = [one for one in found.variants if one.recorded]
    per_function = [
        [name, *(_core.format_duration(one.recorded.by_function_s.get(name, 0.0)) for one in recorded if one.recorded)]
        for name in functions(found)
    ]
    links = "".join(f"<p>{escape(line)}</p>" for line in _link_lines(found) if line)
    return "".join(
        [
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
            f"<title>palmette bench app</title><style>{style}</style><main><h1>With and without palmette</h1>",
            f"<p><code>{escape(found.name)}</code></p>", strip(found), _table(head, rows),
            "<h2>Time of all ranks by function</h2>" if per_function else "",
            _table(["function", *(one.variant.name for one in recorded)], per_function) if per_function else "",
            links, f"<p>{escape(found.first_run)}</p>" if found.first_run else "",
            *(f"<p>{escape(verdict(found, one))}.</p>" for one in found.variants[1:]),
            f"<p>{escape(_compared(found))}. Each point is a run; variants ran by turns.</p></main></html>",
        ]
    )  # fmt: skip


def _table(head: list[str], rows: list[list[str]]) -> str:
    cells = "".join(f"<th>{escape(word)}</th>" for word in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(word)}</td>" for word in row) + "</tr>" for row in rows)
    return f"<div class=scroll><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>"
