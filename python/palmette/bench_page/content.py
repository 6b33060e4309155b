"""The contents of the report page, as plain values for the template."""

from __future__ import annotations

import shlex
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from palmette.bench.evaluate import Row
from palmette.bench.results import Job, Run
from palmette.bench.text import VERDICTS, mpi_text, name_text, size_text
from palmette.bench_page.charts import chart, time_range
from palmette.measure.statistics import MARGIN
from palmette.units import plural, time_text

Series = tuple[str, str]
"""An MPI and a placement."""


@dataclass(frozen=True)
class Facts:
    """The numbers at the top. `steps`: median multiple of the bound, alone and with palmette, over trusted cells."""

    verdicts: list[tuple[str, int]]
    cells: int
    best: str | None
    best_where: str
    steps: tuple[float, float] | None
    trusted: int


def facts(rows: Sequence[Row]) -> Facts:
    """Compute the headline numbers."""
    counts = Counter("wrong" if row.wrong else row.ratio.verdict for row in rows)
    names = [*VERDICTS, *(["wrong"] if counts["wrong"] else [])]
    won = [row for row in rows if row.ratio.verdict == "faster" and not row.wrong]
    best = min(won, key=lambda row: row.ratio.value, default=None)
    trusted = [row for row in rows if row.trusted and row.bound and not row.wrong]
    steps = None
    if trusted:
        alone = statistics.median(row.alone_multiple or 0 for row in trusted)
        palmette = statistics.median(row.palmette_multiple or 0 for row in trusted)
        steps = (alone, palmette)
    return Facts(
        verdicts=[(name, counts[name]) for name in names],
        cells=len(rows),
        best=f"{1 / best.ratio.value:.1f}×" if best else None,
        best_where=f"{best.collective} {size_text(best.size_bytes)}, {mpi_text(best)}, {best.placement}"
        if best
        else "",
        steps=steps,
        trusted=len(trusted),
    )


@dataclass(frozen=True)
class HeatCell:
    """One cell of the overview: its class, the change of time, and both multiples of the bound.

    `shade` is how strong the color is, 0 to 1.
    """

    verdict: str
    shade: float
    change: str
    multiples: str
    tip: str


@dataclass(frozen=True)
class HeatRow:
    """One collective and size over all series; `first`: the first size of its collective, of `span`."""

    collective: str
    size: str
    first: bool
    span: int
    cells: list[HeatCell | None]


def series_of(rows: Sequence[Row]) -> list[Series]:
    """Return the MPIs and placements, those of one MPI together."""
    mpis = list(dict.fromkeys(row.mpi for row in rows))
    placements = list(dict.fromkeys(row.placement for row in rows))
    there = {(row.mpi, row.placement) for row in rows}
    return [(mpi, placement) for mpi in mpis for placement in placements if (mpi, placement) in there]


def heat(rows: Sequence[Row]) -> list[HeatRow]:
    """Return the overview: a row for each collective and size, a cell for each series."""
    series = series_of(rows)
    by_key = {(row.collective, row.size_bytes, row.mpi, row.placement): row for row in rows}
    result = []
    for collective in dict.fromkeys(row.collective for row in rows):
        sizes = sorted({row.size_bytes for row in rows if row.collective == collective})
        for index, size in enumerate(sizes):
            found = [by_key.get((collective, size, *one)) for one in series]
            cells = [_heat_cell(row) if row else None for row in found]
            result.append(HeatRow(collective, size_text(size), index == 0, len(sizes), cells))
    return result


def _heat_cell(row: Row) -> HeatCell:
    value = row.ratio.value
    verdict = "wrong" if row.wrong else row.ratio.verdict
    judged = value == value  # not NaN
    change = "wrong" if row.wrong else _change(value) if judged else "–"
    multiples = multiples_text(row)
    # The color saturates at three times as fast or slow.
    strength = max(value, 1 / value) if judged and value > 0 else 1.0
    shade = min(1.0, max(0.0, (strength - MARGIN) / (3 - MARGIN)))
    tip = f"MPI alone {time_text(row.alone.median_s)}, palmette {time_text(row.palmette.median_s)}"
    tip += f"; ratio {row.ratio.low:.2f} to {row.ratio.high:.2f}; {plural(row.pairs, 'pair')}"
    return HeatCell(verdict, round(0.25 + 0.75 * shade, 2), change, multiples, tip)


