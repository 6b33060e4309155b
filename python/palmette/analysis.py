"""A recording as an object: for notebooks and scripts what `palmette report` and `palmette what-if` print.

    from palmette.analysis import Trace

    trace = Trace("t")                                   # the folder of palmette run --trace t
    for one in trace.findings:
        print(f"{one.share:.0%} of all ranks' time: {one.sentence}")
    trace.what_if(force={"allreduce": "ring"}).gain      # of the run time

Everything is computed when it is first asked for, and once. Times are seconds, sizes bytes; raises RecordError, whose
text says what to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palmette import _core
from palmette.record.causes import Causes, causes_of, replays_of, with_causes
from palmette.record.contexts import Contexts
from palmette.record.findings import Detail, Finding, Findings, findings_of, has_calls
from palmette.record.formats.samples import samples_of
from palmette.record.formats.selection import Selection
from palmette.record.full_links import with_full_link
from palmette.record.late import LateCause, late_to_json
from palmette.record.links import Links
from palmette.record.machine import Seats, seats_of
from palmette.record.page.write import render
from palmette.record.patterns import with_patterns
from palmette.record.reading import RecordError, read_job
from palmette.record.remedies import remedies_of, with_remedies
from palmette.record.sampled import contexts_of
from palmette.record.sent import matrix_of
from palmette.record.side_by_side import side_by_side
from palmette.record.view import PARTS, document, links_of
from palmette.record.viewed import viewed
from palmette.record.what_if import Alternative, Expected, auto_placement, with_changes, with_costs
from palmette.run.choices import KEPT_TOPOLOGY

__all__ = ["Causes", "Contexts", "Detail", "Expected", "Finding", "Findings", "Links", "RecordError", "Trace"]

CALLS = np.dtype(
    [
        ("begin_s", "f8"), ("seconds", "f8"), ("function", "U40"), ("is_request", "?"), ("bytes", "i8"), ("peer", "i4"),
        ("tag", "i8"), ("communicator", "i4"), ("instance", "i8"), ("thread", "i4"), ("served", "?"),
    ]
)  # fmt: skip
"""Columns of `Trace.calls`."""
PATHS = np.dtype(
    [
        ("function", "O"), ("place", "O"), ("ranks", "i4"), ("calls", "i8"), ("bytes", "i8"), ("seconds", "f8"),
        ("longest_s", "f8"), *((name, "f8") for name in PARTS),
    ]
)  # fmt: skip
"""Columns of `Trace.paths`; texts are objects, since places may have any length."""


def _nothing(_: str) -> None:
    pass


class Trace:
    """What `palmette run --trace` or `--profile` recorded.

    `topology`: a topology.json of the run's machine, where the recording has none; `hosts`: where its ranks ran, by
    rank, for recordings that don't know. `detail`: how much is kept to be drawn. `progress` is told in a few words what
    is computed. Of a profile, which has no single calls, there are `paths`, `links`, `page` and `to_json` alone.
    """

    def __init__(
        self, folder: str | Path, *, topology: str | Path | None = None, hosts: Sequence[str] | None = None,
        detail: Detail | None = None, progress: Callable[[str], None] = _nothing,
    ) -> None:  # fmt: skip
        self.job = read_job(Path(folder))
        self.seats: Seats | None
        """Where the ranks ran, and on which network; None: not known."""
        self.seats, self.missing = seats_of(self.job, Path(topology) if topology else None, hosts)
        self._topology = Path(topology) if topology else None
        self._detail = detail or Detail()
        self._progress = progress

    @property
    def has_calls(self) -> bool:
        """Whether calls were recorded one by one: not in a profile."""
        return has_calls(self.job)

    # What was found.

    @cached_property
    def _explained(self) -> tuple[Findings, Causes, Links | None]:
        self._progress(f"looking for what {self.job.size:,} ranks wait for")
        with ThreadPoolExecutor(1) as beside:
            # Both walk through all calls, on a processor each.
            replaying = beside.submit(replays_of, self.job, self.seats) if self.has_calls else None
            found = findings_of(self.job, self.seats, self._detail)
            self._progress("replaying what depends on what")
            replays = replaying.result() if replaying else None
        causes = causes_of(self.job, found, self.seats, replays)
        found.found = with_patterns(with_causes(found, causes), self.job, self.seats, found, causes)
        self._progress("adding up links, calls and the timeline")
        links = links_of(self.job, self.seats, found)
        if not causes.withheld:
            self._progress("trying other algorithms and places in the replay")
            found.found = with_remedies(found.found, self.job, self.seats, found.calls)
            found.found = with_full_link(found, self.job, self.seats, links)
            causes.shorter += remedies_of(found.found)
        return found, causes, links

    @property
    def analysis(self) -> Findings:
        """Findings with efficiencies, waiting time and what is drawn. Cost: O(calls log calls), once."""
        return self._explained[0]

    @property
    def findings(self) -> list[Finding]:
        """What costs most, the costliest first, with causes and what would help."""
        return self.analysis.found

    @property
    def efficiencies(self) -> _core.Efficiencies:
        """POP's: parallel efficiency is load balance times communication efficiency."""
        return self.analysis.efficiencies

    @property
    def causes(self) -> Causes:
        """Root causes and what the network costs; `withheld` says why they aren't told."""
        return self._explained[1]

    @cached_property
    def links(self) -> Links | None:
        """Bytes over each link of the machine, by bins of time; None where the machine isn't known."""
        return self._explained[2] if self.has_calls else links_of(self.job, self.seats, None)

    @property
    def notes(self) -> list[str]:
        """What isn't as it seems, or isn't known."""
        notes = [self.missing] if self.missing else []
        if self.has_calls and self.causes.withheld:
            notes.append(f"root causes and what the network costs aren't told: {self.causes.withheld}")
        if self.has_calls and self.causes.unbounded:
            notes.append(self.causes.unbounded)
        return notes

    # As arrays.

    def calls(self, rank: int) -> NDArray[np.void]:
        """Return the calls of a rank by time, with the columns of CALLS.

        `begin_s` is since the job's first call, by the clock of rank 0's node. `is_request`: the row is a request, from
        its start to its completion. `peer` -1: none, -2: any. `served`: by palmette. Cost: O(calls of the rank).
        """
        process = next((one for one in self.job.processes if one.recorded.rank == rank), None)
        if process is None:
            raise RecordError(f"{self.job.folder}: it has no rank {rank}; it has {self.job.size}, from 0 on")
        begin_ns = self.job.begin_ns
        rows = [
            (
                (one.begin_real_ns + process.clock_at(one.begin_real_ns)[0] - begin_ns) * 1e-9, one.seconds,
                one.function, one.is_request, one.bytes, one.peer, one.tag, one.communicator, one.instance, one.thread,
                one.plan != 0,
            )
            for one in process.calls()
        ]  # fmt: skip
        return np.array(rows, CALLS)

    @cached_property
    def paths(self) -> NDArray[np.void]:
        """Sums by function and place that called it, the costliest first, with the columns of PATHS.

        What isn't known is NaN.
        """
        names, places = self.document["functions"], self.document["places"]
        rows = [
            tuple(
                names[row[name]] if name == "function" else places[row[name]] if name == "place"
                else np.nan if row[name] is None else row[name]
                for name in PATHS.names or ()
            )
            for row in self.document["paths"]
        ]  # fmt: skip
        return np.array(rows, PATHS)

    @cached_property
    def contexts(self) -> Contexts | None:
        """The calling contexts that samples have met, over all ranks; None: `palmette run --sample` took none."""
        if self.has_calls:
            return self.causes.contexts
        try:
            return contexts_of(self.job)
        except _core.Error as error:
            raise RecordError(str(error)) from None

    def threads(self, rank: int) -> dict[int, Contexts]:
        """Return the calling contexts of a rank's threads, outside of MPI, by the system's number of the thread, as far
        as samples are kept one by one. Empty where there are none. Cost: O(samples of the rank).
        """
        taken = samples_of(selection := Selection(self.job, [rank]))
        if taken is None:
            return {}
        by_thread: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for index in selection.chosen:
            for one in taken.of(index):
                by_thread[one.thread_id].append((one.site, one.cpu_ns * 1e-9))
        return {
            thread: taken.contexts.of_samples([rank], np.zeros(len(rows)), *np.array(rows).T)
            for thread, rows in by_thread.items()
        }

    @cached_property
    def matrix(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Messages and bytes, [sender, receiver], of ranks or, where there are more than `detail.rows`, of groups of
        them: the program's own messages and those of collectives that palmette served, in the whole run.
        """
        found = matrix_of(self.job, self._detail.rows)
        return (found.messages, found.bytes) if found else (np.zeros((0, 0)), np.zeros((0, 0)))

    # What it would take otherwise.

    def ideal(self) -> Expected:
        """Replay with communication that takes no time: what computing and dependencies alone take."""
        return with_costs(self.job, self.seats, "ideal")

    def bound(self) -> Expected:
        """Replay with what links and memory need at least."""
        return with_costs(self.job, self.seats, "bound")

    def what_if(
        self,
        *,
        force: Mapping[str, str] | None = None,
        table: str | Path | None = None,
        placed: _core.Job | None = None,
    ) -> Expected:
        """Replay with other algorithms (collective -> specification), another decision table, or ranks `placed`
        elsewhere (see `placement`).
        """
        if self.seats is None:
            raise RecordError(f"{self.job.folder}: the run's machine isn't known; give a topology or hosts")
        read = _core.Table.from_file(str(table)) if table else None
        return with_changes(self.job, self.seats, Alternative(dict(force or {}), read, placed))

    @property
    def machine_file(self) -> Path | None:
        """The topology.json of the run's machine; None: not known."""
        return self._topology or (self.job.folder / KEPT_TOPOLOGY if self.seats and self.seats.is_known else None)

    def placement(self, form: str, topology: str | Path | None = None) -> tuple[_core.Job, list[str]]:
        """Return the ranks placed otherwise, for `what_if`, and notes.

        `form`: block, cyclic, random:SEED, hosts=..., a file, `auto` for the best that `palmette map` finds, or empty:
        where they were. `topology`: of another machine. Raises RecordError, _core.Error or MapError.
        """
        machine_file = Path(topology) if topology else self.machine_file
        if self.seats is None or machine_file is None:
            raise RecordError(f"{self.job.folder}: the run's machine isn't known; give a topology")
        machine = _core.Machine.from_file(str(machine_file))
        was = [self.seats.job.host_of(rank) for rank in range(self.job.size)]
        unknown = next((host for host in was if host not in set(machine.hosts)), None)
        if form == "auto" and unknown is None:
            mapped = auto_placement(self.job, self.seats)
            notes = [f"found by the method {mapped.method} of `palmette map`"] + ([mapped.note] if mapped.note else [])
            return _core.Job.on_hosts(machine, [was[place] for place in mapped.order]), notes
        if form and form != "auto":
            return _core.Job(machine, form, self.job.size), []
        if unknown is None:
            return _core.Job.on_hosts(machine, was), []
        notes = [f"{machine_file} has no host {unknown}: ranks are placed block; see --placement"]
        return _core.Job(machine, "block", self.job.size), notes

    # As documents.

    @cached_property
    def document(self) -> dict[str, Any]:
        """What the page draws; palmette/record/page says its form."""
        found = self.analysis if self.has_calls else None
        causes = self.causes if found else None
        return document(self.job, self.seats, found, self.notes, self.links, causes, self.contexts)

    def page(self, before: Trace | None = None) -> str:
        """Return one HTML file that needs no other. `before`: another run of the program, whose samples stand beside
        this one's.
        """
        found = {**self.document, "viewed": viewed(self.job, self.contexts) if self.contexts else None}
        if before is not None and before.document["sampled"] and found["sampled"]:
            found["sampled"] = side_by_side(before.document["sampled"], found["sampled"])
            found["before"] = {name: before.document[name] for name in ("program", "folder", "ranks", "time_s")}
        return render(found)

    def to_json(self) -> dict[str, Any]:
        """Return what `palmette report --json` prints: the page's document without drawings, findings in full.

        Windows are in seconds since the job's first call, as `palmette convert --from` counts.
        """
        found = self.document
        functions, places = found["functions"], found["places"]

        def named(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
            return [{**row, "function": functions[row["function"]]} for row in rows]

        return {
            **{
                name: found[name]
                for name in ("program", "kind", "ranks", "nodes", "calls", "time_s", "began", "efficiencies", "split")
            },
            "waiting_s": self.analysis.waiting_s if self.has_calls else None,
            "findings": [self._finding(one) for one in (self.findings if self.has_calls else ())],
            "causes": _causes_to_json(self.causes) if self.has_calls else None,
            "paths": [{**row, "place": places[row["place"]]} for row in named(found["paths"])],
            "by_rank": found["by_rank"], "sampled": found["sampled"], "regions": found["regions"],
            "adapters": found["adapters"], "snapshots": found["snapshots"],
            "links": self._links_to_json(),
            "sizes": named(found["sizes"]),
            "durations": named(found["durations"]),
            "notes": found["notes"],
        }  # fmt: skip

    def _finding(self, one: Finding) -> dict[str, Any]:
        since_s = (self.analysis.view.begin_ns - self.job.begin_ns) * 1e-9
        return {
            "kind": one.kind, "function": one.function, "place": str(one.place), "file": one.place.file or None,
            "line": one.place.line or None, "ranks": list(one.ranks), "seconds": one.seconds, "share": one.share,
            "window_s": [since_s + time_s for time_s in one.window] if one.window else None,
            "sentence": one.sentence, "next": one.next, "gain": one.gain,
            "cause": {
                "rank": one.cause.rank, "function": one.cause.function, "place": str(one.cause.place),
                "in_call": one.cause.in_call,
            } if one.cause else None,
            "late": late_to_json(one.late) if isinstance(one.late, LateCause) else None,
        }  # fmt: skip

    def _links_to_json(self) -> dict[str, Any] | None:
        links = self.links
        if links is None or self.seats is None:
            return None
        return {
            "counted": links.counted,
            "links": [
                {
                    "level": self.seats.levels[link.group.level], "name": link.group.name,
                    "out_bytes": links.sum_of(link.out), "in_bytes": links.sum_of(link.into),
                    "rate_bytes_per_s": link.group.rate or None,
                }
                for link in links.links
            ],
        }  # fmt: skip


def _causes_to_json(causes: Causes) -> dict[str, Any]:
    return {
        "withheld": causes.withheld or None,
        "serialisation": causes.serialisation, "transfer": causes.transfer, "network": causes.network,
        "software": causes.software, "unbounded": causes.unbounded or None,
        "plans": causes.plans, "execution": causes.execution, "others": causes.others,
        "roots": [
            {
                "rank": one.rank, "function": one.function, "place": str(one.place), "in_call": one.in_call,
                "seconds": one.seconds, "direct_s": one.direct_s, "share": one.share, "gain": one.gain,
                "sentence": one.sentence,
            }
            for one in causes.roots
        ],
        "on_critical_path_s": {str(rank): seconds for rank, seconds in sorted(causes.on_path_s.items())},
    }  # fmt: skip
