"""What would help where calls take long: the algorithm that the model ranks first, and what a replay gives for it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from palmette import _core
from palmette.record.causes import LEAST_SHARE, MOST_CALLS
from palmette.record.findings import Finding, mean_bytes
from palmette.record.machine import Limits, Seats, plain_collective
from palmette.record.reading import Job, RecordError
from palmette.record.what_if import Alternative, with_changes


def with_remedies(findings: Sequence[Finding], job: Job, seats: Seats | None, calls: int) -> list[Finding]:
    """Return findings whose long calls tell which algorithm is expected to make the run shorter, and by how much.

    Only where the links are known, of up to MOST_CALLS. Cost: replays for each long call.
    """
    if seats is None or not seats.has_rates or job.size < 2 or calls > MOST_CALLS:
        return list(findings)
    return [_with_remedy(one, job, seats) if one.kind == "long_call" else one for one in findings]


def remedies_of(findings: Sequence[Finding]) -> list[tuple[str, float]]:
    """Return what would make the run shorter, with the command that tells more, and by which share."""
    what = {"long_call": "another algorithm", "full_link": "another order of the ranks"}
    return [
        (f"{what[one.kind]}: `{one.next}`", one.gain) for one in findings if one.kind in what and one.gain is not None
    ]


def _with_remedy(finding: Finding, job: Job, seats: Seats) -> Finding:
    name = plain_collective(finding.function)
    what = Limits(seats).collective(finding.function, range(job.size), mean_bytes(job, finding.function))
    if not name or what is None:
        return finding
    collective, block = what
    try:
        best = _core.rank_by_model(seats.job, collective, 0, block)[0][0]
        gain = with_changes(job, seats, Alternative({name: best}), (1.0,)).gain
    except (_core.Error, RecordError, IndexError):
        return finding
    if gain < LEAST_SHARE:
        return finding
    return replace(
        finding, sentence=f"{finding.sentence}; by {best} the run is expected to take {gain:.0%} less", gain=gain,
        next=f"palmette what-if {shlex.quote(str(job.folder))} --force {name}={best}",
    )  # fmt: skip
