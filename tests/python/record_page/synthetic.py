"""Documents for the page of a recording, from a made-up program: halo exchange, a sum, sometimes a broadcast.

Rank LATE computes longer than the others, so that they wait for it.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palmette.record.timeline import row_name

FUNCTIONS = ["MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Allreduce", "MPI_Bcast", "MPI_Comm_size"]
PLACES = ["halo.cpp:118", "halo.cpp:121", "halo.cpp:140", "residual.cpp:57", "input.cpp:33", "timestep.cpp:88"]
ISEND, IRECV, WAITALL, ALLREDUCE, BCAST, COMM_SIZE = range(6)
LATE = 5
BOUND_S = 8e-6
HALO_BYTES = 65536
LINK_BYTES_PER_S = 1.25e9
UNITS = 2**32

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass
class Calls:
    """Columns of all calls, by begin; times in seconds."""

    rank: Integers
    function: Integers
    begin: Floats
    length: Floats
    waiting: Floats
    bytes: Integers
    waits_for: Integers


def packed(values: Any, kind: str) -> str:
    """A column as it stands in the document."""
    raw = np.ascontiguousarray(np.asarray(values), dtype=kind).tobytes()
    return base64.b64encode(gzip.compress(raw, 9, mtime=0)).decode()


def document(
    *, kind: str = "trace", ranks: int = 8, nodes: int = 2, steps: int = 40, most_calls: int = 60_000,
    most_messages: int = 20_000, fabric: tuple[int, ...] = (2, 1), finest: int = 2048, link_bins: int = 64,
) -> dict[str, Any]:  # fmt: skip
    """Return a document; `fabric` says how many children each node of a level of the machine's tree has."""
    traced = kind == "trace"
    calls, messages, span_s = _run(ranks, steps)
    mpi_s, waiting_s = float(calls.length.sum()), float(calls.waiting.sum())
    whole_s = span_s * ranks
    bound_s = BOUND_S * float((calls.function == ALLREDUCE).sum())
    rest_s = mpi_s - waiting_s - bound_s
    result: dict[str, Any] = {
        "program": "heat3d --grid 512 --steps 2000", "folder": "calls", "kind": kind, "ranks": ranks, "nodes": nodes,
        "time_s": span_s, "calls": len(calls.rank), "began": "2026-11-28T02:57:11Z", "version": "0.9.0",
        "findings": _findings(calls, whole_s) if traced else [],
        "efficiencies": None,
        "split": {
            "computing_s": whole_s - mpi_s, "waiting_s": waiting_s, "bound_s": bound_s, "excess_s": rest_s * 0.2,
            "in_call_s": rest_s * 0.4, "completion_s": rest_s * 0.3, "other_s": rest_s * 0.1,
        },
        "notes": ["of 1,204 calls only sums remain (PALMETTE_TRACE_BYTES gives the rings more memory)"],
        "functions": FUNCTIONS, "places": PLACES, "timeline": None, "matrix": None, "links": None,
        "paths": _paths(calls, traced), "flame": _flame(calls),
        "sizes": _classes(calls, calls.bytes, ("bytes_from", "bytes_to")),
        "durations": _classes(calls, calls.length * 1e9, ("from_s", "to_s"), 1e-9),
        "recorded": [
            ["cost of a call", "54 ns, of which reading the clock takes 35"],
            ["clocks", "compared twice, wrong by up to 80 ns"],
            ["MPI", "MPICH 4.2.3"], ["palmette", "0.9.0"], ["dropped", "of 1,204 calls only sums remain"],
        ],
    }  # fmt: skip
    result["sampled"], result["viewed"] = _sampled(ranks)
    if not traced:
        result["split"] |= dict.fromkeys(("waiting_s", "bound_s", "excess_s", "in_call_s", "completion_s"))
        result["split"]["other_s"] = mpi_s
        return result
    computing = np.bincount(calls.rank, -calls.length, ranks) + span_s
    balance, longest = float(computing.mean() / computing.max()), float(computing.max())
    result["efficiencies"] = {
        "parallel": balance * longest / span_s, "load_balance": balance, "communication": longest / span_s,
        "levels": [{"name": "node", "balance": balance**0.3}, {"name": "core", "balance": balance**0.7}],
    }  # fmt: skip
    result["timeline"] = _timeline(calls, messages, span_s, ranks, nodes, (most_calls, most_messages, finest))
    result["matrix"] = _matrix(messages, ranks)
    result["links"] = _links(messages, ranks, span_s, fabric, link_bins)
    return result


