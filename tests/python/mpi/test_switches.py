"""MPI_Allreduce through libsharp_coll, in whose place its software twin stands: whatever fails, the bytes are right."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from palmette import _core
from palmette.aggregator import token
from palmette_lab.lab import LabError
from palmette_lab.lab.helpers import helper

from .aggregation import CREATE, HELLO, READY, TYPE_AT, VERSION_AT, Daemon, Proxy, running
from .conftest import BUILD, PRELOADS, SOAK, Mpi, ProgramResult, forced
from .test_aggregated import BLOCKS, EXPIRY_S, FORCED, HUNG_S, RANKS, assert_idle, by_hosts, details

pytestmark = pytest.mark.mpi
TWIN = PRELOADS / "sharp" / "libsharp_coll.so.5"
LEADERS = 4
CONNECTIONS = LEADERS + 1
"""Connections of a communicator: one for each leader's membership, one that asks for the daemon's limits."""
TRIAL, OPERATION = 2 * LEADERS, 2 * LEADERS
"""Frames with data or results."""

MpiByName = Callable[[str], Mpi]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for sockets."""
    try:
        helper("palmette-aggregator")
    except LabError as error:
        pytest.skip(str(error))
    if not TWIN.is_file():
        pytest.skip(f"{TWIN} isn't built: run `make build`")
    made = Path(tempfile.mkdtemp(prefix="ps"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    """A daemon without limits that matter."""
    with running(Daemon(folder)) as started:
        yield started


def topology(folder: Path, form: str = "4node@1GB/s:2core", *, listed: bool = False) -> Path:
    """Write a synthetic machine whose switches reduce: so they are listed, or marked as able to."""
    tree = (machine := _core.Machine.synthetic(form).to_json())["tree"]
    if listed:
        tree["aggregators"] = [{"name": "switches", "kind": "sharp"}]
    else:
        tree["can_reduce"] = True
    path = folder / "topology.json"
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    return path


def settings(
    folder: Path, daemon: Daemon, address: str = "", *, key: Path | None = None, groups: int = 256, fault: str = ""
) -> dict[str, str]:
    """Return the settings of ranks, two on each of four hosts below switches that are the twin's."""
    made = folder / "me.token"
    made.unlink(missing_ok=True)
    token.write_secret(made, token.make_token(token.read_key(key or daemon.key), 0, EXPIRY_S, groups))
    return {
        "PALMETTE_TOPOLOGY": str(topology(folder)),
        "PALMETTE_SHARP": str(TWIN),
        "SHARP_TWIN_DAEMON": address or daemon.address,
        "SHARP_TWIN_TOKEN": str(made),
        "SHARP_TWIN_STRICT": "1",
        "SHARP_TWIN_FAULT": fault,
        **BLOCKS,
    }


def assert_clean(ran: ProgramResult) -> None:
    """Fail unless results are right, and the twin's groups and registrations were given back."""
    ran.assert_right()
    assert "SHARP twin" not in ran.err, ran.err


def test_sums_are_right_and_always_the_same(mpi: Mpi, daemon: Daemon, folder: Path) -> None:
    ran = mpi.run(
        RANKS, "aggregated", "--generations", 3, "--calls", 6, "--count", 5000,
        settings=settings(folder, daemon) | FORCED,
    )  # fmt: skip
    assert_clean(ran)
    assert ran.served()["allreduce"] == {"in_network": 18}
    assert by_hosts(ran) == {}
    assert daemon.idle()["counters"]["groups"] == 3  # of the leaders alone
    assert_idle(daemon)


def test_each_mpi_goes_by_hosts_when_a_leader_fails(mpi: Mpi, daemon: Daemon, folder: Path) -> None:
    """The trial sum of the first communicator passes, and its first operation fails on one leader."""
    ran = mpi.run(
        RANKS, "aggregated", "--calls", 3, settings=settings(folder, daemon, fault="operation:-20@2*1+1") | FORCED
    )
    assert_clean(ran)
    assert by_hosts(ran)["no_resource"] >= 3


def test_switches_that_the_topology_lists(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    chosen = settings(folder, daemon) | FORCED
    topology(folder, listed=True)
    ran = mpi_called("mpich").run(RANKS, "aggregated", settings=chosen)
    assert_clean(ran)
    assert ran.served()["allreduce"] == {"in_network": 3}
    assert daemon.idle()["counters"]["groups"] == 3


@pytest.mark.parametrize("sharp", ["auto", "off"])
def test_without_the_library_nothing_changes(mpi_called: MpiByName, daemon: Daemon, folder: Path, sharp: str) -> None:
    """No row of the report is another one than where no switch can reduce."""
    chosen = settings(folder, daemon) | {"PALMETTE_SHARP": sharp}
    rows = []
    for reduces in (True, False):
        if not reduces:
            made = json.loads((folder / "topology.json").read_text(encoding="utf-8"))
            del made["machine"]["tree"]["can_reduce"]
            (folder / "topology.json").write_text(json.dumps(made), encoding="utf-8")
        ran = mpi_called("mpich").run(RANKS, "aggregated", "--count", 65536, settings=chosen)
        assert_clean(ran)
        assert ran.report is not None
        rows.append(
            [(row["function"], row["algorithm"], row["calls"], row.get("reason")) for row in ran.report["calls"]]
        )
        assert by_hosts(ran) == {}
    assert rows[0] == rows[1]
    assert daemon.told()["counters"]["connections"] == 0


def test_reproducible_results_keep_away(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    chosen = settings(folder, daemon) | FORCED | {"PALMETTE_REPRODUCIBLE": "1"}
    ran = mpi_called("mpich").run(RANKS, "aggregated", settings=chosen)
    assert_clean(ran)
    assert details(ran) == "no aggregator serves the job"
    assert daemon.told()["counters"]["connections"] == 0


def test_nonblocking_calls_are_left_to_others(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    ran = mpi_called("mpich").run(RANKS, "aggregated", "--nonblocking", 1, settings=settings(folder, daemon) | FORCED)
    assert_clean(ran)
    assert details(ran) == "aggregators serve blocking calls of predefined operations"
    assert daemon.told()["counters"]["connections"] == 0


def test_long_vectors_go_through_them_unforced(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    ran = mpi_called("mpich").run(RANKS, "aggregated", "--count", 65536, settings=settings(folder, daemon))
    assert_clean(ran)
    assert ran.report is not None
    rows = [row for row in ran.report["calls"] if row["function"] == "allreduce"]
    assert [(row["algorithm"], row["calls"]) for row in rows] == [("in_network", 3)]
    assert rows[0]["reason"].startswith("aggregators: at least")


def test_two_jobs_share_the_switches(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    chosen = settings(folder, daemon) | FORCED

    def job(seed: int) -> ProgramResult:
        one = replace(mpi_called("mpich"), directory=folder / str(seed), counter=[0])
        one.directory.mkdir()
        return one.run(RANKS, "aggregated", "--generations", 2, "--calls", 4, "--seed", seed, settings=chosen)

    with ThreadPoolExecutor() as pool:
        for ran in pool.map(job, (1, 2)):
            assert_clean(ran)
            assert by_hosts(ran) == {}
    assert daemon.idle()["counters"]["groups"] == 4


def test_another_program_calls_the_twin(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    """All of the interface's collectives, which palmette itself doesn't use."""
    twins = {name: value for name, value in settings(folder, daemon).items() if name.startswith("SHARP_")}
    ran = mpi_called("mpich").run(LEADERS, "sharp_calls", TWIN, settings=twins)
    ran.assert_right()
    assert "SHARP twin" not in ran.err
    assert_idle(daemon)


@pytest.mark.parametrize("fault", ["", "register:-3+1"], ids=["registered", "refused"])
def test_memory_of_the_mpi_is_sent_from_where_it_is(
    mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str
) -> None:
    """A rank a node: what it sends is the program's own, not a sum of its node's ranks. Freed, it is forgotten."""
    chosen = settings(folder, daemon, fault=fault) | FORCED
    chosen |= {"PALMETTE_FAKE_HOSTS": "0,1,2,3", "SHARP_TWIN_STATISTICS": "1"}
    topology(folder, "4node@1GB/s:1core")
    ran = mpi_called("mpich").run(
        LEADERS, "aggregated", "--generations", 1, "--calls", 3, "--count", 20000, "--mpis", 1, settings=chosen
    )
    assert_clean(ran)
    assert by_hosts(ran) == {}
    told = re.findall(r"twin of SHARP: rank \d has registered memory (\d+) times", ran.err)
    # The pool once, and what was allocated for each of the calls.
    assert [int(times) for times in told] == [1 if fault else 1 + 3] * LEADERS


CODES = {
    -1: "library", -2: "unsupported", -3: "no_resource", -4: "group_alloc", -5: "tree_connect", -6: "group_join",
    -7: "quota", -8: "session", -9: "device", -11: "job_create", -13: "no_tree", -15: "out_of_band",
    -18: "stream_lock", -19: "lock_denied", -20: "no_resource",
}  # fmt: skip
"""By the library's number, palmette's reason."""


def fault_cases() -> Iterator[tuple[str, str]]:
    """Yield each number at a place of its kind, and each place on one leader alone; with the reason."""
    for code in (-5, -8, -9, -11, -13):
        yield f"init:{code}", CODES[code]
    yield "init:-9@2", "device"
    yield "init_end:-11@1", "job_create"
    for code in (-1, -3, -4, -6, -7):
        yield f"comm_init:{code}", CODES[code]
    yield "comm_init:-7@3", "quota"
    yield "comm_init_end:-4@0", "group_alloc"
    yield "oob:-15@1", "out_of_band"
    yield "oob:-15@2+3", "out_of_band"
    yield "register:-3", "registration"
    yield "register:-3@1", "registration"
    yield "operation:-18", "stream_lock"
    yield "operation:-18@1", "stream_lock"
    yield "wait:-19", "lock_denied"
    yield "sum:1@1", "wrong_sum"


@pytest.mark.parametrize(
    ("name", "fault", "reason"),
    [(name, *case) for name, case in zip(cycle(("mpich", "openmpi", "impi")), fault_cases(), strict=False)],
    ids=lambda value: value,
)
def test_a_group_that_is_not_made(
    mpi_called: MpiByName, daemon: Daemon, folder: Path, name: str, fault: str, reason: str
) -> None:
    """Each number, and each place on one leader alone; the MPIs take turns."""
    ran = mpi_called(name).run(
        RANKS, "aggregated", "--generations", 1, settings=settings(folder, daemon, fault=fault) | FORCED
    )
    assert_clean(ran)
    assert by_hosts(ran) == {reason: 1}
    assert_idle(daemon)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("operation:-2*1+1", "unsupported"),
        ("operation:-18*1+1", "stream_lock"),
        ("operation:-20@1*1+2", "no_resource"),
        ("wait:-1*1+1", "library"),
        ("wait:-5@3*1+2", "tree_connect"),
    ],
    ids=lambda value: value,
)
def test_an_operation_that_fails(mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str, reason: str) -> None:
    """The first sum of the trial passes. On one leader alone the others may be left with operations that never end."""
    ran = mpi_called("mpich").run(
        RANKS, "aggregated", "--generations", 1, "--calls", 4,
        settings=settings(folder, daemon, fault=fault)
        | forced(allreduce="in_network:segment=2K"),
    )  # fmt: skip
    assert_clean(ran)
    calls = by_hosts(ran)
    assert set(calls) == {reason}
    assert calls[reason] in (3, 4)


def test_a_lock_that_is_taken_for_a_while_is_waited_for(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    ran = mpi_called("mpich").run(
        RANKS, "aggregated", "--generations", 1, settings=settings(folder, daemon, fault="wait:-18*3") | FORCED
    )
    assert_clean(ran)
    assert ran.served()["allreduce"] == {"in_network": 1}
    assert by_hosts(ran) == {}


@pytest.mark.parametrize(
    ("library", "reason"),
    [("sharp_bare/libsharp_coll.so.5", "other_library"), ("sharp_old/libsharp_coll.so.4", "other_library")],
)
def test_a_library_with_another_interface_is_refused(
    mpi_called: MpiByName, daemon: Daemon, folder: Path, library: str, reason: str
) -> None:
    path = BUILD / "tests" / "fakes" / library
    if not path.is_file():
        pytest.skip(f"{path} isn't built: make test builds it")
    chosen = settings(folder, daemon) | FORCED | {"PALMETTE_SHARP": str(path)}
    ran = mpi_called("mpich").run(RANKS, "aggregated", settings=chosen)
    assert_clean(ran)
    assert by_hosts(ran) == {reason: 3}
    assert daemon.told()["counters"]["connections"] == 0


@pytest.mark.parametrize("fault", ["close", "kill"])
def test_switches_that_go_at_any_frame(mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str) -> None:
    """Switches go at any frame of the operations, the trial's among them."""
    generations = TRIAL + OPERATION
    with Proxy(daemon, fault, ranks=CONNECTIONS) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", "--generations", generations + 2,
            settings=settings(folder, daemon, proxy.address) | FORCED,
        )  # fmt: skip
    assert_clean(ran)
    assert proxy.frames == [generations, *range(1, generations + 1), generations]
    calls = by_hosts(ran)
    assert set(calls) <= {"tree_connect", "member_lost", "library"}
    assert sum(calls.values()) == generations
    assert_idle(daemon)


@pytest.mark.parametrize("fault", ["corrupt", "truncate", "stop"])
def test_frames_that_are_damaged_cut_or_late(mpi_called: MpiByName, daemon: Daemon, folder: Path, fault: str) -> None:
    at = [TRIAL + 3] if fault == "stop" else range(TRIAL, TRIAL + OPERATION)
    with Proxy(daemon, fault, at, ranks=CONNECTIONS) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", "--generations", len(at) + 2,
            settings=settings(folder, daemon, proxy.address) | FORCED, timeout_s=HUNG_S,
        )  # fmt: skip
    assert_clean(ran)
    assert sum(by_hosts(ran).values()) == len(at)
    assert_idle(daemon)


def test_while_groups_are_made_the_daemon_goes(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    setup = (HELLO, CREATE, READY)
    frames = 1 + 3 * LEADERS
    with Proxy(daemon, "close", ranks=CONNECTIONS, kinds=setup) as proxy:
        ran = mpi_called("mpich").run(
            RANKS, "aggregated", "--generations", frames + 1,
            settings=settings(folder, daemon, proxy.address) | FORCED,
        )  # fmt: skip
    assert_clean(ran)
    assert sum(by_hosts(ran).values()) >= frames - 1
    assert_idle(daemon)


def test_a_token_of_another_site_is_refused(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    other = folder / "other.key"
    token.write_secret(other, token.new_key())
    ran = mpi_called("mpich").run(RANKS, "aggregated", settings=settings(folder, daemon, key=other) | FORCED)
    assert_clean(ran)
    assert by_hosts(ran) == {"job_create": 3}


def test_another_version_of_the_protocol_is_refused(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    def change(frame: bytearray, _to_daemon: bool) -> None:
        if frame[TYPE_AT] == CREATE:
            frame[VERSION_AT] += 1

    with Proxy(daemon, change=change, ranks=CONNECTIONS) as proxy:
        ran = mpi_called("mpich").run(RANKS, "aggregated", settings=settings(folder, daemon, proxy.address) | FORCED)
    assert_clean(ran)
    assert by_hosts(ran) == {"job_create": 3}


def test_counts_that_differ_are_an_error_and_no_hang(mpi_called: MpiByName, daemon: Daemon, folder: Path) -> None:
    """The exchange on the host, or the repetition by hosts, meets a message of another length, and the MPI aborts."""
    ran = mpi_called("mpich").run(
        RANKS, "aggregated", "--longer-from", RANKS - 2, settings=settings(folder, daemon) | FORCED
    )
    assert ran.status != 0
    assert_idle(daemon)


@pytest.mark.parametrize(
    ("profile", "groups", "reasons"),
    [("open", 3, {"unsupported", "quota"}), ("quantum", 256, {"unsupported", "stream_lock"})],
    ids=["quota", "lock"],
)
def test_random_operations(mpi_called: MpiByName, folder: Path, profile: str, groups: int, reasons: set[str]) -> None:
    """On communicators of which some find no group left, or the tree locked by another; no switch multiplies."""
    with running(Daemon(folder, {}, profile)) as daemon:
        chosen = settings(folder, daemon, groups=groups) | FORCED
        ran = mpi_called("mpich").run(RANKS, "aggregated", "--random", 100 * SOAK, settings=chosen)
        assert_clean(ran)
        assert ran.served()["allreduce"]["in_network"] > 25
        assert set(by_hosts(ran)) == reasons
        assert_idle(daemon)
