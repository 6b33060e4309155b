"""The document that the page of a recording draws, of a trace or of a profile: palmette/record/page says its form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from palmette import __version__, _core
from palmette.record import adapters, regions, sampled, snapshots
from palmette.record import links as link_loads
from palmette.record.by_rank import by_rank
from palmette.record.by_rank import to_json as ranks_to_json
from palmette.record.causes import Causes
from palmette.record.columns import packed
from palmette.record.contexts import Contexts
from palmette.record.findings import Findings, balance_of, clocks_compared
from palmette.record.functions import ENDS
from palmette.record.limits import limits_of
from palmette.record.machine import Seats
from palmette.record.processors import crowd_of
from palmette.record.reading import Job
from palmette.record.sent import matrix_of
from palmette.record.tables import Tables, program_of
from palmette.record.timeline import critical_path, timeline

MOST_PATHS = 500
"""Rows of the table of call paths: the costliest."""
MOST_ROWS = 128
PARTS = ("waiting_s", "bound_s", "excess_s", "in_call_s", "completion_s", "other_s")
"""Parts of calls' time. Excess is what is beyond the bound; where that isn't known, both are `in_call`."""


def links_of(job: Job, seats: Seats | None, findings: Findings | None) -> link_loads.Links | None:
    """Return the loads of the links; None where the machine isn't known, or nothing of what a profile sent."""
    if seats is None or not seats.groups:
        return None
    if findings:
        return link_loads.of_trace(findings.view, seats, job)
    return link_loads.of_profile(job, seats)


def document(
    job: Job,
    seats: Seats | None,
    findings: Findings | None,
    notes: Sequence[str] = (),
    links: link_loads.Links | None = None,
    causes: Causes | None = None,
    contexts: Contexts | None = None,
) -> dict[str, Any]:
    """Return what the page shows; `findings` (with what is drawn) of a trace, None for a profile; `links` of links_of.

    Cost: O(sums of all processes + what is drawn).
    """
    tables = Tables(job)
    found: dict[str, Any] = {
        "program": program_of(job), "folder": job.folder.name, "kind": "trace" if findings else "profile",
        "ranks": job.size, "nodes": len({process.host for process in job.processes}),
        "began": _began(job), "version": __version__,
    }  # fmt: skip
    if findings:
        found |= _of_trace(findings, tables)
    else:
        found |= _of_profile(job, seats, tables)
    # That ranks share processors is the first thing to know.
    crowd = crowd_of(job)
    first = found["notes"][:1] if crowd else []
    found["notes"] = [*first, *notes, *found["notes"][len(first) :]]
    known = causes if causes and not causes.withheld else None
    found["causes"] = _causes(known) if known else None
    found["by_rank"] = ranks_to_json(by_rank(job, findings, causes))
    found["sampled"] = sampled.document(job, contexts) if contexts else None
    said = regions.regions_of(job)
    found["regions"] = regions.rows(said)
    found["adapters"], found["snapshots"] = adapters.document(job), snapshots.document(job)
    found["notes"] += regions.notes(job, said) + adapters.notes(job)
    if found["timeline"]:
        found["timeline"]["critical"] = critical_path(findings, known.stretches) if findings and known else None
    levels = seats.levels[: seats.network_levels] if seats else []
    found["links"] = link_loads.to_json(links, levels, packed) if links else None
    found["matrix"] = _matrix(job)
    found |= {
        "functions": tables.functions.names, "places": tables.places.names, "flame": tables.flame(),
        "sizes": tables.sizes(), "durations": tables.durations(), "recorded": _recorded(job, findings),
    }  # fmt: skip
    return found