def multiples_text(row: Row) -> str:
    """Return both times in physical bounds, `1.71 → 1.01`, in brackets where not trusted; nothing without a bound."""
    if row.alone_multiple is None or row.palmette_multiple is None:
        return ""
    text = f"{_short(row.alone_multiple)} → {_short(row.palmette_multiple)}"
    return text if row.trusted else f"({text})"


def _change(ratio: float) -> str:
    percent = round(100 * (ratio - 1))
    return f"{percent:+d} %".replace("-", "−") if percent else "0 %"


def _short(multiple: float) -> str:
    return f"{multiple:.2f}" if multiple < 9.95 else f"{multiple:.0f}"


@dataclass(frozen=True)
class Panel:
    """One chart with its caption."""

    title: str
    svg: str


def panels(rows: Sequence[Row]) -> list[tuple[str, list[Panel]]]:
    """Return for each collective its charts, all with the same time axis.

    With one MPI and placement only, the charts of all collectives stand together under no heading.
    """
    measured = [row for row in rows if not row.wrong]
    several = len(series_of(measured)) > 1
    result: list[tuple[str, list[Panel]]] = []
    for collective in dict.fromkeys(row.collective for row in measured):
        mine = [row for row in measured if row.collective == collective]
        times = time_range(mine)
        charts = []
        for mpi, placement in series_of(mine):
            cells = [row for row in mine if (row.mpi, row.placement) == (mpi, placement)]
            series = f"{name_text(mpi)} · {placement}"
            label = f"{collective}: time against size, {series}"
            charts.append(Panel(series if several else f"{collective} · {series}", chart(cells, times, label)))
        result.append((collective, charts))
    return result if several else [("", [panel for _, charts in result for panel in charts])] if result else []


@dataclass(frozen=True)
class Seat:
    """A host with its ranks; `group` counts the switches below the top one, for the color."""

    host: str
    group: int
    ranks: list[int]


def seats(run: Run) -> list[tuple[str, list[Seat]]]:
    """Return for each placement which ranks sit on which host, in topology order; nothing without a topology."""
    if run.topology is None:
        return []
    order: list[tuple[str, int]] = []
    children = run.topology["machine"]["tree"].get("children", [])
    for number, child in enumerate(children):
        order += [(name, number) for name in _hosts_below(child)]
    result: dict[str, list[Seat]] = {}
    for job in run.jobs:
        if job.placement not in result and job.hosts:
            ranks = {host: [rank for rank, at in enumerate(job.hosts) if at == host] for host, _ in order}
            result[job.placement] = [Seat(host, group, ranks[host]) for host, group in order]
    return list(result.items())


def _hosts_below(node: dict[str, Any]) -> list[str]:
    if node.get("level") == "node":
        return [str(node["name"])]
    return [name for child in node.get("children", []) for name in _hosts_below(child)]


