"""Bytes on each link of the machine: messages, plans of served collectives, and the least that others need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palmette import _core
from palmette.record.functions import operation
from palmette.record.machine import Group, Limits, Seats
from palmette.record.reading import Job
from palmette.record.sent import EXCHANGES, Pairs, own_blocks, own_messages, served_messages

NO_PAIRS = Pairs(*(np.empty(0, kind) for kind in (np.int64, np.int64, np.float64, np.float64)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Link:
    """The link from a group to its parent. Bytes of payload; `out` leaves the group."""

    group: Group
    out: NDArray[np.float64]
    """Bytes that leave the group by bin of time; one bin for a profile."""
    into: NDArray[np.float64]

    def carried(self, span_s: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what it carries out of and into the group by bin: what doesn't fit into one goes on in the next ones.

        The last bin has what fits into it, so that a sum may be less than was sent. As sent where the rate isn't known.
        """
        room = self.group.rate * span_s / len(self.out)
        return (carried(self.out, room), carried(self.into, room)) if room > 0 else (self.out, self.into)


def carried(loaded: NDArray[np.float64], room: float) -> NDArray[np.float64]:
    """Return by bin what a link carries of what is sent, as a queue of so many bytes a bin does."""
    found = np.empty(len(loaded))
    waiting = 0.0
    for index, added in enumerate(loaded):
        waiting += float(added)
        found[index] = min(waiting, room)
        waiting -= found[index]
    return found


@dataclass(frozen=True)
class Links:
    """Loads of all links of the network."""

    links: list[Link]
    bins: int
    span_s: float
    at_least: float
    """Share of all bytes that are lower bounds: collectives that the MPI itself did."""
    uncounted: int
    """Collectives whose bytes can't be told from one rank's call."""
    of_profile: bool = False
    """Whether the loads are of a profile, which has no collectives of the MPI's own."""
    has_blocks: bool = False
    """Whether blocks of neighbour collectives and all-to-alls with counts are in it: sums, spread over their calls."""

    @property
    def counted(self) -> str:
        """What the bytes are, in a sentence."""
        sent = "messages and blocks that the program sent," if self.has_blocks else "messages that the program sent"
        text = f"Payload of {sent} and of collectives that palmette served"
        if self.of_profile:
            return f"{text}; of a profile, collectives of the MPI itself aren't counted."
        if self.at_least > 0:
            text += f"; for collectives of the MPI itself the least that must cross a link ({self.at_least:.0%} of all)"
        if self.uncounted:
            text += f"; {self.uncounted:,} irregular collectives of the MPI itself aren't counted"
        return text + "."

    def sum_of(self, bytes_of: NDArray[np.float64]) -> float | None:
        """Return the bytes that crossed a link one way; None where none are known, and some may have."""
        whole = float(bytes_of.sum())
        return None if whole == 0 and (self.uncounted or self.of_profile) else whole


def of_trace(view: _core.TraceView, seats: Seats, job: Job | None = None) -> Links:
    """Return the loads of a trace that was viewed with the seats' groups; of `job`, blocks whose counts say to whom
    they go count, too. Cost: O(links bins + kinds of calls + pairs).
    """
    groups = seats.groups
    out, into = (
        np.frombuffer(raw, np.float64).reshape(len(groups), -1).copy() for raw in (view.link_out, view.link_in)
    )
    exact = float(out.sum() + into.sum())
    limits = Limits(seats)
    uncounted = 0
    near = own_blocks(job, exchanges=False) if job else NO_PAIRS
    far = own_blocks(job, neighbours=False) if job else NO_PAIRS
    of_exchanges = np.zeros(out.shape[1])
    for one in view.unserved:
        counts = np.asarray(one.by_time, np.float64)
        # Blocks all alike among all ranks aren't counted by pairs.
        name = operation(one.function)
        if len(far.bytes) and name in EXCHANGES and (name != "alltoall" or len(one.ranks) < seats.job.size):
            of_exchanges += counts
            continue
        if not one.ranks or limits.collective(one.function, one.ranks, one.bytes) is None:
            uncounted += int(counts.sum())
            continue
        for group, bytes_out, bytes_in in limits.crossing(one.function, one.ranks, one.root, one.bytes):
            out[group] += bytes_out * counts
            into[group] += bytes_in * counts
    bounded = float(out.sum() + into.sum()) - exact
    _add(near, np.ones(out.shape[1]), seats, out, into)
    _add(far, of_exchanges if of_exchanges.any() else np.ones(out.shape[1]), seats, out, into)
    whole = float(out.sum() + into.sum())
    span_s = max(0.0, (view.end_ns - view.begin_ns) * 1e-9)
    links = [Link(group, out[index], into[index]) for index, group in enumerate(groups)]
    has_blocks = bool(len(near.bytes) or len(far.bytes))
    return Links(
        links, out.shape[1], span_s, bounded / whole if whole > 0 else 0.0, uncounted, has_blocks=has_blocks
    )  # fmt: skip


