"""Parts of `palmette convert` that need no MPI: wire formats, escapes, a simulated job on many hosts."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

from palmette.record.formats import cali, protobuf
from palmette.record.reading import read_job
from palmette_lab.simulate import simgrid
from palmette_lab.simulate.errors import SimulateError


def package(name: str, distribution: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        pytest.skip(f"{name} isn't there: pip install {distribution}")


def test_protocol_buffers_are_those_of_their_own_package() -> None:
    protos = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2", "perfetto")
    random = Random(1)
    numbers = [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**28, 2**35, 2**63 - 1]
    numbers += [random.getrandbits(random.randrange(1, 64)) for _ in range(500)]
    for value in numbers:
        made = protos.DebugAnnotation(name_iid=value, int_value=-value, string_value="a" * (value % 300))
        ours = protobuf.number(1, value) + protobuf.number(4, -value) + protobuf.text(6, made.string_value)
        assert protos.DebugAnnotation.FromString(ours) == made
        event = protos.TrackEvent(type=protos.TrackEvent.TYPE_INSTANT, flow_ids=[value])
        packet = protos.TracePacket(timestamp=value, track_event=event)
        ours = protobuf.number(8, value) + protobuf.data(11, protobuf.number(9, 3) + protobuf.fixed64(47, value))
        assert protos.TracePacket.FromString(ours) == packet


def test_caliper_reads_names_with_its_own_marks_in_them() -> None:
    reader = package("caliperreader", "caliper-reader").CaliperReader()
    names = ["main", "f<a, b>(int) [with T = c]", "back\\slash", "two\nlines", "a=b,c"]
    file = io.StringIO()
    writer = cali._Writer(file)
    function = writer.attribute("function", "string", cali.NESTED)
    calls = writer.attribute("calls", "uint", cali.AS_VALUE)
    node = None
    for name in names:
        node = writer.node(function, name, node)
    assert node is not None
    writer.record("ctx", (node,), {calls: 3})
    file.seek(0)
    reader.read(file)
    assert reader.records == [{"function": names, "path": names, "calls": "3"}]


@pytest.fixture
def simulated(palmette_lab: Callable[..., Any], tmp_path: Path) -> Path:
    """An allreduce on 16 hosts of two ranks."""
    try:
        simgrid.find_smpirun()
    except SimulateError as error:
        pytest.skip(str(error))
    folder = tmp_path / "simulated"
    result = palmette_lab("simulate", "--machine", "4leaf@3GB/s~2us:4node@1.5GB/s:2core",
        "--collectives", "allreduce", "--sizes", "1K", "--rivals", "none", "--env",
        "PALMETTE_FORCE=allreduce=recursive_doubling", "--trace", folder,
    )  # fmt: skip
    assert result.status == 0, result.err
    return folder


def test_a_simulated_job_keeps_its_hosts_and_its_time(
    palmette: Callable[..., Any], tmp_path: Path, simulated: Path
) -> None:
    job = read_job(simulated)
    assert palmette("convert", simulated, "--to", "csv", "-o", tmp_path / "calls.csv").status == 0
    with (tmp_path / "calls.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(process.calls()) for process in job.processes)
    served = [row for row in rows if row["algorithm"] == "recursive_doubling"]
    assert Counter(row["rank"] for row in served) == dict.fromkeys(map(str, range(32)), 2)
    begin_ns = min(process.recorded.begin_real_ns for process in job.processes)
    first = min(call.begin_real_ns for process in job.processes for call in process.calls()) - begin_ns
    assert min(float(row["begin_s"]) for row in rows) == first / 1e9

    otf2 = package("otf2", "otf2")
    result = palmette("convert", simulated, "--to", "otf2", "-o", tmp_path / "archive")
    assert result.status == 0, result.err
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        groups = {one.name: one.system_tree_parent.name for one in archive.definitions.location_groups}
        ends = [event for _, event in archive.events if type(event).__name__ == "MpiCollectiveEnd"]
    assert groups == {process.name: process.host for process in job.processes}
    assert len(set(groups.values())) == 16
    allreduces = [end for end in ends if end.collective_op == otf2.CollectiveOp.ALLREDUCE]
    assert [end.size_sent for end in allreduces] == [1024] * 64
