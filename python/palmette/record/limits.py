"""What a recording couldn't hold, in sentences: told on every page with a figure that it touches."""

from __future__ import annotations

from collections.abc import Iterable

from palmette import _core


def limits_of(processes: Iterable[_core.RecordedProcess], *, sums: bool, communicators: bool) -> list[str]:
    """Return what is missing from processes' calls. `sums`, `communicators`: what is shown. Cost: O(processes)."""
    found = list(processes)
    counts = {
        "{:,} calls from more places than a recording can hold: shown as unknown": [one.unpathed for one in found],
        "{:,} calls of more threads at a time than a recording can hold: not among these": [
            one.threadless for one in found
        ],
        "{:,} requests more than a recording can follow at a time: when they end isn't known, nor what they receive": [
            one.unfollowed for one in found
        ],
    }
    if sums:
        text = "{:,} calls of more kinds than a recording can hold: shown as from unknown places"
        counts[text] = [one.unaggregated for one in found]
    if communicators:
        text = "{:,} communicators more than a recording can tell apart: their calls are shown as of none"
        counts[text] = [one.unnumbered for one in found]
        text = "{:,} communicators in the places of freed ones, whose calls are shown as of none"
        counts[text] = [one.reused for one in found]
    if sums and communicators:
        text = "{:,} calls of more kinds than a recording can hold: sums don't tell their communicators"
        counts[text] = [one.merged for one in found]
    return [text.format(sum(numbers)) for text, numbers in counts.items() if any(numbers)]