def _of_trace(findings: Findings, tables: Tables) -> dict[str, Any]:
    waits, rates = findings.view.waits, findings.efficiencies
    split: dict[str, float] = defaultdict(float, waiting_s=0.0)
    paths: dict[tuple[int, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    ranks: dict[tuple[int, int], set[int]] = defaultdict(set)
    for row in waits.rows:
        if waits.kinds[row.function] == "init":
            continue
        key = (tables.functions.of(waits.functions[row.function]), tables.places.of(str(findings.places[row.path])))
        ranks[key].add(row.process)
        judged = waits.judged[row.function]
        bounded = findings.has_whole_bounds
        parts = _parts_of(row.split, waits.kinds[row.function], bounded=bounded) if judged else _unjudged(row.split)
        for name, seconds in parts.items():
            paths[key][name] += seconds
            split[name] += seconds
        paths[key]["calls"] += row.split.calls
        paths[key]["bytes"] += row.split.bytes
        paths[key]["seconds"] += row.split.seconds
        paths[key]["longest_s"] = max(paths[key]["longest_s"], row.longest_s)
    rows: list[dict[str, Any]] = []
    for key, values in sorted(paths.items(), key=lambda item: -item[1]["seconds"])[:MOST_PATHS]:
        known: dict[str, Any] = {name: values.get(name) for name in PARTS}
        rows.append(
            {"function": key[0], "place": key[1], "ranks": len(ranks[key]), "calls": int(values["calls"]),
             "bytes": int(values["bytes"]), "seconds": values["seconds"], "longest_s": values["longest_s"], **known}
        )  # fmt: skip
    return {
        "time_s": rates.time_s, "calls": findings.calls, "notes": findings.notes,
        "findings": [
            {
                "number": number, "kind": one.kind, "function": one.function, "place": str(one.place),
                "ranks": list(one.ranks)[:8], "seconds": one.seconds, "share": one.share, "sentence": one.sentence,
                # The page itself shows what a terminal sends to it for.
                "next": "" if one.window else one.next, "window": list(one.window) if one.window else None,
            }
            for number, one in enumerate(findings.found, 1)
        ],
        "efficiencies": efficiencies_to_json(
            rates.parallel, rates.load_balance, rates.communication, findings.balance
        ) if rates.time_s > 0 and rates.longest_useful_s > 0 else None,
        "split": {"computing_s": sum(waits.useful_s), **{name: split.get(name) for name in PARTS}},
        "timeline": timeline(findings, tables), "paths": rows,
    }  # fmt: skip


COLLECTIVES = ("barrier", "all_to_all", "one_to_all", "all_to_one", "scan")
"""Kinds of calls that end at another time on each rank."""


def _parts_of(split: _core.WaitSplit, kind: str, *, bounded: bool) -> dict[str, float]:
    """Return where the time of calls went, as far as that is known: what isn't, is left out."""
    parts = {"waiting_s": split.waiting_s}
    # Calls that complete requests may complete those of collectives.
    if kind in COLLECTIVES or split.completion_s > 0:
        parts["completion_s"] = split.completion_s
    if bounded and split.bound_s > 0:
        return {**parts, "bound_s": split.bound_s, "excess_s": split.excess_s}
    return {**parts, "in_call_s": split.bound_s + split.excess_s}


def _unjudged(split: _core.WaitSplit) -> dict[str, float]:
    """Return the same of calls whose waits aren't looked for, but of what they complete."""
    waiting = {"waiting_s": split.waiting_s} if split.waiting_s > 0 else {}
    return {**waiting, "other_s": split.bound_s + split.excess_s + split.completion_s}


def _causes(causes: Causes) -> dict[str, Any]:
    return {
        "serialisation": causes.serialisation, "transfer": causes.transfer, "network": causes.network,
        "software": causes.software, "plans": causes.plans, "execution": causes.execution, "others": causes.others,
        "roots": [{"sentence": one.sentence, "share": one.share} for one in causes.roots],
        "shorter": [{"what": what, "gain": gain} for what, gain in causes.shorter],
    }  # fmt: skip


def efficiencies_to_json(
    parallel: float, load_balance: float, communication: float, balance: Sequence[tuple[str, float]]
) -> dict[str, Any]:
    """Return POP's efficiencies as a document."""
    return {
        "parallel": parallel, "load_balance": load_balance, "communication": communication,
        "levels": [{"name": name, "balance": value} for name, value in balance],
    }  # fmt: skip


def _matrix(job: Job) -> dict[str, Any] | None:
    found = matrix_of(job, MOST_ROWS)
    return None if found is None else {
        "rows": len(found.names), "names": found.names, "bytes": packed(found.bytes, "f4"),
        "messages": packed(found.messages, "f4"), "total_bytes": float(found.bytes.sum()), "counted": found.counted,
    }  # fmt: skip


def _of_profile(job: Job, seats: Seats | None, tables: Tables) -> dict[str, Any]:
    in_mpi: dict[int, float] = defaultdict(float)
    ends_s: dict[int, float] = defaultdict(float)
    ran_s = {}
    for process in job.processes:
        recorded = process.recorded
        ran_s[recorded.rank] = max(0, recorded.last_real_ns - recorded.begin_real_ns) * 1e-9
        for one in recorded.aggregates:
            if not one.is_request:
                (ends_s if one.function in ENDS else in_mpi)[recorded.rank] += one.seconds
    time_s = max((seconds - ends_s[rank] for rank, seconds in ran_s.items()), default=0.0)
    useful_s = {rank: max(0.0, seconds - ends_s[rank] - in_mpi[rank]) for rank, seconds in ran_s.items()}
    efficiencies = None
    if time_s > 0 and (longest := max(useful_s.values())) > 0:
        balance = sum(useful_s.values()) / len(useful_s) / longest
        efficiencies = efficiencies_to_json(
            balance * longest / time_s, balance, longest / time_s, balance_of(useful_s, seats)
        )
    rows = [
        {"function": function, "place": place, "calls": sums.calls, "bytes": sums.bytes, "seconds": sums.seconds,
         **dict.fromkeys(PARTS), "longest_s": sums.longest_s, "ranks": len(tables.ranks[function, place])}
        for (function, place), sums in sorted(tables.rows.items(), key=lambda item: -item[1].seconds)[:MOST_PATHS]
        if tables.functions.names[function] not in ENDS
    ]  # fmt: skip
    crowd = crowd_of(job)
    return {
        "time_s": time_s, "calls": sum(sums.calls for sums in tables.rows.values()), "findings": [],
        "notes": [
            *([crowd.note] if crowd else []),
            *limits_of((process.recorded for process in job.processes), sums=True, communicators=False),
            *tables.notes, *job.notes(),
        ],
        "efficiencies": efficiencies, "timeline": None, "paths": rows,
        "split": {
            "computing_s": sum(useful_s.values()), **dict.fromkeys(PARTS), "other_s": sum(in_mpi.values()),
        },
    }  # fmt: skip


def _began(job: Job) -> str | None:
    """Return when the first process began; None of simulated time, which begins with the epoch."""
    began_ns = min((one.recorded.begin_real_ns for one in job.processes), default=0)
    if not began_ns or any(one.simulated for one in job.processes):
        return None
    return datetime.fromtimestamp(began_ns * 1e-9, timezone.utc).isoformat(timespec="seconds")


def _recorded(job: Job, findings: Findings | None) -> list[list[str]]:
    """Return how the recording was made: label and text."""
    processes = [one.recorded for one in job.processes]
    costs = sorted(one.call_cost_s for one in processes if one.call_cost_s > 0)
    rows = [["palmette", __version__], ["recorded", "calls one by one, and sums" if findings else "sums"]]
    if costs:
        rows.append(["cost of recording a call", f"{costs[len(costs) // 2] * 1e9:.0f} ns (median of the processes)"])
    if pairs := sorted(one.region_cost_s for one in processes if one.region_cost_s > 0):
        rows.append(["cost of a region", f"{pairs[len(pairs) // 2] * 1e9:.0f} ns to begin and end it (median)"])
    if findings:
        error_s = findings.view.waits.clock_error_s
        # A node alone has one clock.
        wrong = _core.format_duration(error_s) if error_s else "0" if clocks_compared(job) else "not known"
        rows.append(["clocks of nodes are wrong by at most", wrong])
        dropped = findings.view.waits.dropped
        rows.append(["calls of which only sums remain", f"{dropped:,}"])
    partial = sum(one.unpathed for one in processes)
    rows.append(["calls without a call path", f"{partial:,}"])
    hosts = sorted({one.host for one in job.processes})
    rows.append(["nodes", ", ".join(hosts[:8]) + (f" and {len(hosts) - 8} more" if len(hosts) > 8 else "")])
    if any(one.simulated for one in job.processes):
        rows.append(["time", "simulated by SimGrid"])
    return rows
