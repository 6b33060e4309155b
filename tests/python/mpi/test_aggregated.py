"""MPI_Allreduce through aggregation daemons: right, with the same bits, and at an end whatever happens to them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from palmette.aggregator import token
from palmette_lab.lab import LabError
from palmette_lab.lab.helpers import helper

from .aggregation import ALL_KINDS, CREATE, HELLO, TYPE_AT, VERSION_AT, Daemon, Proxy, running, topology
from .conftest import SOAK, Mpi, ProgramResult, forced

pytestmark = pytest.mark.mpi
RANKS = 8
BLOCKS = {"PALMETTE_FAKE_HOSTS": ",".join(str(rank // 2) for rank in range(RANKS))}
FORCED = forced(allreduce="in_network")
KEEPS = forced(allreduce="in_network:keep=yes")
"""Short vectors without an agreement, which nothing chooses by itself."""
OPERATION = 2 * RANKS
"""Frames with data or results of a short operation: each rank sends a part, and receives it."""
WITH_SETUP = 3 * RANKS + OPERATION
SHORT = 200
"""Elements of a vector that isn't cut: one rank of each host has the exchange, and keeps its result."""
MEMBERS = RANKS // 2
SHORT_OPERATION = 2 * MEMBERS
SHORT_WITH_SETUP = 3 * MEMBERS + SHORT_OPERATION
EXPIRY_S = 1 << 40
HUNG_S = 60.0
"""Time limit of a fault that takes 6 to 7 s to be overcome on a quiet machine."""

MpiByName = Callable[[str], Mpi]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for sockets."""
    try:
        helper("palmette-aggregator")
    except LabError as error:
        pytest.skip(str(error))
    made = Path(tempfile.mkdtemp(prefix="pa"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    """A daemon without limits that matter."""
    with running(Daemon(folder)) as started:
        yield started


def settings(
    folder: Path, address: str, key: Path, groups: int = 256, form: str = "aggregator@1GB/s:4node@1GB/s:2core"
) -> dict[str, str]:
    """Return the settings of ranks, two on each of four hosts, with a token for so many groups made with `key`."""
    made = folder / "me.token"
    made.unlink(missing_ok=True)
    token.write_secret(made, token.make_token(token.read_key(key), 0, EXPIRY_S, groups))
    where = topology(folder / "topology.json", address, form)
    return {"PALMETTE_TOPOLOGY": str(where), "PALMETTE_AGGREGATOR_TOKEN": str(made), **BLOCKS}


def by_hosts(ran: ProgramResult) -> dict[str, int]:
    """Return why aggregators didn't serve calls -> how many."""
    assert ran.report is not None, ran.text
    calls: dict[str, int] = {}
    for row in ran.report["instead_of_aggregators"]:
        reason = row["why"].partition(":")[0]
        calls[reason] = calls.get(reason, 0) + row["calls"]
    return calls


def details(ran: ProgramResult) -> str:
    """Return why calls were left to the MPI."""
    assert ran.report is not None, ran.text
    return "\n".join(row.get("detail", row["reason"]) for row in ran.report["fallbacks"])


def assert_idle(daemon: Daemon) -> None:
    """Fail unless the daemon holds nothing any more."""
    told = daemon.idle()
    assert (told["open_connections"], told["groups"]) == (0, [])
    assert told["in_use"] == {"groups": 0, "slots": 0, "bytes": 0}


def test_sums_are_right_and_always_the_same(mpi: Mpi, daemon: Daemon, folder: Path) -> None:
    ran = mpi.run(
        RANKS, "aggregated", "--generations", 3, "--calls", 6, "--count", 5000,
        settings=settings(folder, daemon.address, daemon.key) | FORCED,
    )  # fmt: skip
    ran.assert_right()
    assert ran.served()["allreduce"] == {"in_network": 18}
    assert by_hosts(ran) == {}
    assert daemon.idle()["counters"]["groups"] == 6
    assert_idle(daemon)


def test_short_sums_are_right_and_always_the_same(mpi: Mpi, daemon: Daemon, folder: Path) -> None:
    ran = mpi.run(
        RANKS, "aggregated", "--generations", 3, "--calls", 6, "--count", SHORT,
        settings=settings(folder, daemon.address, daemon.key) | KEEPS,
    )  # fmt: skip
    ran.assert_right()
    assert ran.served()["allreduce"] == {"in_network:keep=yes": 18}
    assert by_hosts(ran) == {}
    assert daemon.idle()["counters"]["groups"] == 3
    assert_idle(daemon)


