"""Converted recordings, as the tools read them that they are for: the same calls, times, bytes and messages."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from palmette.record.formats.convert import convert as write
from palmette.record.reading import read_job

from . import readers
from .conftest import Mpi, _installed
from .truth import Message, Truth, truth_of

pytestmark = pytest.mark.mpi

Convert = Callable[..., Path]


def record(mpi: Mpi, mode: str, program: str, *arguments: object, ranks: int = 4, **settings: str) -> Path:
    folder = mpi.directory / f"{program}-{mpi.counter[0]}"
    ran = mpi.run(ranks, program, *arguments, settings={f"PALMETTE_{mode}": str(folder), **settings})
    assert ran.status == 0, ran.text
    return folder


@pytest.fixture(scope="module")
def mpich(tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    return _installed("mpich", tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def trace(mpich: Mpi) -> Path:
    """Messages of all kinds, requests, collectives on three communicators."""
    return record(mpich, "TRACE", "calls", "--rounds", 2)


@pytest.fixture(scope="module")
def profile(mpich: Mpi) -> Path:
    return record(mpich, "PROFILE", "calls", "--rounds", 2)


@pytest.fixture(scope="module")
def truth(trace: Path) -> Truth:
    return truth_of(trace)


@pytest.fixture
def convert(palmette: Callable[..., Any], tmp_path: Path) -> Convert:
    """Convert a recording: `convert(folder, "csv", "--ranks", "0")` returns the file."""

    def call(folder: Path, name: str, *options: object, output: str = "out") -> Path:
        result = palmette("convert", folder, "--to", name, "-o", tmp_path / output, *map(str, options))
        assert result.status == 0, result.err
        return tmp_path / output

    return call


def close(found: dict[Any, float], expected: dict[Any, float], calls: int) -> None:
    """Compare seconds that were rounded to nanoseconds for each call."""
    assert found.keys() == expected.keys()
    for key, seconds in expected.items():
        assert found[key] == pytest.approx(seconds, abs=calls * 2e-9), key


class Archive:
    """What the `otf2` package reads of an archive."""

    def __init__(self, folder: Path) -> None:
        otf2 = readers.package("otf2")
        self.calls: Counter[tuple[int, str]] = Counter()
        self.seconds: dict[tuple[int, str], float] = defaultdict(float)
        self.sent: Counter[tuple[Message, int]] = Counter()
        self.received: Counter[tuple[Message, int]] = Counter()
        self.collectives: Counter[tuple[str, int]] = Counter()
        self.collective_bytes = 0
        self.places: Counter[str] = Counter()
        self.threads: dict[int, set[str]] = defaultdict(set)
        open_regions: dict[Any, list[tuple[Any, int]]] = defaultdict(list)
        started: dict[tuple[int, int], str] = {}
        with otf2.reader.open(str(folder / "traces.otf2")) as archive:
            self.resolution = archive.definitions.clock_properties.timer_resolution
            self.began_ns = archive.definitions.clock_properties.realtime_timestamp
            self.hosts = [one.name for one in archive.definitions.system_tree_nodes if one.class_name == "node"]
            self.comms = {one.name: one for one in archive.definitions.comms}
            last: dict[Any, int] = defaultdict(int)
            for location, event in archive.events:
                assert event.time >= last[location]
                last[location] = event.time
                rank = int(location.group.name.removeprefix("rank "))
                self.threads[rank].add(location.name)
                kind = type(event).__name__
                stack = open_regions[location]
                if kind == "Enter":
                    stack.append((event.region, event.time))
                    for place in (event.attributes or {}).values():
                        self.places[place.file] += 1
                elif kind == "Leave":
                    region, begin = stack.pop()
                    assert region is event.region
                    if region.paradigm == otf2.Paradigm.MPI:
                        assert len(stack) == 1, "the program is around each call"
                        self.calls[rank, region.name] += 1
                        self.seconds[rank, region.name] += (event.time - begin) * 1e-9
                elif kind in ("MpiSend", "MpiIsend"):
                    self.sent[(rank, self._rank(event, event.receiver, rank), event.msg_tag), event.msg_length] += 1
                elif kind in ("MpiRecv", "MpiIrecv"):
                    self.received[(self._rank(event, event.sender, rank), rank, event.msg_tag), event.msg_length] += 1
                elif kind in ("MpiCollectiveEnd", "NonBlockingCollectiveComplete"):
                    name = str(event.collective_op).rpartition(".")[2].lower()
                    self.collectives[name, len(event.communicator.group.members) or 1] += 1
                    self.collective_bytes += event.size_sent + event.size_received
                if hasattr(event, "request_id"):
                    key = rank, event.request_id
                    if kind in ("MpiIsend", "MpiIrecvRequest", "NonBlockingCollectiveRequest"):
                        assert key not in started
                        started[key] = kind
                    else:
                        assert started.pop(key), "what completes was started"
        assert not started
        assert not any(open_regions.values())

    @staticmethod
    def _rank(event: Any, member: int, own: int) -> int:
        # OTF2's group of communicators of one rank has no members: whoever uses it is alone on it.
        if not event.communicator.group.members:
            return own
        return int(event.communicator.location(member).group.name.removeprefix("rank "))


def test_otf2_is_read_by_its_own_package(convert: Convert, trace: Path, truth: Truth) -> None:
    found = Archive(convert(trace, "otf2"))
    assert found.resolution == 10**9
    assert found.calls == truth.calls
    close(found.seconds, truth.seconds, 20)
    assert found.sent == found.received == truth.sent
    named = {(f"{name.removeprefix('MPI_').lower()}", size): count for (name, size), count in truth.collectives.items()}
    assert found.collectives == {
        (name.replace("iallgather", "allgather"), size): n for (name, size), n in named.items()
    }
    assert found.collective_bytes == truth.collective_bytes
    world = found.comms["MPI_COMM_WORLD"]
    assert [location.group.name for location in world.group.members] == [f"rank {rank}" for rank in range(4)]
    job = read_job(trace)
    assert found.hosts == [job.processes[0].host]
    first = min(process.recorded.begin_real_ns for process in job.processes)
    assert 0 <= found.began_ns - first < 5e9
    # The program has no lines; test_convert_samples.py has one that does.
    assert found.places.total() == 0


def test_otf2_is_printed_by_otf2_print(convert: Convert, trace: Path, truth: Truth) -> None:
    program = shutil.which("otf2-print")
    if program is None:
        pytest.skip("otf2-print isn't installed: apt-get install otf2-tools")
    folder = convert(trace, "otf2")
    done = subprocess.run([program, str(folder / "traces.otf2")], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "ERROR" not in done.stderr, done.stderr
    counts = Counter(line.split()[0] for line in done.stdout.splitlines() if line[:1].isupper())
    assert counts["ENTER"] == counts["LEAVE"] == truth.calls.total() + 4
    assert counts["MPI_SEND"] + counts["MPI_ISEND"] == counts["MPI_RECV"] + counts["MPI_IRECV"] == truth.sent.total()
    assert counts["MPI_ISEND"] == counts["MPI_ISEND_COMPLETE"]
    assert counts["MPI_IRECV"] == counts["MPI_IRECV_REQUEST"]


FLOWS = """
select s.name as send, extract_arg(s.arg_set_id, '{args}.bytes') as bytes, sp.pid - 1 as sender,
    r.name as receive, rp.pid - 1 as receiver, s.ts as sent, r.ts as received
