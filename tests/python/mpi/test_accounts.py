"""Bytes, messages and communicators of a recording: those that the program counts itself, and the same in every output.

The program is tests/mpi/accounts.cpp. Outputs are compared figure by figure: what a row adds up to must be what the
calls add up to, whoever has summed them.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palmette.record.columns import unpacked
from palmette.record.findings import Detail, findings_of
from palmette.record.functions import ENDS
from palmette.record.reading import Job, read_job
from palmette.record.view import document

from .conftest import Mpi
from .test_convert import Archive
from .test_matrix import rows as matrix_rows

pytestmark = pytest.mark.mpi

RANKS = 4
Figures = dict[tuple[int, str], tuple[int, int]]
"""(rank, function) -> calls, bytes."""
UNSTEADY_FUNCTIONS = ("MPI_Improbe", "MPI_Wait")
"""Called until a message is there, and for what a failing Waitall has left."""
NEIGHBOURS = "eighbor"


def figures(rows: Iterable[tuple[int, str, int, int]]) -> Figures:
    """Add up (rank, function, calls, bytes)."""
    found: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for rank, function, calls, size in rows:
        found[rank, function][0] += calls
        found[rank, function][1] += size
    return {key: (calls, size) for key, (calls, size) in found.items()}


def over_ranks(found: Figures) -> dict[str, tuple[int, int]]:
    """Add up over ranks, without the start and the end of the job."""
    sums = figures((0, function, *both) for (_, function), both in found.items() if function not in ENDS)
    return {function: both for (_, function), both in sums.items()}


def of_calls(job: Job, requests: bool) -> Figures:
    return figures(
        (process.recorded.rank, call.function, 1, call.bytes)
        for process in job.processes for call in process.calls() if call.is_request == requests
    )  # fmt: skip


def of_sums(job: Job, requests: bool) -> Figures:
    return figures(
        (process.recorded.rank, row.function, row.calls, row.bytes)
        for process in job.processes for row in process.recorded.aggregates if row.is_request == requests
    )  # fmt: skip


def steady(found: Figures) -> Figures:
    return {key: value for key, value in found.items() if key[1] not in UNSTEADY_FUNCTIONS}


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


class AccountRecording:
    """A trace and a profile of the program, and what it says itself."""

    def __init__(self, mpi: Mpi) -> None:
        self.trace, self.profile = (mpi.directory / name for name in ("trace", "profile"))
        ran = mpi.run(RANKS, "accounts", settings={"PALMETTE_TRACE": str(self.trace)})
        assert ran.status == 0, ran.text
        self.expected: Figures = {}
        self.received: Counter[tuple[int, int, int]] = Counter()
        """(from, to, bytes)."""
        for line in ran.out.splitlines():
            match line.split():
                case ["expected", rank, function, calls, size]:
                    self.expected[int(rank), function] = int(calls), int(size)
                case ["received", to, source, size, messages]:
                    self.received[int(source), int(to), int(size)] += int(messages)
        assert len({rank for rank, _ in self.expected}) == RANKS, ran.text
        ran = mpi.run(RANKS, "accounts", settings={"PALMETTE_PROFILE": str(self.profile)})
        assert ran.status == 0, ran.text


def check_the_program(recorded: AccountRecording) -> None:
    job = read_job(recorded.trace)
    found = of_sums(job, False) | {(rank, f"{name}/request"): both for (rank, name), both in of_sums(job, True).items()}
    assert {key: found.get(key) for key in recorded.expected} == recorded.expected
    # What isn't listed moves nothing.
    assert {key: both for key, both in found.items() if key not in recorded.expected and both[1]} == {}
    for process in job.processes:
        assert not process.recorded.outstanding
        assert process.recorded.unfollowed == 0


def check_sums(recorded: AccountRecording, palmette: Callable[..., Any]) -> None:
    """All calls are in the sums, and both are what `top` and `report` show."""
    job, profile = read_job(recorded.trace), read_job(recorded.profile)
    calls = of_calls(job, False)
    assert of_sums(job, False) == calls
    assert of_sums(job, True) == of_calls(job, True)
    assert steady(of_sums(profile, False)) == steady(calls)
    assert of_sums(profile, True) == of_calls(job, True)
    for folder in (recorded.trace, recorded.profile):
        sums = over_ranks(of_sums(read_job(folder), False))
        in_mpi_s = sum(
            row.seconds for one in read_job(folder).processes for row in one.recorded.aggregates if not row.is_request
        )
        top = json.loads(palmette("top", folder, "--calls", "--json").out)
        rows = [(0, row["function"], row["calls"], row["bytes"]) for row in top["rows"]]
        assert over_ranks(figures(rows)) == sums
        assert top["in_mpi_s"] == pytest.approx(in_mpi_s) == pytest.approx(sum(row["seconds"] for row in top["rows"]))
        report = json.loads(palmette("report", folder, "--json").out)
        rows = [(0, row["function"], row["calls"], row["bytes"]) for row in report["paths"]]
        assert over_ranks(figures(rows)) == sums
        table = read_csv(palmette("report", folder, "--csv").out)
        rows = [(0, row["function"], int(row["calls"]), int(row["bytes"])) for row in table]
        assert over_ranks(figures(rows)) == sums
        seconds = sum(row["seconds"] for row in top["rows"] if row["function"] not in ENDS)
        for shown in (report["paths"], table):
            assert sum(float(row["seconds"]) for row in shown) == pytest.approx(seconds, rel=1e-4, abs=1e-6)


def check_converted(recorded: AccountRecording, palmette: Callable[..., Any], folder: Path) -> None:
    """Calls, bytes and messages of csv, SQLite and OTF2."""
    job = read_job(recorded.trace)
    for name, output in (("csv", "t.csv"), ("sqlite", "t.db"), ("otf2", "t")):
        assert palmette("convert", recorded.trace, "--to", name, "-o", folder / output).status == 0
    assert palmette("convert", recorded.profile, "--to", "csv", "-o", folder / "p.csv").status == 0
    table = read_csv((folder / "t.csv").read_text(encoding="utf-8"))
    sums = read_csv((folder / "p.csv").read_text(encoding="utf-8"))
    for requests in (False, True):
        calls = of_calls(job, requests)
        mine = [row for row in table if int(row["is_request"]) == requests]
        assert figures((int(row["rank"]), row["function"], 1, int(row["bytes"])) for row in mine) == calls
        rows = [
            (int(r["rank"]), r["function"], int(r["calls"]), int(r["bytes"]))
            for r in sums
            if int(r["is_request"]) == requests
        ]
        assert steady(figures(rows)) == steady(calls)
        with closing(sqlite3.connect(folder / "t.db")) as database:
            for query in (
                "SELECT rank, f.name, count(*), sum(bytes) FROM calls c JOIN processes p ON p.id = process "
                "JOIN functions f ON f.id = function WHERE is_request = ? GROUP BY 1, 2",
                "SELECT rank, f.name, sum(calls), sum(bytes) FROM sums JOIN processes p ON p.id = process "
                "JOIN functions f ON f.id = function WHERE is_request = ? GROUP BY 1, 2",
            ):
                assert figures(database.execute(query, (int(requests),)).fetchall()) == calls
    archive = Archive(folder / "t")
    assert archive.calls == {key: calls for key, (calls, _) in of_calls(job, False).items()}
    messages = messages_of(folder / "t.db")
    assert messages == recorded.received
    for found in (archive.sent, archive.received):
        sizes: Counter[tuple[int, int, int]] = Counter()
        for ((source, target, _), size), number in found.items():
            sizes[source, target, size] += number
        assert sizes == messages


def messages_of(database: Path) -> Counter[tuple[int, int, int]]:
    with closing(sqlite3.connect(database)) as opened:
        rows = opened.execute(
            "SELECT ps.rank, pr.rank, m.bytes, count(*), sum(m.bytes <= r.bytes OR r.bytes < 41) FROM messages m "
            "JOIN calls s ON s.id = send JOIN processes ps ON ps.id = s.process "
            "JOIN calls r ON r.id = receive JOIN processes pr ON pr.id = r.process GROUP BY 1, 2, 3"
        ).fetchall()
    # Each goes where it fits; two don't fit anywhere.
    assert all(number == fitting for *_, number, fitting in rows)
    return Counter({(source, target, size): number for source, target, size, number, _ in rows})


def check_the_page(recorded: AccountRecording) -> None:
    """Matrix and messages of the page are those of the calls."""
    job = read_job(recorded.trace)
    findings = findings_of(job, None, Detail())
    waits = findings.view.waits
    assert waits.unmatched_messages == waits.clock_violations == 0
    page = document(job, None, findings)
    drawn = page["timeline"]["messages"]
    found: Counter[tuple[int, int]] = Counter()
    for source, target in zip(unpacked(drawn["from"], "u2"), unpacked(drawn["to"], "u2"), strict=True):
        found[int(source), int(target)] += 1
    expected: Counter[tuple[int, int]] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    for (source, target, size), number in recorded.received.items():
        expected[source, target] += number
        sizes[source, target] += number * size
    assert found == expected
    # Blocks of collectives whose counts say to whom; test_oracle.py compares them with what programs say of each peer.
    for process in job.processes:
        for peer in process.recorded.peers:
            pair = process.recorded.rank, peer.rank
            if peer.rank >= 0 and peer.rank != process.recorded.rank:
                expected[pair] += peer.neighbour_blocks + peer.exchange_blocks
                sizes[pair] += peer.neighbour_bytes + peer.exchange_bytes
    expected, sizes = +expected, +sizes
    matrix = {name: unpacked(page["matrix"][name], "f4").reshape(RANKS, RANKS) for name in ("bytes", "messages")}
    assert {
        key: int(matrix["messages"][key]) for key in np.ndindex(RANKS, RANKS) if matrix["messages"][key]
    } == expected
    assert {key: int(matrix["bytes"][key]) for key in np.ndindex(RANKS, RANKS) if matrix["bytes"][key]} == sizes
    of_profile = document(read_job(recorded.profile), None, None)["matrix"]
    assert {name: unpacked(of_profile[name], "f4").tolist() for name in matrix} == {
        name: values.ravel().tolist() for name, values in matrix.items()
    }


def check_the_matrix(recorded: AccountRecording) -> None:
    """What each rank sent to all is what its calls, and its requests that were started, sent."""
    job = read_job(recorded.trace)
    calls, requests = of_calls(job, False), of_calls(job, True)
    sends = ("MPI_Send", "MPI_Bsend", "MPI_Isend", "MPI_Issend", "MPI_Sendrecv")
    found = matrix_rows(recorded.trace, "sent")
    assert matrix_rows(recorded.profile, "sent") == found
    for rank in range(RANKS):
        bytes_of = sum(
            size for (one, name), (_, size) in calls.items() if one == rank and (name in sends or NEIGHBOURS in name)
        ) + sum(
            size for (one, name), (_, size) in requests.items()
            if one == rank and name.endswith("_init") and ("end_init" in name or NEIGHBOURS in name)
        )  # fmt: skip
        assert sum(size for (source, _), (size, _) in found.items() if source == rank) == bytes_of


def test_each_figure_is_the_programs_and_the_same_everywhere(
    mpi: Mpi, palmette: Callable[..., Any], tmp_path: Path
) -> None:
    recorded = AccountRecording(mpi)
    check_the_program(recorded)
    check_sums(recorded, palmette)
    check_converted(recorded, palmette, tmp_path)
    check_the_page(recorded)
    check_the_matrix(recorded)
