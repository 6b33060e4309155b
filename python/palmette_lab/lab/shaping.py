"""Traffic shaping of a lab's links by the token bucket filter (tbf): the qdisc at each end of a link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from palmette_lab.lab.network import Edge

QUEUE_BYTES = 8_000_000
"""Queue of a full link before it drops: enough for 16 concurrent senders, as a cluster's fabric drops nothing."""

BURST_S = 100e-6
"""Burst size of the bucket as transfer time at the link rate."""

SMALLEST_BURST_BYTES = 3200
"""Two full frames. Larger frames (GSO) are segmented by tbf and counted with a header per segment."""


def burst_bytes(line_bits_per_s: float) -> int:
    """Return the size of the bucket for a link."""
    return max(SMALLEST_BURST_BYTES, int(line_bits_per_s / 8 * BURST_S))


def qdisc_line(interface: str, line_bits_per_s: float) -> str:
    """Return the `tc` batch line that limits the egress rate of `interface`."""
    return (
        f"qdisc replace dev {interface} root tbf rate {round(line_bits_per_s)}bit"
        f" burst {burst_bytes(line_bits_per_s)} limit {QUEUE_BYTES}"
    )


def shaping_lines(edges: Iterable[Edge], rates: Mapping[str, float | None]) -> dict[str | None, list[str]]:
    """Return the `tc` batch lines by host (None: the keeper's namespace) that set the rate of every link.

    `rates` are bits per second by child group; a missing group, or None, removes the limit.
    """
    lines: dict[str | None, list[str]] = {}
    for edge in edges:
        rate = rates.get(edge.child)
        for port in (edge.lower, edge.upper):
            # There is always a qdisc to delete after this: deleting none would be an error.
            lines.setdefault(port.host, []).append(
                qdisc_line(port.interface, rate)
                if rate
                else f"qdisc replace dev {port.interface} root pfifo limit 100000"
            )
    return lines