from flow join slice s on s.id = slice_out join slice r on r.id = slice_in
join thread_track st on st.id = s.track_id join thread su using (utid) join process sp using (upid)
join thread_track rt on rt.id = r.track_id join thread ru on ru.utid = rt.utid join process rp on rp.upid = ru.upid
"""
SLICES = """
select pid - 1 as rank, slice.name as name, count(*) as calls, sum(dur) as ns,
    sum(extract_arg(slice.arg_set_id, '{args}.bytes')) as bytes
from slice join thread_track on thread_track.id = track_id join thread using (utid) join process using (upid)
where category != 'received' group by 1, 2
"""
REQUESTS = """
select count(*) as number, sum(dur) as ns from slice join process_track on process_track.id = track_id
"""


@pytest.mark.parametrize(("name", "args"), [("perfetto", "debug"), ("chrome", "args")])
def test_perfettos_engine_reads_calls_requests_and_messages(
    convert: Convert, trace: Path, truth: Truth, name: str, args: str
) -> None:
    file = convert(trace, name)
    slices, flows, ((requests),), processes = readers.trace_processor(
        file, SLICES.format(args=args), FLOWS.format(args=args), REQUESTS, "select name from process order by pid"
    )
    assert {(row["rank"], row["name"]): row["calls"] for row in slices} == truth.calls
    assert {(row["rank"], row["name"]): row["bytes"] for row in slices} == {
        key: truth.bytes[key] for key in truth.calls
    }
    close({(row["rank"], row["name"]): row["ns"] * 1e-9 for row in slices}, truth.seconds, 20)
    assert requests["number"] == truth.requests.total()
    # The bytes of arrows that leave an MPI_Start are those of its request.
    pairs = Counter((row["sender"], row["receiver"]) for row in flows)
    expected: Counter[tuple[int, int]] = Counter()
    for (sender, receiver, _), count in truth.messages.items():
        expected[sender, receiver] += count
    assert pairs == expected
    assert all(row["received"] >= row["sent"] for row in flows)
    assert {row["send"] for row in flows} == {"MPI_Send", "MPI_Isend", "MPI_Sendrecv", "MPI_Startall"}
    host = read_job(trace).processes[0].host
    assert [row["name"] for row in processes if row["name"]] == [f"rank {rank} on {host}" for rank in range(4)]


def test_perfettos_messages_are_well_formed(convert: Convert, trace: Path, truth: Truth) -> None:
    protos = readers.package("perfetto.protos.perfetto.trace.perfetto_trace_pb2", "perfetto")
    file = protos.Trace()
    file.ParseFromString(convert(trace, "perfetto").read_bytes())
    names: dict[int, str] = {}
    events: Counter[tuple[str, str]] = Counter()
    flows: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for packet in file.packet:
        names |= {one.iid: one.name for one in packet.interned_data.event_names}
        if packet.HasField("track_event"):
            event = packet.track_event
            kind = protos.TrackEvent.Type.Name(event.type)
            events[kind, names[event.name_iid] if event.name_iid else ""] += 1
            flows[0].update(event.flow_ids)
            flows[1].update(event.terminating_flow_ids)
    both = truth.calls.total() + truth.requests.total()
    assert sum(count for (kind, _), count in events.items() if kind == "TYPE_SLICE_BEGIN") == both
    assert events["TYPE_SLICE_END", ""] == both
    assert events["TYPE_INSTANT", "received"] == truth.sent.total()
    assert flows[0] == flows[1] == dict.fromkeys(range(1, truth.sent.total() + 1), 1)


def test_speedscope_imports_three_formats(convert: Convert, trace: Path, profile: Path, truth: Truth) -> None:
    files = [
        convert(trace, "speedscope", output="t.json"), convert(trace, "chrome", output="c.json"),
        convert(trace, "folded", output="t.txt"), convert(profile, "speedscope", output="p.json"),
        convert(profile, "folded", output="p.txt"),
    ]  # fmt: skip
    schema = readers.speedscope_schema()
    for file in (files[0], files[3]):
        readers.package("jsonschema").validate(json.loads(file.read_text(encoding="utf-8")), schema)
    own, chrome, folded, summed, summed_folded = readers.speedscope(*files)
    for rank in range(4):
        calls = truth.by_rank(rank)
        for profiles, unit in ((own, 1e-9), (chrome, 1e-6)):
            (found,) = [one for one in profiles if one["name"].startswith(f"rank {rank}")]
            opened: Counter[str] = Counter()
            seconds: dict[str, float] = defaultdict(float)
            for name, count in found["opened"].items():  # of Chrome's events it takes arguments into the name
                opened[name.partition(" {")[0]] += count if name.startswith("MPI_") else 0
            for name, weight in found["selfWeights"].items():
                seconds[name.partition(" {")[0]] += weight * unit
            assert +opened == calls
            close(seconds, {name: truth.seconds[rank, name] for name in calls}, 20)
        assert all(";main;" in stack for stack in own[rank]["stacks"] if stack.rpartition(";")[2].startswith("MPI_"))
    job = read_job(profile)
    sums = [row for process in job.processes for row in process.recorded.aggregates if not row.is_request]
    assert folded[0]["total"] == pytest.approx(truth.in_mpi_s * 1e6, abs=100)
    assert summed_folded[0]["total"] == pytest.approx(sum(row.seconds for row in sums) * 1e6, abs=100)
    assert sum(one["total"] for one in summed) == pytest.approx(sum(row.seconds for row in sums) * 1e9, abs=1000)
    assert {name.rpartition(";")[2] for name in folded[0]["stacks"] if "MPI_" in name} == {
        function for _, function in truth.calls
    }


def test_caliper_reader_reads_sums(convert: Convert, trace: Path, profile: Path, truth: Truth) -> None:
    reader = readers.package("caliperreader", "caliper-reader")
    records, about = reader.read_caliper_contents(str(convert(trace, "cali")))
    calls: Counter[tuple[int, str]] = Counter()
    size: Counter[tuple[int, str]] = Counter()
    seconds: dict[tuple[int, str], float] = defaultdict(float)
    for one in records:
        key = int(one["mpi.rank"]), one["path"][-1]
        if not key[1].startswith("MPI_"):
            assert (one["calls"], float(one["sum#time.duration"])) == ("0", 0)
            continue
        calls[key] += int(one["calls"])
        size[key] += int(one["bytes"])
        seconds[key] += float(one["sum#time.duration"])
        assert "main" in one["path"]
    assert (calls, size) == (truth.calls, truth.bytes)
    close(seconds, truth.seconds, 20)
    assert (about["recording"], about["jobsize"]) == (str(trace), "4")
    again, _ = reader.read_caliper_contents(str(convert(profile, "cali")))
    assert sum(int(one["calls"]) for one in again) == truth.calls.total()


HATCHET = """
import json, sys, hatchet
frame = hatchet.GraphFrame.from_caliperreader(sys.argv[1])
table = frame.dataframe
assert table.index.is_unique
rows = [[int(rank), node.frame["name"], row["calls"], row["time"]] for (node, rank), row in table.iterrows()]
frame.drop_index_levels()
assert "MPI_Allreduce" in frame.tree(metric_column="time")
print(json.dumps(rows))
"""
THICKETS = """
import json, sys, thicket
joined = thicket.Thicket.from_caliperreader(sys.argv[1:], disable_tqdm=True)
print(json.dumps([len(joined.metadata), float(joined.dataframe["calls"].sum()), float(joined.dataframe["time"].sum())]))
"""


@pytest.mark.long
def test_hatchet_and_thicket_read_sums(convert: Convert, trace: Path, profile: Path, truth: Truth) -> None:
    files = [convert(trace, "cali", output="a.cali"), convert(profile, "cali", output="b.cali")]
    calls: Counter[tuple[int, str]] = Counter()
    seconds: dict[tuple[int, str], float] = defaultdict(float)
    for rank, name, count, time_s in readers.thicket(HATCHET, files[0]):
        if name.startswith("MPI_"):
            calls[rank, name] += int(count)
            seconds[rank, name] += time_s
    assert calls == truth.calls
    close(seconds, truth.seconds, 20)
    runs, joined, time_s = readers.thicket(THICKETS, *files)
    sums = sum(
        row.seconds for one in read_job(profile).processes for row in one.recorded.aggregates if not row.is_request
    )
    assert (runs, joined) == (2, 2 * truth.calls.total())
    assert time_s == pytest.approx(truth.in_mpi_s + sums, abs=1e-6)


def test_csv_has_calls_of_a_trace_and_sums_of_a_profile(
    convert: Convert, trace: Path, profile: Path, truth: Truth
) -> None:
    with convert(trace, "csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert Counter((int(one["rank"]), one["function"]) for one in rows if one["is_request"] == "0") == truth.calls
    assert sum(one["is_request"] == "1" for one in rows) == truth.requests.total()
    job = read_job(trace)
    begin_ns = min(process.recorded.begin_real_ns for process in job.processes)
    for process in job.processes:
        own = [one for one in rows if one["rank"] == str(process.recorded.rank)]
        for row, call in zip(own, process.calls(), strict=True):
            assert row["begin_s"] == f"{(call.begin_real_ns - begin_ns) / 1e9:.9f}"
            assert float(row["seconds"]) == pytest.approx(call.seconds, abs=2e-9)
            assert (row["function"], int(row["bytes"])) == (call.function, call.bytes)
            assert row["peer"] == (str(call.peer) if call.peer >= 0 else "")
            assert row["instance"] == (str(call.instance) if call.instance else "")
    with convert(profile, "csv").open(newline="", encoding="utf-8") as file:
        sums = list(csv.DictReader(file))
    added: Counter[tuple[int, str]] = Counter()
    for one in sums:
        added[int(one["rank"]), one["function"]] += int(one["calls"]) if one["is_request"] == "0" else 0
    assert added == truth.calls
    assert all(";main" in one["path"] for one in sums)


def test_sqlite_joins_calls_with_places_communicators_and_messages(
    convert: Convert, trace: Path, profile: Path, truth: Truth
) -> None:
    with closing(sqlite3.connect(convert(trace, "sqlite"))) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert not database.execute("PRAGMA foreign_key_check").fetchall()
        rows = database.execute(
            "SELECT rank, f.name, count(*), sum(bytes), sum(end_ns - begin_ns) FROM calls c "
            "JOIN processes p ON p.id = process JOIN functions f ON f.id = function WHERE NOT is_request GROUP BY 1, 2"
        ).fetchall()
        assert {(rank, name): count for rank, name, count, *_ in rows} == truth.calls
        assert Counter({(rank, name): size for rank, name, _, size, _ in rows}) == truth.bytes
        close({(rank, name): ns * 1e-9 for rank, name, *_, ns in rows}, truth.seconds, 20)
        messages = database.execute(
            "SELECT ps.rank, pr.rank, s.tag, m.bytes, r.tag, count(*) FROM messages m JOIN calls s ON s.id = send "
            "JOIN calls r ON r.id = receive JOIN processes ps ON ps.id = s.process "
            "JOIN processes pr ON pr.id = r.process GROUP BY 1, 2, 3, 4, 5"
        ).fetchall()
        assert all(tag == other for _, _, tag, _, other, _ in messages)
        assert {((sender, receiver, tag), size): n for sender, receiver, tag, size, _, n in messages} == truth.sent
        sums = database.execute(
            "SELECT rank, f.name, sum(calls) FROM sums JOIN processes p ON p.id = process "
            "JOIN functions f ON f.id = function WHERE NOT is_request GROUP BY 1, 2"
        ).fetchall()
        assert {(rank, name): count for rank, name, count in sums} == truth.calls
        outermost = database.execute(
            "SELECT DISTINCT frames.function FROM calls JOIN path_frames USING (path) "
            "JOIN frames ON frames.id = frame WHERE depth = 0"
        ).fetchall()
        assert outermost == [("_start",)]
        sizes = database.execute(
            "SELECT f.name, k.size, count(*) FROM calls JOIN functions f ON f.id = function "
            "JOIN communicators k ON k.id = communicator WHERE instance AND is_request = (f.name = 'MPI_Iallgather') "
            "GROUP BY 1, 2"
        ).fetchall()
        assert {(name, size): count for name, size, count in sizes} == truth.collectives
    with closing(sqlite3.connect(convert(profile, "sqlite"))) as database:
        assert database.execute("SELECT count(*) FROM calls").fetchone() == (0,)
        (calls,) = database.execute("SELECT sum(calls) FROM sums WHERE NOT is_request").fetchone()
        assert calls == truth.calls.total()


def test_threads_have_tracks_of_their_own(convert: Convert, mpich: Mpi) -> None:
    folder = record(mpich, "TRACE", "threads", "--rounds", 1, "--threads", 2, ranks=2)
    job = read_job(folder)
    expected = {one.recorded.rank: {f"thread {call.thread}" for call in one.calls()} for one in job.processes}
    assert min(map(len, expected.values())) > 2
    assert Archive(convert(folder, "otf2")).threads == expected
    query = "select distinct pid - 1 as rank, thread.name as name from slice join thread_track t on t.id = track_id "
    query += "join thread using (utid) join process using (upid)"
    (rows,) = readers.trace_processor(convert(folder, "perfetto", output="perfetto"), query)
    assert sorted((row["rank"], row["name"]) for row in rows) == sorted(
        (rank, thread) for rank, threads in expected.items() for thread in threads
    )


def test_messages_match_where_a_ring_has_lost_the_first_ones(convert: Convert, mpich: Mpi) -> None:
    # A little more than the tables take.
    folder = record(mpich, "TRACE", "calls", "--rounds", 60, PALMETTE_TRACE_BYTES="4600000")
    for process in read_job(folder).processes:
        assert process.recorded.dropped > 0
        assert len(process.calls()) > 1000
    with closing(sqlite3.connect(convert(folder, "sqlite"))) as database:
        matched, tags, sizes, early = database.execute(
            "SELECT count(*), sum(s.tag = r.tag), sum(s.bytes = m.bytes), sum(r.end_ns < s.begin_ns) "
            "FROM messages m JOIN calls s ON s.id = send JOIN calls r ON r.id = receive"
        ).fetchone()
    assert matched == tags == sizes > 100
    assert early == 0
    archive = Archive(convert(folder, "otf2", output="archive"))
    assert archive.sent == archive.received
    assert archive.sent.total() == matched


def test_windows_cut_no_request_and_no_message_in_two(convert: Convert, trace: Path, truth: Truth) -> None:
    begins = sorted(call.begin_real_ns for one in read_job(trace).processes for call in one.calls())
    first = min(one.recorded.begin_real_ns for one in read_job(trace).processes)
    for share in (0.2, 0.4, 0.6):
        until_ns = begins[int(share * len(begins)) + 40] - first
        window = ("--from", f"{begins[int(share * len(begins))] - first}ns", "--until", f"{until_ns}ns")
        archive = Archive(convert(trace, "otf2", *window))
        assert archive.sent == archive.received
        assert 0 < archive.calls.total() < truth.calls.total()
        with closing(sqlite3.connect(convert(trace, "sqlite", *window, output="window.db"))) as database:
            (messages,) = database.execute("SELECT count(*) FROM messages").fetchone()
        assert messages == archive.sent.total()


def test_every_mpis_messages_match_and_its_frames_are_left_out(mpi: Mpi, convert: Convert) -> None:
    folder = record(mpi, "TRACE", "calls", "--rounds", 1)
    truth = truth_of(folder)
    with closing(sqlite3.connect(convert(folder, "sqlite"))) as database:
        assert database.execute("SELECT count(*) FROM messages").fetchone() == (truth.sent.total(),)
        callers = database.execute(
            "SELECT DISTINCT frames.function FROM calls JOIN paths ON paths.id = path "
            "JOIN frames ON frames.id = called_at"
        ).fetchall()
    assert all(name == "main" or "collectives" in name for (name,) in callers), callers
    assert Archive(convert(folder, "otf2", output="archive")).sent == truth.sent


def test_two_jobs_of_one_folder_stay_two(mpich: Mpi, convert: Convert) -> None:
    folder = mpich.directory / "twice"
    for _ in range(2):
        assert mpich.run(2, "calls", "--rounds", 1, settings={"PALMETTE_TRACE": str(folder)}).status == 0
    job = read_job(folder)
    otf2 = readers.package("otf2")
    with otf2.reader.open(str(convert(folder, "otf2") / "traces.otf2")) as archive:
        names = {one.name for one in archive.definitions.location_groups}
        kinds = Counter(type(event).__name__ for _, event in archive.events)
    assert names == {f"rank {one.recorded.rank} of process {one.recorded.pid}" for one in job.processes}
    assert len(names) == 4
    assert kinds["Enter"] == sum(one.recorded.calls for one in job.processes) + 4
    # MPI_COMM_WORLD is two communicators that can't be told apart.
    assert kinds["MpiSend"] == kinds["MpiIsend"] == 0


def test_an_isendrecv_sends_by_its_call_and_receives_by_its_request(mpich: Mpi, tmp_path: Path) -> None:
    folder = record(mpich, "TRACE", "planted", "isendrecv", tmp_path / "there")
    database = tmp_path / "calls.sqlite"
    write(read_job(folder), "sqlite", database)
    with closing(sqlite3.connect(database)) as found:
        pairs = found.execute(
            "SELECT ps.rank, pr.rank, s.is_request, r.is_request, count(*) FROM messages m "
            "JOIN calls s ON s.id = m.send JOIN processes ps ON ps.id = s.process "
            "JOIN calls r ON r.id = m.receive JOIN processes pr ON pr.id = r.process GROUP BY 1, 2, 3, 4 ORDER BY 1"
        ).fetchall()
    assert pairs == [(rank, (rank + 1) % 4, 0, 1, 4) for rank in range(4)]
