"""Findings that name a cause in how ranks communicate: serialised chains, many small messages, uneven bytes."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from palmette import _core
from palmette.record.causes import Causes
from palmette.record.findings import (
    LEAST_SHARE,
    MAJORITY_SHARE,
    MAX_FINDINGS,
    Finding,
    Findings,
    by_place,
    whole_time_s,
)
from palmette.record.functions import operation
from palmette.record.machine import Seats
from palmette.record.reading import Job
from palmette.record.sent import exchanged_by_rank
from palmette.record.symbols import Place
from palmette.units import bytes_text

MOST_NAMED = 6
"""Ranks of a chain that are told."""
CHAIN_SHARE = 1 / 3
"""The share of a place's calls that wait in chains from which on they are the program's, not a late rank's echo."""
UNEVEN_FACTOR = 2.0
"""Times the mean of all ranks, from which on a rank's bytes are told."""
IRREGULAR = frozenset({
    "alltoallv", "alltoallw", "allgatherv", "gatherv", "scatterv", "reduce_scatter", "neighbor_allgatherv",
    "neighbor_alltoallv", "neighbor_alltoallw",
})  # fmt: skip
"""Collectives with a count for each block."""


def with_patterns(
    found: Sequence[Finding], job: Job, seats: Seats | None, findings: Findings, causes: Causes
) -> list[Finding]:
    """Return findings (of `findings`, with causes) in which chains, rows of small messages and uneven bytes are told.

    Cost: O(findings + sums of all processes).
    """
    told = _with_uneven(found, job, findings)
    small = _small(job, seats, findings, causes)
    chained = _chains(job, findings, causes, {(one.function, one.place) for one in small})
    for one in (*small, *chained):
        told = _instead(told, one, chained)
    return told[:MAX_FINDINGS]


def _instead(told: Sequence[Finding], one: Finding, chained: Sequence[Finding]) -> list[Finding]:
    """Return findings with one more, which replaces those that it explains, before what costs less."""
    explained = ("late_rank", "taking_turns") if one in chained else ("long_call",)
    kept = [
        other
        for other in told
        if not (other.kind in explained and (other.function, other.place) == (one.function, one.place))
    ]
    at = next((at for at, other in enumerate(kept) if other.seconds < one.seconds), len(kept))
    return [*kept[:at], one, *kept[at:]]


def _chains(job: Job, findings: Findings, causes: Causes, small: set[tuple[str, Place]]) -> list[Finding]:
    """Return a finding for each place where ranks wait for one another in a row."""
    waits = findings.view.waits
    whole_s = whole_time_s(waits)
    calls: dict[tuple[str, Place], int] = defaultdict(int)
    for key, rows in by_place(waits, findings.places, waits.rows).items():
        calls[key] = sum(row.split.calls for row in rows)
    found = []
    for (function, place), chains in causes.chains.items():
        seconds = min(sum(one.waiting_s for one in chains), findings.waiting_s)
        waited = sum(one.waits for one in chains)
        share = seconds / whole_s if whole_s > 0 else 0.0
        if share < LEAST_SHARE or waited < CHAIN_SHARE * calls[function, place] or (function, place) in small:
            continue
        longest = max(chains, key=lambda one: len(one.processes))
        ranks = [waits.ranks[process] for process in longest.processes]
        times = sum(one.instances for one in chains)
        often = "once" if times == 1 else f"{times:,} times"
        text = f"{function} at {place}: each rank waits for the one before it, a chain through ranks {_named(ranks)}, "
        text += f"{often}; waiting for it takes {share:.0%} of all ranks' time"
        busy = sum(waits.useful_s) / findings.efficiencies.time_s if findings.efficiencies.time_s > 0 else 0.0
        if seconds >= MAJORITY_SHARE * findings.waiting_s and busy >= 0.05:
            text += f"; at each moment about {max(busy, 0.1):.1f} of {findings.ranks} ranks compute"
        more = f"palmette report {shlex.quote(str(job.folder))} -o report.html"
        found.append(Finding("chain", function, place, tuple(ranks), seconds, share, text, more))
    return found


def _named(ranks: Sequence[int]) -> str:
    if len(ranks) <= MOST_NAMED:
        return ", ".join(map(str, ranks))
    return f"{', '.join(map(str, ranks[: MOST_NAMED - 2]))}, ..., {ranks[-1]} ({len(ranks)} ranks)"