SOURCE = "/home/user/heat3d/stencil.cpp"


def _sampled(ranks: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return samples of a small program: main, a loop in it, and two functions that the loop calls."""
    columns = min(ranks, 128)
    rows = [
        (0, "main(int, char**)", "native", [12, 14], 10.0, 0.0), (1, "loop at stencil.cpp:12", "loop", [14], 10.0, 1.0),
        (2, "smooth(double*, int)", "native", [3, 4], 6.0, 6.0), (2, "residual<script>", "native", [7], 3.0, 3.0),
    ]  # fmt: skip
    each = {"mean_s": 0.5, "deviation_s": 0.1, "least_s": 0.1, "least_rank": 2, "most_s": 0.9, "most_rank": 1}
    named = [{"function": name, "file": SOURCE, "kind": kind, "cpu_s": time_s} for _, name, kind, _, time_s, _ in rows]
    tree = [
        {**one, **each, "depth": row[0], "lines": row[3], "own_s": row[5], "is_hot": at < 3}
        for at, (one, row) in enumerate(zip(named, rows, strict=True))
    ]
    functions = [{**named[at], "own_s": rows[at][5]} for at in (0, 2, 3)]
    callers = [
        {**named[2], "depth": 0}, {**named[1], "depth": 1}, {**named[0], "depth": 2}, {**named[3], "depth": 0},
    ]  # fmt: skip
    sampled = {
        "samples": 1000, "rate_hz": 100.0, "complete": 1.0, "lost": 0, "computing_s": 10.0, "in_mpi_s": 0.0,
        "functions": functions, "tree": tree, "callers": callers,
        "lines": [{
            "function": "smooth(double*, int)", "place": "stencil.cpp:3", "file": SOURCE, "line": 3, "cpu_s": 4.0,
            "share": 0.4, "least_s": 0.1, "least_rank": 2, "most_s": 0.9, "most_rank": 1,
        }],
    }  # fmt: skip

    def by_rank(count: int) -> dict[str, str]:
        histogram = np.zeros((count, 16), int)
        histogram[:, 0], histogram[:, 15] = ranks - 1, 1
        seconds = np.linspace(0.1, 0.9, count * columns)
        return {
            "seconds": packed(seconds, "f4"), "histogram": packed(histogram, "u4"),
            "least": packed(np.full(count, 0.1), "f4"), "most": packed(np.full(count, 0.9), "f4"),
        }  # fmt: skip

    source = {
        "file": SOURCE, "first": 1, "lines": ["// </script>", "void smooth() {", *["  x;"] * 12],
        "seconds": {3: 4.0, 4: 2.0, 7: 3.0, 12: 9.0, 14: 9.0}, "is_newer": True,
    }  # fmt: skip
    return sampled, {
        "columns": [f"rank {rank}" for rank in range(columns)], "bins": 16, "tree": by_rank(len(tree)),
        "functions": by_rank(len(functions)), "sources": [source],
    }  # fmt: skip


def _run(ranks: int, steps: int) -> tuple[Calls, Floats, float]:
    """Return calls, messages (from, to, sent, received, bytes) and the time that all takes."""
    random = np.random.default_rng(7)
    now = np.zeros(ranks)
    who = np.arange(ranks)
    columns: list[list[NDArray[Any]]] = [[] for _ in range(7)]
    messages: list[Floats] = []

    def call(function: int, length: Any, waiting: Any = 0.0, size: int = 0, waits_for: Any = -1) -> None:
        values = (who, function, now.copy(), length, waiting, size, waits_for)
        for column, value in zip(columns, values, strict=True):
            column.append(np.broadcast_to(value, ranks).copy())
        now[:] = now + length

    for step in range(steps):
        work = 2e-3 * (1 + 0.06 * random.random(ranks)) * (1 + 0.25 * np.sin(who / ranks * 3.1))
        if ranks > LATE:
            work[LATE] *= 1.6 if step % 7 < 4 else 1.05
        now += work
        call(COMM_SIZE, 4e-8)
        sent = now.copy()
        for _ in range(2):
            call(IRECV, random.uniform(4e-7, 9e-7, ranks), size=HALO_BYTES)
            call(ISEND, random.uniform(6e-7, 2e-6, ranks), size=HALO_BYTES)
        left, right = np.roll(sent, 1), np.roll(sent, -1)
        comes = np.maximum(left, right)
        until = np.maximum(comes, now)
        transfer = HALO_BYTES / LINK_BYTES_PER_S * random.uniform(1, 2.5, ranks)
        waits_for = np.where(left > right, np.roll(who, 1), np.roll(who, -1))
        call(WAITALL, until - now + transfer, until - now, 0, np.where(until > now, waits_for, -1))
        for shift in (1, -1):
            to = np.roll(who, -shift)
            messages.append(np.stack([who, to, sent, now[to], np.full(ranks, HALO_BYTES)], 1))
        for function, size, every in ((ALLREDUCE, 8, 1), (BCAST, 4096, 10)):
            if step % every == 0:
                last = int(now.argmax()) if function == ALLREDUCE else 0
                late = np.maximum(now[last] - now, 0)
                call(function, late + BOUND_S + random.uniform(2e-6, 2e-5, ranks), late, size, np.where(late, last, -1))
    joined = [np.concatenate(column) for column in columns]
    order = np.argsort(joined[2], kind="stable")
    return Calls(*(column[order] for column in joined)), np.concatenate(messages), float(now.max()) * 1.001


def _findings(calls: Calls, whole_s: float) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for function in (ALLREDUCE, WAITALL):
        mine = calls.function == function
        seconds = float(calls.waiting[mine].sum())
        worst = int(np.argmax(np.where(mine, calls.waiting, 0)))
        begin = float(calls.begin[worst])
        name, place = FUNCTIONS[function], PLACES[function]
        found.append({
            "kind": "late_rank", "function": name, "place": place, "ranks": [LATE], "seconds": seconds,
            "share": seconds / whole_s, "next": "palmette top calls --calls",
            "sentence": f"{name} at {place}: rank {LATE} comes last 23 times, 1.12 ms behind the one before it; the "
            f"others wait {seconds / whole_s:.0%} of all ranks' time for it",
            "window": [max(0.0, begin - 2e-3), begin + 4e-3],
        })  # fmt: skip
    found.sort(key=lambda one: -float(one["seconds"]))
    found.append({
        "kind": "long_call", "function": "MPI_Waitall", "place": "halo.cpp:140", "ranks": [], "window": None,
        "seconds": 0.02 * whole_s, "share": 0.02, "next": "palmette explain allreduce --size 8 --topology cluster.json",
        "sentence": "MPI_Waitall at halo.cpp:140: 320 calls take 84.2 us each besides waiting, 2% of all ranks' time",
    })  # fmt: skip
    return [{"number": number, **one} for number, one in enumerate(found, 1)]


def _covered(row: Integers, begin: Floats, end: Floats, rows: int, bins: int) -> Floats:
    """Share of each bin that intervals cover, times in bins."""
    row, begin, end = row[end > begin], begin[end > begin], end[end > begin]
    first, last = np.floor(begin).astype(int), np.minimum(np.floor(end).astype(int), bins - 1)
    whole = np.zeros((rows, bins + 1))
    part = np.zeros((rows, bins))
    one = first == last
    np.add.at(part, (row[one], first[one]), (end - begin)[one])
    row, begin, end, first, last = row[~one], begin[~one], end[~one], first[~one], last[~one]
    np.add.at(part, (row, first), first + 1 - begin)
    np.add.at(part, (row, last), end - last)
    np.add.at(whole, (row, first + 1), 1)
    np.add.at(whole, (row, last), -1)
    covered: Floats = part + whole.cumsum(1)[:, :bins]
    return covered


def _timeline(
    calls: Calls, messages: Floats, span_s: float, ranks: int, nodes: int, most: tuple[int, int, int]
) -> dict[str, Any]:
    most_calls, most_messages, finest = most
    each = -(-ranks // 128)
    rows = -(-ranks // each)
    row = calls.rank // each
    scale = finest / span_s
    begin, end = calls.begin * scale, (calls.begin + calls.length) * scale
    by_function = np.stack([
        _covered(row[calls.function == one], begin[calls.function == one], end[calls.function == one], rows, finest)
        for one in range(len(FUNCTIONS))
    ])  # fmt: skip
    mpi, waiting = by_function.sum(0) / each, _covered(row, begin, begin + calls.waiting * scale, rows, finest) / each
    levels = []
    bins = 256
    while bins <= finest:
        coarse = [one.reshape(*one.shape[:-1], bins, -1).mean(-1) for one in (mpi, waiting, by_function)]
        costliest = np.where(coarse[0] > 0, coarse[2].argmax(0), 255)
        levels.append({
            "bins": bins, "mpi": packed(np.clip(coarse[0] * 255, 0, 255).round(), "u1"),
            "waiting": packed(np.clip(coarse[1] * 255, 0, 255).round(), "u1"), "function": packed(costliest, "u1"),
        })  # fmt: skip
        bins *= 4
    kept = np.sort(np.argsort(-calls.length, kind="stable")[:most_calls])
    unit = (UNITS - 1) / span_s
    chosen = messages[:: max(1, len(messages) // most_messages)][:most_messages]
    first, last = np.arange(rows) * each, np.minimum(np.arange(rows) * each + each, ranks) - 1
    return {
        "span_s": span_s,
        "rows": [
            {"name": f"rank {a}" if each == 1 else f"ranks {a}-{b}", "host": f"n{a * nodes // ranks:03}"}
            for a, b in zip(first.tolist(), last.tolist(), strict=True)
        ],
        "levels": levels,
        "calls": {
            "count": len(kept), "total": len(calls.rank), "row": packed(row[kept], "<u2"),
            "begin": packed(calls.begin[kept] * unit, "<u4"), "length": packed(calls.length[kept] * unit, "<u4"),
            "waiting": packed(calls.waiting[kept] * unit, "<u4"), "function": packed(calls.function[kept], "u1"),
            "place": packed(calls.function[kept], "<u2"), "bytes": packed(calls.bytes[kept], "<f4"),
            "waits_for": packed(calls.waits_for[kept], "<i4"),
        },
        "messages": {
            "count": len(chosen), "total": len(messages), "from": packed(chosen[:, 0] // each, "<u2"),
            "to": packed(chosen[:, 1] // each, "<u2"), "sent": packed(chosen[:, 2] * unit, "<u4"),
            "received": packed(chosen[:, 3] * unit, "<u4"), "bytes": packed(chosen[:, 4], "<f4"),
        },
        "critical": {
            "count": 40, "total": 40, "row": packed(np.arange(40) % rows, "<u2"),
            "begin": packed(np.arange(40) / 40 * (UNITS - 1), "<u4"),
            "end": packed(np.arange(1, 41) / 40 * (UNITS - 1), "<u4"),
        },
    }  # fmt: skip


def _paths(calls: Calls, traced: bool) -> list[dict[str, Any]]:
    rows = []
    for function in range(len(FUNCTIONS)):
        mine = calls.function == function
        count, seconds, waiting = int(mine.sum()), float(calls.length[mine].sum()), float(calls.waiting[mine].sum())
        if not count:
            continue
        bound = BOUND_S * count if function == ALLREDUCE else None
        beyond = (seconds - waiting - (bound or 0.0)) * 0.7
        split = {
            "waiting_s": waiting, "bound_s": bound, "excess_s": None if bound is None else beyond,
            "in_call_s": beyond if bound is None else None, "completion_s": (seconds - waiting - (bound or 0.0)) * 0.3,
        }  # fmt: skip
        rows.append({
            "function": function, "place": function, "calls": count, "bytes": int(calls.bytes[mine].sum()),
            "seconds": seconds, **(split if traced else dict.fromkeys(split)),
            "longest_s": float(calls.length[mine].max()), "ranks": len(np.unique(calls.rank[mine])),
        })  # fmt: skip
    return rows


def _flame(calls: Calls) -> dict[str, Any]:
    names = ["heat3d", "main", "Solver::step(Field&)", "Halo::exchange(Field&, int)", "residual(Field const&)",
             "read_input", *FUNCTIONS]  # fmt: skip

    def leaf(function: int) -> list[Any]:
        mine = calls.function == function
        return [6 + function, float(calls.length[mine].sum()), int(mine.sum()), []]

    exchange = [3, 0.0, 0, [leaf(WAITALL), leaf(ISEND), leaf(IRECV)]]
    step = [2, 0.0, 0, [exchange, [4, 0.0, 0, [leaf(ALLREDUCE)]], leaf(COMM_SIZE)]]
    return {"names": names, "tree": [0, 0.0, 0, [[1, 0.0, 0, [step, [5, 0.0, 0, [leaf(BCAST)]]]]]]}


def _classes(calls: Calls, values: NDArray[Any], names: tuple[str, str], unit: float = 1) -> list[dict[str, Any]]:
    """Return one row for each function and power of two."""
    with np.errstate(divide="ignore"):
        power = np.where(values >= 1, np.floor(np.log2(np.maximum(values, 1))), -1).astype(int)
    rows = []
    for function in range(len(FUNCTIONS)):
        for one in np.unique(power[calls.function == function]):
            mine = (calls.function == function) & (power == one)
            low, high = (0, 0) if one < 0 else (2 ** int(one) * unit, 2 ** (int(one) + 1) * unit)
            row: dict[str, Any] = {"function": function, names[0]: low, names[1]: high, "calls": int(mine.sum())}
            if "bytes_from" in names:
                row["seconds"] = float(calls.length[mine].sum())
            rows.append(row)
    return rows


def _sums(messages: Floats, places: int, each: int) -> tuple[Floats, Floats]:
    cell = (messages[:, 0].astype(int) // each, messages[:, 1].astype(int) // each)
    size, count = np.zeros((places, places)), np.zeros((places, places))
    np.add.at(size, cell, messages[:, 4])
    np.add.at(count, cell, 1)
    return size, count


def _matrix(messages: Floats, ranks: int) -> dict[str, Any]:
    each = -(-ranks // 128)
    rows = -(-ranks // each)
    size, count = _sums(messages, rows, each)
    return {
        "rows": rows, "names": [row_name(range(row * each, min((row + 1) * each, ranks))) for row in range(rows)],
        "bytes": packed(size, "<f4"), "messages": packed(count, "<f4"),
        "total_bytes": float(size.sum()),
        "counted": "Messages point to point, and those of collectives that palmette serves.",
    }  # fmt: skip


def _links(messages: Floats, ranks: int, span_s: float, fabric: tuple[int, ...], bins: int) -> dict[str, Any]:
    levels = ["core", *["spine", "leaf"][-(len(fabric) - 1) :], "node"] if len(fabric) > 1 else ["switch", "node"]
    parents, level_of, names = [-1], [0], ["core"]
    above = [0]
    for level, children in enumerate(fabric, 1):
        here = []
        for parent in above:
            for _ in range(children):
                here.append(len(parents))
                parents.append(parent)
                level_of.append(level)
                names.append(f"{levels[level]}{len(here) - 1}")
        above = here
    hosts = len(above)
    sent = messages.copy()
    sent[:, :2] = np.floor(sent[:, :2] * hosts / ranks)
    size = _sums(sent, hosts, 1)[0]
    below = {host: np.array([number]) for number, host in enumerate(above)}
    for node in reversed(range(1, len(parents))):
        own = below[node]
        below[parents[node]] = np.concatenate([own, below[parents[node]]]) if parents[node] in below else own
    random = np.random.default_rng(3)
    shape = 0.3 + np.abs(np.sin(np.arange(bins) / bins * 19))
    nodes = []
    for node, parent in enumerate(parents):
        inside = np.zeros(hosts, bool)
        inside[below[node]] = True
        up, down = float(size[inside][:, ~inside].sum()), float(size[~inside][:, inside].sum())
        over_time = shape * random.uniform(0.7, 1.3, bins)
        nodes.append({
            "name": names[node], "level": level_of[node], "parent": parent, "up_bytes": up, "down_bytes": down,
            "rate_Bps": None if parent < 0 else LINK_BYTES_PER_S * (1 if level_of[node] == len(fabric) else 0.5),
            "up": packed(over_time / over_time.sum() * up, "<f4") if parent >= 0 else None,
            "down": packed(over_time / over_time.sum() * down, "<f4") if parent >= 0 else None,
        })  # fmt: skip
    return {
        "levels": levels, "bins": bins, "span_s": span_s, "nodes": nodes,
        "counted": "Every byte that left a node; exact for collectives that palmette serves, a lower bound for others.",
    }  # fmt: skip


@lru_cache
def many(ranks: int = 1024) -> dict[str, Any]:
    """The largest document that is made: 128 rows, 60,000 calls, 1,024 hosts."""
    return document(ranks=ranks, nodes=ranks, steps=60, fabric=(4, 8, 32), finest=4096, link_bins=64)