def _add(
    pairs: Pairs, by_time: NDArray[np.float64], seats: Seats, out: NDArray[np.float64], into: NDArray[np.float64]
) -> None:
    """Add what pairs of ranks send to the links' loads by bin, as much of it in each as `by_time` says."""
    if not len(pairs.bytes):
        return
    share = by_time / by_time.sum()
    first = np.cumsum([0, *(level.count for level in seats.job.levels)])
    for depth in range(seats.network_levels):
        group_of = np.array(seats.groups_of_ranks[depth])
        senders, receivers = group_of[pairs.source], group_of[pairs.target]
        crosses = senders != receivers
        count = seats.job.levels[depth].count
        for loads, ends in ((out, senders), (into, receivers)):
            sums = np.bincount(ends[crosses], pairs.bytes[crosses], count)
            loads[first[depth] : first[depth] + count] += np.outer(sums, share)


def busiest_s(files: Sequence[_core.TraceFile], seats: Seats | None) -> float:
    """Return what the fullest link needs for the program's own messages: the job can't be shorter; 0: not known.

    How collectives use links is their algorithms' affair: none of theirs counts. Cost: O(calls).
    """
    sent = _core.sent_messages(files) if seats and seats.has_rates else []
    if seats is None or not sent:
        return 0.0
    source, target, _, whole = (np.array(column, np.float64) for column in zip(*sent, strict=True))
    longest = 0.0
    for level, groups in zip(seats.job.levels[: seats.network_levels], seats.groups_of_ranks, strict=False):
        group = np.array(groups)
        out, into = group[source.astype(int)], group[target.astype(int)]
        rates = np.array(level.up_bytes_per_s)
        for ends in (out[out != into], into[out != into]):
            bytes_of = np.bincount(ends, whole[out != into], level.count)
            times = np.divide(bytes_of, rates, out=np.zeros(level.count), where=rates > 0)
            longest = max(longest, float(times.max(initial=0.0)))
    return longest


def of_profile(job: Job, seats: Seats) -> Links | None:
    """Return the links' loads of a profile, without the MPI's own collectives; None where nothing else was sent.

    Cost: O(levels (pairs + what plans send)).
    """
    groups = seats.groups
    out, into = np.zeros((len(groups), 1)), np.zeros((len(groups), 1))
    blocks = own_blocks(job)
    sent = (own_messages(job), blocks, served_messages(job))
    if not any(pairs.messages.any() for pairs in sent):
        return None
    for pairs in sent:
        _add(pairs, np.ones(1), seats, out, into)
    links = [Link(group, out[index], into[index]) for index, group in enumerate(groups)]
    return Links(links, 1, 0.0, 0.0, 0, of_profile=True, has_blocks=bool(len(blocks.bytes)))


def to_json(links: Links, levels: list[str], pack: Any) -> dict[str, Any]:
    """Return the links as a document; `pack(values, kind)` packs a column. Over time it has what a link carries."""
    return {
        "levels": levels, "bins": links.bins, "span_s": links.span_s, "counted": links.counted,
        "nodes": [_node(links, link, pack) for link in links.links],
    }  # fmt: skip


def _node(links: Links, link: Link, pack: Any) -> dict[str, Any]:
    over_time = links.bins > 1
    up, down = link.carried(links.span_s)
    return {
        "name": link.group.name, "level": link.group.level, "parent": link.group.parent,
        "up_bytes": links.sum_of(link.out), "down_bytes": links.sum_of(link.into),
        "rate_Bps": link.group.rate or None,
        "up": pack(up, "f4") if over_time and up.any() else None,
        "down": pack(down, "f4") if over_time and down.any() else None,
    }  # fmt: skip