def _small(job: Job, seats: Seats | None, findings: Findings, causes: Causes) -> list[Finding]:
    """Return a finding for each place from which many small messages are sent in a row."""
    whole_s = whole_time_s(findings.view.waits)
    found = []
    for (function, place), runs in causes.message_runs.items():
        seconds = sum(one.seconds for one in runs)
        share = seconds / whole_s if whole_s > 0 else 0.0
        if share < LEAST_SHARE:
            continue
        messages, size = sum(one.messages for one in runs), sum(one.bytes for one in runs)
        longest = max(runs, key=lambda one: one.longest)
        ranks = [findings.view.waits.ranks[process] for process in (longest.sender, longest.receiver)]
        together = longest.longest_bytes
        each_s = seconds / messages
        text = (
            f"{function} at {place}: {messages:,} messages {size_text(size, messages)}, up to {longest.longest:,} in "
        )
        text += f"a row to the same rank; with what is called in between they take {_core.format_duration(each_s)} "
        text += f"each, {share:.0%} of all ranks' time; one message of {_whole(together)} takes "
        text += _one_message(seats, ranks, together)
        more = f"palmette top {shlex.quote(str(job.folder))} --calls"
        found.append(Finding("small_messages", function, place, (), seconds, share, text, more))
    return found


def _whole(size: float) -> str:
    """Return bytes with their unit."""
    return f"{bytes_text(size)} bytes" if size < 1024 else f"{bytes_text(size)}B"


def _one_message(seats: Seats | None, ranks: Sequence[int], size: int) -> str:
    """Return what one message takes by the model, and what that rests on."""
    job = seats.job.restricted_to(ranks) if seats else _core.Job(_core.Machine.synthetic("1node:2core"), "block", 2)
    try:
        costs = _core.Costs.of(job)
        seconds = _core.predict_algorithm(job, "bcast", "linear", costs, 0, size).seconds
    except _core.Error:
        return "one call's time"
    known = "" if seats and seats.has_rates else ", with assumed costs"
    return f"about {_core.format_duration(seconds)} (by the model{known})"


def size_text(size: float, calls: int) -> str:
    """Return `of 8 bytes`, or what calls have on average."""
    if not calls:
        return ""
    mean = size / calls
    return f"of {_whole(mean)}" if mean == int(mean) else f"of {_whole(mean)} on average"


def _with_uneven(found: Sequence[Finding], job: Job, findings: Findings) -> list[Finding]:
    """Return findings with irregular collectives' uneven bytes: in one of each place, rather that of its long calls."""
    kinds = ("long_call", "taking_turns", "late_rank")
    chosen: dict[tuple[str, Place], Finding] = {}
    for one in sorted((one for one in found if one.kind in kinds), key=lambda one: kinds.index(one.kind)):
        chosen.setdefault((one.function, one.place), one)
    told = []
    for one in found:
        if chosen.get((one.function, one.place)) is one and (uneven := _uneven(job, findings, one.function, one.place)):
            told.append(replace(one, kind="uneven_bytes", sentence=f"{one.sentence}; {uneven}"))
        else:
            told.append(one)
    return told


def _uneven(job: Job, findings: Findings, function: str, place: Place) -> str:
    """Return which rank sends or gets far more than others in an irregular collective; nothing where none does."""
    if operation(function) not in IRREGULAR:
        return ""
    waits = findings.view.waits
    sent: dict[int, float] = dict.fromkeys(waits.ranks, 0.0)
    all_exchanged = 0.0
    for (other, at), rows in by_place(waits, findings.places, waits.rows).items():
        for row in rows:
            if (other, at) == (function, place):
                sent[waits.ranks[row.process]] += row.split.bytes
            if operation(other) in ("alltoall", "alltoallv", "alltoallw"):
                all_exchanged += row.split.bytes
    parts = []
    received = exchanged_by_rank(job)
    # Bytes are counted by receiver for all exchanges together.
    if operation(function).startswith("alltoall") and sum(sent.values()) >= MAJORITY_SHARE * all_exchanged:
        parts.append(_most(received, "gets"))
    parts.append(_most(sent, "gets" if operation(function) == "scatterv" else "sends"))
    return "; ".join(part for part in parts if part)


def _most(by_rank: dict[int, float], does: str) -> str:
    whole = sum(by_rank.values())
    if len(by_rank) < 2 or whole <= 0:
        return ""
    rank = max(by_rank, key=lambda one: by_rank[one])
    mean, others = whole / len(by_rank), sorted(by_rank.values())
    if by_rank[rank] < UNEVEN_FACTOR * mean:
        return ""
    middle = others[len(others) // 2]
    return (
        f"rank {rank} {does} {by_rank[rank] / whole:.0%} of all bytes ({bytes_text(by_rank[rank])}, the median rank "
        f"{bytes_text(middle)})"
    )
