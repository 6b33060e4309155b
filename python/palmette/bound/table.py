"""The terms of a physical bound: per level the slowest edge and all edges together; latencies, rounds, memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from palmette import _core
from palmette.bound.reason import reason
from palmette.present.table import Column, Table, aligned
from palmette.present.words import clipped, wrapped
from palmette.units import WIDEST, bytes_text, rate_text, text_width


def terms_json(terms: _core.BoundTerms, in_network: bool = False) -> dict[str, Any]:
    """Return the requested limit and all terms with the names of levels and groups; None: unknown."""
    decides = terms.limit_in_network if in_network else terms.limit
    return {
        "seconds": decides.seconds if decides.seconds > 0 else None,
        "bound": limit_json(terms.limit),
        "bound_in_network": limit_json(terms.limit_in_network),
        "levels": [_level_json(level) for level in terms.levels],
        "rounds": {
            "members": terms.rounds.members,
            "at_once": terms.rounds.at_once or None,
            "rounds": terms.rounds.rounds or None,
            "latency_s": terms.rounds.latency_s or None,
            "spread_s": terms.rounds.spread_s or None,
            "seconds": terms.rounds.seconds or None,
        },
        "one_port": {
            "members": terms.one_port.members,
            "blocks": terms.one_port.blocks or None,
            "rounds": terms.one_port.rounds,
            "latency_s": terms.one_port.latency_s,
            "bytes": terms.one_port.bytes,
            "bytes_per_s": terms.one_port.bytes_per_s or None,
            "seconds": terms.one_port.seconds,
        }
        if terms.one_port.seconds > 0
        else None,
        "copy": _memory_json(terms.copy),
        "reduce": _memory_json(terms.reduce),
    }


def limit_json(bound: _core.Bound) -> dict[str, Any] | None:
    """Return a limit with its deciding term, None where nothing is known."""
    if bound.seconds <= 0:
        return None
    return {
        "seconds": bound.seconds,
        "kind": bound.kind,
        "level": bound.level or None,
        "group": bound.group_name or (bound.group if bound.group >= 0 else None),
        "direction": ("out" if bound.outwards else "in") if bound.kind == "link" else None,
        "bytes": bound.bytes,
        "bytes_per_s": bound.capacity_bytes_per_s or None,
        "reason": reason(bound),
    }


def edge_json(edge: _core.EdgeTerm) -> dict[str, Any]:
    """Return one edge: the bytes that must cross it, and their time."""
    return {
        "group": edge.name or edge.group,
        "bytes_out": edge.bytes_out,
        "bytes_in": edge.bytes_in,
        "bytes_per_s": edge.capacity_bytes_per_s or None,
        "seconds": edge.seconds if edge.capacity_bytes_per_s else None,
    }


def _level_json(level: _core.LevelTerms) -> dict[str, Any]:
    return {
        "level": level.level,
        "groups": level.groups,
        "edges_without_capacity": level.unknown,
        "slowest_edge": edge_json(level.worst) if level.worst.group >= 0 else None,
        "together": {
            "bytes": level.together_bytes,
            "bytes_per_s": level.together_bytes_per_s or None,
            "seconds": level.together_s if level.together_bytes_per_s else None,
        },
        "with_aggregators": {
            "bytes": level.with_aggregators_bytes,
            "bytes_per_s": level.with_aggregators_bytes_per_s,
            "seconds": level.with_aggregators_s,
        }
        if level.with_aggregators_s
        else None,
        "latency_s": level.latency_s or None,
        "crossed": level.crossed,
    }


def _memory_json(term: _core.MemoryTerm) -> dict[str, Any]:
    return {"bytes": term.bytes, "bytes_per_s": term.bytes_per_s or None, "seconds": term.seconds or None}


def limit_lines(terms: _core.BoundTerms) -> list[str]:
    """Both limits with their deciding terms, one above the other."""
    lines = []
    for bound, what in (
        (terms.limit, "bound"),
        (terms.limit_in_network, "bound where the network reduces and multicasts"),
    ):
        if bound.seconds <= 0:
            lines.append(f"{what}: none, {'nothing has to move' if _nothing_moves(terms) else 'nothing is known'}")
            continue
        text = f"{what}: {_core.format_duration(bound.seconds)}, {reason(bound)}"
        lines += wrapped(text)
    return lines


def size_lines(terms_of: Mapping[int, _core.BoundTerms], in_network: bool) -> list[str]:
    """A row per size: the limit and its deciding term."""
    rows: list[Sequence[str]] = [("size", "bound", "set by")]
    for size_bytes, terms in terms_of.items():
        limit = terms.limit_in_network if in_network else terms.limit
        known = limit.seconds > 0
        rows.append((_core.format_size(size_bytes), _time(limit.seconds) or "none", reason(limit) if known else ""))
    return aligned(rows, (2,))


def _nothing_moves(terms: _core.BoundTerms) -> bool:
    known = [level.worst for level in terms.levels if level.worst.group >= 0]
    return bool(known) and all(edge.bytes_out == 0 and edge.bytes_in == 0 for edge in known)


def level_lines(terms: _core.BoundTerms) -> list[str]:
    """A row per level: the slowest edge, all edges together, the latency."""
    rows: list[Sequence[str]] = [
        ("", "slowest", "bytes", "bytes", "", "", "all to-", "", ""),
        ("level", "edge", "out", "in", "capacity", "takes", "gether", "take", "latency"),
    ]
    for level in terms.levels:
        worst = level.worst
        known = worst.group >= 0
        together = level.together_bytes_per_s > 0
        rows.append(
            (
                level.level,
                clipped(worst.name or f"{level.level}{worst.group}", 12) if known else "unknown",
                bytes_text(worst.bytes_out) if known else "",
                bytes_text(worst.bytes_in) if known else "",
                rate_text(worst.capacity_bytes_per_s) if known else "",
                _time(worst.seconds) if known else "",
                bytes_text(int(level.together_bytes)),
                _time(level.together_s) if together else "",
                _time(level.latency_s) + ("" if level.crossed or not level.latency_s else "*"),
            )
        )
    if text_width() < WIDEST:  # no columns without a value, and short heads
        kept = [at for at in range(len(rows[1])) if any(row[at] for row in rows[2:])]
        rows = [[row[at].replace("slowest", "worst") for at in kept] for row in rows]
    lines = aligned(rows, (0, 1))
    if any(level.latency_s and not level.crossed for level in terms.levels):
        lines.append("* no rank needs information from across this level")
    return lines


def edge_lines(edges: Iterable[_core.EdgeTerm], level: str) -> list[str]:
    """A row for each edge of a level."""
    columns: list[Column[_core.EdgeTerm]] = [
        Column(level, "", lambda edge: edge.name or f"{level}{edge.group}", left=True),
        Column("bytes out", "bytes_out", show=bytes_text),
        Column("bytes in", "bytes_in", show=bytes_text),
        Column("capacity", "", lambda edge: edge.capacity_bytes_per_s or None, rate_text, absent="unknown"),
        Column("takes", "", lambda edge: _time(edge.seconds) if edge.capacity_bytes_per_s > 0 else "", absent=""),
    ]
    return Table(columns, list(edges)).lines()


def other_lines(terms: _core.BoundTerms) -> list[str]:
    """The terms of rounds and memory, where they apply."""
    lines = []
    rounds = terms.rounds
    if rounds.spread_s > 0 and rounds.spread_s >= rounds.seconds:
        lines.append(
            f"rounds: {_core.format_duration(rounds.spread_s)} until {rounds.members:,} are informed, "
            "each sending to others one after the other"
        )
    elif rounds.seconds > 0:
        lines.append(
            f"rounds: {rounds.rounds} of {_core.format_duration(rounds.latency_s)} until {rounds.members:,} are "
            f"informed, each sending {rounds.at_once:,} at once: {_core.format_duration(rounds.seconds)}"
        )
    if terms.one_port.seconds > 0:
        lines.append(one_port_line(terms.one_port))
    for term, what in (
        (terms.copy, "copied by a rank from its own block"),
        (terms.reduce, "combined by each rank, where all share the work"),
    ):
        if term.bytes == 0:
            continue
        text = f"{what}: {bytes_text(term.bytes)}"
        if term.bytes_per_s > 0:
            text += f" at {rate_text(term.bytes_per_s)}: {_core.format_duration(term.seconds)}"
        else:
            text += "; the rate of memory is not known"
        lines.append(text)
    return [part for line in lines for part in wrapped(line)]


def one_port_line(term: _core.OnePortTerm) -> str:
    """Return the least time with one message at a time, and its rounds."""
    rounds = f"{term.rounds} round{'s' * (term.rounds != 1)} among {term.members:,}"
    if term.blocks > 1:
        rounds += f", the vector in {term.blocks:,} blocks"
    return f"with one message in and one out at a time: {_core.format_duration(term.seconds)}, {rounds}"


def _time(seconds: float) -> str:
    return _core.format_duration(seconds) if seconds > 0 else ""