def test_without_a_token_a_forced_plan_is_left_to_the_mpi_with_its_reason(mpi: Mpi, folder: Path) -> None:
    where = topology(folder / "topology.json", "127.0.0.1:1")
    ran = mpi.run(RANKS, "aggregated", settings={"PALMETTE_TOPOLOGY": str(where), **BLOCKS, **FORCED})
    ran.assert_right()
    assert "allreduce" not in ran.served()
    assert details(ran) == "no aggregator serves the job"


def test_reproducible_results_keep_away(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    chosen = settings(folder, daemon.address, daemon.key) | FORCED | {"PALMETTE_REPRODUCIBLE": "1"}
    ran = mpi_called("mpich").run(RANKS, "aggregated", settings=chosen)
    ran.assert_right()
    assert details(ran) == "no aggregator serves the job"
    assert daemon.told()["counters"]["connections"] == 0


def test_nonblocking_calls_are_left_to_others(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    chosen = settings(folder, daemon.address, daemon.key) | FORCED
    ran = mpi_called("mpich").run(RANKS, "aggregated", "--nonblocking", 1, settings=chosen)
    ran.assert_right()
    assert details(ran) == "aggregators serve blocking calls of predefined operations"
    assert daemon.told()["counters"]["connections"] == 0


@pytest.mark.parametrize("count", [8192, 65536])
def test_with_four_groups_long_vectors_go_through_them_unforced(
    mpi_called: MpiByName, daemon: Daemon, folder: Path, count: int
) -> None:
    form = "aggregator@10GB/s:4node@1GB/s~2us:2core"
    ran = mpi_called("mpich").run(
        RANKS, "aggregated", "--count", count, settings=settings(folder, daemon.address, daemon.key, form=form)
    )
    ran.assert_right()
    assert ran.report is not None
    rows = [row for row in ran.report["calls"] if row["function"] == "allreduce"]
    assert [(row["algorithm"], row["calls"]) for row in rows] == [("in_network", 3)]
    assert rows[0]["reason"].startswith("aggregators: at least")
    assert by_hosts(ran) == {}


def test_with_two_groups_they_are_never_chosen(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    chosen = settings(folder, daemon.address, daemon.key, form="aggregator@10GB/s:2node@1GB/s:4core")
    chosen["PALMETTE_FAKE_HOSTS"] = "0,0,0,0,1,1,1,1"
    ran = mpi_called("mpich").run(RANKS, "aggregated", "--count", 65536, settings=chosen)
    ran.assert_right()
    assert "in_network" not in ran.served()["allreduce"]
    assert daemon.told()["counters"]["connections"] == 0


def test_two_jobs_share_a_daemon(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    chosen = settings(folder, daemon.address, daemon.key) | FORCED

    def job(seed: int) -> ProgramResult:
        one = replace(mpi_called("mpich"), directory=folder / str(seed), counter=[0])
        one.directory.mkdir()
        return one.run(RANKS, "aggregated", "--generations", 4, "--calls", 6, "--seed", seed, settings=chosen)

    with ThreadPoolExecutor() as pool:
        for ran in pool.map(job, (1, 2)):
            ran.assert_right()
            assert by_hosts(ran) == {}
    assert daemon.idle()["counters"]["groups"] == 16


@pytest.mark.parametrize("fault", ["close", "kill"])
def test_a_daemon_that_dies_at_any_frame(mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str) -> None:
    """Frames of the groups' set-up as well as those of the operation."""
    with Proxy(daemon, fault, kinds=ALL_KINDS) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", "--generations", WITH_SETUP + 2,
            settings=settings(folder, proxy.address, daemon.key) | FORCED,
        )  # fmt: skip
    ran.assert_right()
    assert proxy.frames == [WITH_SETUP, *range(1, WITH_SETUP + 1), WITH_SETUP]
    assert by_hosts(ran) == {"closed": WITH_SETUP}
    assert_idle(daemon)


@pytest.mark.parametrize("ring", [0, 1], ids=["", "ranks wait for each other elsewhere"])
@pytest.mark.parametrize("fault", ["close", "kill"])
def test_a_daemon_that_dies_at_any_frame_of_a_short_sum(
    mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str, ring: int
) -> None:
    """Whoever has the result gives it to those that lack it; where nobody has it hosts combine."""
    with Proxy(daemon, fault, kinds=ALL_KINDS, ranks=MEMBERS) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", "--generations", SHORT_WITH_SETUP + 2, "--count", SHORT, "--ring", ring,
            settings=settings(folder, proxy.address, daemon.key) | KEEPS,
        )  # fmt: skip
    ran.assert_right()
    assert proxy.frames == [SHORT_WITH_SETUP, *range(1, SHORT_WITH_SETUP + 1), SHORT_WITH_SETUP]
    assert by_hosts(ran) == {"closed": SHORT_WITH_SETUP}
    assert ran.report is not None
    given = [row for row in ran.report["instead_of_aggregators"] if "gave it to the others" in row["why"]]
    assert 1 <= sum(row["calls"] for row in given) < MEMBERS
    assert_idle(daemon)


def test_a_later_short_sum_fails(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    """Later sums on the communicator are the hosts', until a second look at the 256th makes new groups."""
    at = range(0, 3 * SHORT_OPERATION, 5)
    with Proxy(daemon, "kill", at, ranks=MEMBERS) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", "--generations", len(at) + 2, "--calls", 3, "--count", SHORT, "--ring", 1,
            settings=settings(folder, proxy.address, daemon.key) | KEEPS,
        )  # fmt: skip
    ran.assert_right()
    calls = by_hosts(ran)
    assert set(calls) == {"closed"}
    assert sum(3 - number // SHORT_OPERATION for number in at) <= sum(calls.values())
    assert_idle(daemon)


@pytest.mark.parametrize("fault", ["corrupt", "truncate", "stall", "stop"])
def test_a_fault_in_a_short_sum(mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str) -> None:
    at = range(SHORT_OPERATION) if fault in {"corrupt", "truncate"} else [3]
    with Proxy(daemon, fault, at, ranks=MEMBERS) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", "--generations", len(at) + 2, "--count", SHORT, "--ring", 1,
            settings=settings(folder, proxy.address, daemon.key) | KEEPS, timeout_s=HUNG_S,
        )  # fmt: skip
    ran.assert_right()
    assert len(at) <= sum(by_hosts(ran).values()) <= 2 * len(at)
    assert_idle(daemon)


@pytest.mark.parametrize(
    ("fault", "reasons"), [("corrupt", {"damaged"}), ("truncate", {"closed", "member_lost"})], ids=lambda value: value
)
def test_a_frame_that_is_damaged_or_cut(
    mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str, reasons: set[str]
) -> None:
    with Proxy(daemon, fault) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", "--generations", OPERATION + 2,
            settings=settings(folder, proxy.address, daemon.key) | FORCED,
        )  # fmt: skip
    ran.assert_right()
    calls = by_hosts(ran)
    assert set(calls) <= reasons
    assert sum(calls.values()) == OPERATION
    assert_idle(daemon)


def test_a_later_operation_or_segment_fails(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    """Two calls of two segments and one of one; those that follow in the communicator go by hosts, too."""
    frames = 5 * OPERATION
    at = range(0, frames, 7)
    with Proxy(daemon, "close", at) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", "--generations", len(at) + 2, "--calls", 3,
            settings=settings(folder, proxy.address, daemon.key) | forced(allreduce="in_network:share=100,segment=2K"),
        )  # fmt: skip
    ran.assert_right()
    assert proxy.frames == [frames, *(number + 1 for number in at), frames]
    assert by_hosts(ran) == {"closed": sum(3 - number // (2 * OPERATION) for number in at)}
    assert_idle(daemon)


@pytest.mark.parametrize(
    ("fault", "at"),
    [
        ("stall", [3]),
        pytest.param("stall", [OPERATION - 1], marks=pytest.mark.long),
        pytest.param("stop", [3], marks=pytest.mark.long),
    ],
)
def test_a_daemon_that_falls_silent(
    mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str, at: list[int]
) -> None:
    with Proxy(daemon, fault, at) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", settings=settings(folder, proxy.address, daemon.key) | FORCED, timeout_s=HUNG_S
        )
    ran.assert_right()
    assert by_hosts(ran) == {"silent": 1}
    assert_idle(daemon)


@pytest.mark.long
@pytest.mark.parametrize("fault", ["corrupt", "truncate", "stall"])
def test_a_fault_while_groups_are_made(mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str) -> None:
    """In greetings, requests to join and answers; ranks wait up to 10 s for one that can't join.

    Each in a job of its own: after a long wait aggregators aren't asked again for a minute.
    """
    for at in (0, 3, 7, 8, 11, 15, 16, 19, 23):
        with Proxy(daemon, fault, [at], kinds=ALL_KINDS) as proxy:
            ran = mpi_called("mpich").run(
                RANKS, "aggregated", "--generations", 2,
                settings=settings(folder, proxy.address, daemon.key) | FORCED, timeout_s=HUNG_S,
            )  # fmt: skip
        ran.assert_right()
        assert sum(by_hosts(ran).values()) == 1
    assert_idle(daemon)


def test_a_token_of_another_site_is_refused(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    other = folder / "other.key"
    token.write_secret(other, token.new_key())
    ran = mpi_called("mpich").run(RANKS, "aggregated", settings=settings(folder, daemon.address, other) | FORCED)
    ran.assert_right()
    assert by_hosts(ran) == {"authentication": 3}
    assert daemon.idle()["counters"]["refused"]["authentication"] > 0


@pytest.mark.parametrize("of", [HELLO, CREATE], ids=["daemon", "ranks"])
def test_another_version_of_the_protocol_is_refused(
    mpi_called: MpiByName, daemon: Daemon, folder: Path, of: int
) -> None:
    def change(frame: bytearray, _to_daemon: bool) -> None:
        if frame[TYPE_AT] == of:
            frame[VERSION_AT] += 1

    with Proxy(daemon, change=change) as proxy:
        chosen = settings(folder, proxy.address, daemon.key) | FORCED
        ran = mpi_called("mpich").run(RANKS, "aggregated", settings=chosen)
    ran.assert_right()
    assert by_hosts(ran) == {"version": 3}


@pytest.mark.parametrize(
    ("groups", "limits", "reason"),
    [(1, {}, "quota"), (256, {"groups_per_tree": 1}, "no_resource"), (256, {"slots_total": 8}, "no_resource")],
)
def test_what_is_beyond_a_limit_is_served_by_hosts(
    mpi_called: MpiByName, folder: Path, groups: int, limits: dict[str, int], reason: str
) -> None:
    """A communicator has two groups, one for each rank of a host."""
    with running(Daemon(folder, limits)) as daemon:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", settings=settings(folder, daemon.address, daemon.key, groups) | FORCED
        )
        ran.assert_right()
        assert by_hosts(ran) == {reason: 3}
        assert_idle(daemon)


@pytest.mark.parametrize("first", [RANKS - 2, RANKS - 1], ids=["host", "rank"])
def test_counts_that_differ_are_an_error_and_no_hang(
    mpi_called: MpiByName, daemon: Daemon, folder: Path, first: int
) -> None:
    """The repetition by hosts, or the exchange on the host, meets a message of another length, and the MPI aborts."""
    chosen = settings(folder, daemon.address, daemon.key) | forced(allreduce="in_network:share=100")
    ran = mpi_called("mpich").run(RANKS, "aggregated", "--longer-from", first, settings=chosen)
    assert ran.status != 0
    if first == RANKS - 2:
        assert daemon.idle()["counters"]["ended"]["mismatch"] == 1
    assert_idle(daemon)


def test_random_operations(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    """The daemon has room for the groups of some communicators only."""
    chosen = settings(folder, daemon.address, daemon.key, groups=6) | FORCED
    ran = mpi_called("mpich").run(RANKS, "aggregated", "--random", 200 * SOAK, settings=chosen)
    ran.assert_right()
    assert ran.served()["allreduce"]["in_network"] > 50
    assert 0 < by_hosts(ran)["quota"] < ran.served()["allreduce"]["in_network"]
    assert_idle(daemon)


@pytest.mark.long
def test_ten_thousand_random_operations_leave_nothing_behind(
    mpi_called: MpiByName, daemon: Daemon, folder: Path
) -> None:
    """The program itself compares how many files its ranks have open."""
    files = daemon.files()
    chosen = settings(folder, daemon.address, daemon.key) | FORCED
    ran = mpi_called("mpich").run(RANKS, "aggregated", "--random", 10000, settings=chosen, timeout_s=1200)
    ran.assert_right()
    assert by_hosts(ran) == {}
    assert_idle(daemon)
    assert daemon.files() == files