def choices(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Return what the preload served: function, sizes, algorithm, why, and in which jobs; equal ones once."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for job in jobs:
        for call in (job.report or {}).get("calls", []):
            sizes = _sizes(call.get("min_bytes"), call.get("max_bytes"))
            key = (str(call.get("function", "?")), sizes, str(call.get("algorithm", "?")), str(call.get("reason", "")))
            row = merged.setdefault(key, {"calls": 0, "jobs": [], "low": call.get("min_bytes") or 0})
            row["calls"] += call.get("calls", 0)
            row["jobs"].append(_job_text(job))
    rows = [
        {"function": key[0], "sizes": key[1], "algorithm": key[2], "reason": key[3], **row}
        for key, row in merged.items()
    ]
    functions = list(dict.fromkeys(row["function"] for row in rows))
    rows.sort(key=lambda row: (functions.index(row["function"]), row["low"]))
    return _sizes_together(_with_where(rows, jobs))


def _sizes_together(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make one row of those that differ in sizes only."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        key = (row["function"], row["algorithm"], row["reason"], row["where"])
        if key in merged:
            merged[key]["sizes"] += f", {row['sizes']}"
            merged[key]["calls"] += row["calls"]
        else:
            merged[key] = row
    return list(merged.values())


def refusals(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Return what the preload left to the MPI: function, reason, how often, in which jobs."""
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for job in jobs:
        for fallback in (job.report or {}).get("fallbacks", []):
            detail = fallback.get("detail")
            reason = str(fallback.get("reason", "?")) + (f": {detail}" if detail else "")
            row = merged.setdefault((str(fallback.get("function", "?")), reason), {"calls": 0, "jobs": []})
            row["calls"] += fallback.get("calls", 0)
            row["jobs"].append(_job_text(job))
    return _with_where([{"function": key[0], "reason": key[1], **row} for key, row in merged.items()], jobs)


def on_devices(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Return what calls on device memory have cost, by function: sums over ranks and jobs."""
    merged: dict[str, Counter[str]] = {}
    for job in jobs:
        for call in (job.report or {}).get("device", {}).get("calls", []):
            counts = merged.setdefault(str(call.get("function", "?")), Counter())
            counts.update({name: value for name, value in call.items() if isinstance(value, int)})
    return [{"function": function, **counts} for function, counts in merged.items()]


def notes(jobs: Sequence[Job]) -> list[str]:
    """Return the preload's notes, each once."""
    return list(dict.fromkeys(str(note) for job in jobs for note in (job.report or {}).get("notes", [])))


def _with_where(rows: list[dict[str, Any]], jobs: Sequence[Job]) -> list[dict[str, Any]]:
    everywhere = {_job_text(job) for job in jobs if job.report is not None}
    for row in rows:
        named = list(dict.fromkeys(row.pop("jobs")))
        row["where"] = "everywhere" if set(named) == everywhere else ", ".join(named)
    return rows


def _job_text(job: Job) -> str:
    return f"{name_text(job.mpi)} {job.where}"


def _sizes(low: Any, high: Any) -> str:
    if not isinstance(low, int) or not isinstance(high, int) or low < 0:
        return "any"
    return size_text(low) if low == high else f"{size_text(low)} to {size_text(high)}"


def command_line(run: Run) -> str:
    """Return the command that measures the same again."""
    settings = run.settings
    if settings.get("command"):
        return str(settings["command"])
    words = list(filter(None, [",".join(settings["collectives"])]))
    words += ["--set", settings["named_set"]] if settings.get("named_set") else []
    words += ["--sizes", ",".join(size_text(size).removesuffix(" B") for size in settings["sizes"])]
    place = list(settings.get("place", []))
    line = place[place.index("--") :] if "--" in place else []
    if not line:
        words += ["--mpi", ",".join(settings["mpis"])]
    words += place[: len(place) - len(line)]
    if "--local" not in words and not line:
        words += ["--placement", ",".join(settings["placements"])]
    for option, name, usual in (
        ("--ppn", "ppn", None),
        ("--ranks", "ranks", None),
        ("--root", "root", 0),
        ("--repeat", "repeat", 1),
        ("--seconds", "seconds", 2.0),
        ("--min-iterations", "min_pairs", 8),
        ("--max-iterations", "max_pairs", 1000),
    ):
        if settings.get(name, usual) != usual:
            value = settings[name]
            words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    words += [word for key, value in settings.get("env", {}).items() for word in ("--env", f"{key}={value}")]
    words += [word for rival in settings.get("rivals", []) for word in ("--rival", _rival(rival))]
    words += [word for variant in settings.get("variants", []) for word in ("--variant", _variant(variant))]
    words += ["--memory", settings["memory"]] if settings.get("memory", "host") != "host" else []
    words += ["--traffic", settings["traffic"]] if settings.get("traffic") else []
    words += ["--budget", f"{settings['budget_s']:g}s"] if settings.get("budget_s") else []
    words += ["--floor"] if settings.get("floor") else []
    words += ["--pass-through"] if settings.get("pass_through") else []
    words += [] if settings.get("preload", True) else ["--no-preload"]
    program = "palmette-lab" if _OF_LABS & {*words} else "palmette"
    return shlex.join([program, "bench", *words, *line])


_OF_LABS = {
    *("--lab", "--set", "--placement", "--ppn", "--ranks", "--repeat", "--rival", "--traffic", "--floor"),
    *("--pass-through", "--no-preload"),
}
"""What palmette-lab's command takes besides."""


def _variant(variant: dict[str, Any]) -> str:
    """A preset by its name, everything else in full."""
    if variant.get("collectives"):
        return str(variant["name"])
    return f"{variant['name']}:" + ",".join(f"{key}={value}" for key, value in variant["env"].items())


def _rival(rival: dict[str, Any]) -> str:
    """A preset by its name, everything else in full."""
    if rival.get("coordinates"):
        return str(rival["name"])
    settings = ",".join(f"{key}={value}" for key, value in rival["env"].items())
    return f"{rival['name']}:{rival['mpi']}" + (f":{settings}" if settings else "")
