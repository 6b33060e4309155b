"""A whole calibration on an invented machine: it finds what is true, and stops when it may."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import palmette
from calibrate.invented import TRUTH, Costs, InventedJob, job_line, layout_of
from palmette.calibrate.estimate import MIN_REPETITIONS, relative_error
from palmette.calibrate.layout import MOST_PAIRS
from palmette.calibrate.measure import Effort, MachineSteps, measure, plan_steps
from palmette.calibrate.text import level_lines, node_memory_line, notes, plan_line, to_json
from palmette.calibrate.write import calibration_of, write_into
from palmette.discover.run import discover
from palmette.measure.errors import CalibrateError
from palmette.topology.calibration import Calibration, LevelFit
from palmette.topology.file import parse
from palmette.topology.model import Topology

JobMaker = Callable[..., InventedJob]
SCHEMA = json.loads((Path(palmette.__file__).parent / "schemas" / "topology.schema.json").read_text())


def calibrated(job: InventedJob, effort: Effort | None = None) -> MachineSteps:
    measured = plan_steps(job.layout, effort or Effort(budget_s=0.5))
    measure(measured, job)
    return measured


def written(topology: Topology, job: InventedJob, *, loads: bool = False, effort: Effort | None = None) -> list[str]:
    measured = calibrated(job, effort)
    hosts = [host.name for host in job.layout.nodes]
    record = calibration_of(measured, job_line(hosts), job.layout)
    return write_into(topology, measured, record, loads=loads).remarks


def test_costs_and_capacities_are_what_is_true_of_the_machine(lab_topology: Topology, invented: JobMaker) -> None:
    job = invented(lab_topology)
    for node in lab_topology.machine.tree.walk():
        node.up_bytes_per_s = None
    job.layout = layout_of(lab_topology)
    assert written(lab_topology, job) == []
    for level in lab_topology.machine.levels:
        truth = TRUTH[level.name]
        assert level.source == "calibrated"
        assert level.latency_s == pytest.approx(truth.latency_s, rel=0.02)
        assert level.overhead_s == pytest.approx(truth.overhead_s, rel=0.02)
        assert level.stream_bytes_per_s == pytest.approx(truth.stream, rel=0.02)
    for node in lab_topology.machine.tree.walk():
        expected = {"leaf": 6.25e6, "node": 12.5e6, None: None}[node.level]
        assert node.up_bytes_per_s == (pytest.approx(expected, rel=0.03) if expected else None)
    memory = lab_topology.machine.memory
    assert memory is not None
    assert memory.copy_bytes_per_s == pytest.approx(8e9, rel=0.02)
    assert memory.reduce_bytes_per_s == pytest.approx(5e9, rel=0.02)


def test_the_file_fits_the_schema_and_is_read_back_unchanged(lab_topology: Topology, invented: JobMaker) -> None:
    written(lab_topology, invented(lab_topology))
    document = lab_topology.to_json()
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(document)))
    assert parse(json.dumps(document)) == lab_topology
    record = document["machine"]["calibration"]
    assert (record["mpi"], record["ranks"], record["hosts"]) == ("MPICH 5.0.2", 16, 8)
    assert set(record["versions"]) == {"palmette", "system"}
    leaf = record["levels"]["leaf"]
    assert 0 < leaf["latency_error"] < 0.05 and leaf["pairs"] == 1 and leaf["samples"] >= 30
    assert leaf["gap_s"] == pytest.approx(30e-6, rel=0.5)
    shared = leaf["shared"][0]
    assert shared["filled"] and [k for k, _ in shared["flows"]] == [1, 2, 4, 6]
    assert shared["both_ways_bytes_per_s"] == pytest.approx(2 * 6.25e6, rel=0.05)


def test_a_known_capacity_that_agrees_stays_as_it_is(lab_topology: Topology, invented: JobMaker) -> None:
    before = [node.up_bytes_per_s for node in lab_topology.machine.tree.walk()]
    assert written(lab_topology, invented(lab_topology)) == []
    assert [node.up_bytes_per_s for node in lab_topology.machine.tree.walk()] == before


def test_a_capacity_that_is_wrong_is_corrected_and_told(lab_topology: Topology, invented: JobMaker) -> None:
    job = invented(lab_topology)
    for leaf in ("leaf0", "leaf1", "leaf2"):
        job.capacity[leaf] = 3e6
    remarks = written(lab_topology, job)
    assert len(remarks) == 1 and "3 edges like leaf0's: known as 6.25 MB/s, measured 3" in remarks[0]
    assert all(leaf.up_bytes_per_s == pytest.approx(3e6, rel=0.03) for leaf in lab_topology.machine.tree.children)


def test_with_load_what_lacks_is_other_traffic(lab_topology: Topology, invented: JobMaker) -> None:
    job = invented(lab_topology)
    for leaf in ("leaf0", "leaf1", "leaf2"):
        job.capacity[leaf] = 3e6
    assert written(lab_topology, job, loads=True) == []
    leaves = lab_topology.machine.tree.children
    assert all(leaf.up_bytes_per_s == 6.25e6 for leaf in leaves)
    assert all(leaf.load == pytest.approx(0.52, abs=0.02) for leaf in leaves)
    assert parse(json.dumps(lab_topology.to_json())) == lab_topology
    written(lab_topology, invented(lab_topology), loads=True)
    assert all(leaf.load is None for leaf in lab_topology.machine.tree.children)


def test_what_was_not_measured_is_kept(lab_topology: Topology, invented: JobMaker) -> None:
    levels = {level.name: level for level in lab_topology.machine.levels}
    levels["leaf"].latency_s, levels["leaf"].source = 7e-3, "given"
    old = Calibration(
        "2026-01-01T00:00:00Z", "MPICH 4", {"palmette": "0"}, 4, 4, {"leaf": LevelFit(samples=5, pairs=1)}
    )
    lab_topology.machine.calibration = old
    written(lab_topology, invented(lab_topology, ["h0", "h0", "h1", "h1", "h2"]))
    assert (levels["leaf"].latency_s, levels["leaf"].source, levels["leaf"].overhead_s) == (7e-3, "given", None)
    assert levels["node"].source == "calibrated"
    record = lab_topology.machine.calibration
    assert record is not None and record.levels["leaf"].samples == 5 and record.ranks == 5


def test_ranks_that_no_level_tells_apart_have_costs_of_their_own(invented: JobMaker) -> None:
    topology = discover([("synthetic", "2node:1core")])
    written(topology, invented(topology, ["h0", "h0", "h1", "h1"]))
    costs = topology.machine.same_host
    assert costs is not None and costs.latency_s == pytest.approx(1e-6, rel=0.02)
    assert parse(json.dumps(topology.to_json())) == topology


def test_overheads_never_exceed_the_latency_that_they_are_part_of(lab_topology: Topology, invented: JobMaker) -> None:
    job = invented(lab_topology)
    job.costs["core"].overhead_s = 5e-6
    written(lab_topology, job)
    core = lab_topology.machine.levels[-1]
    assert core.latency_s is not None and core.overhead_s == pytest.approx(core.latency_s / 2, rel=1e-3)
    record = lab_topology.machine.calibration
    assert record is not None and record.levels["core"].receive_overhead_s == pytest.approx(6e-6, rel=0.02)
    job.costs["core"].overhead_s = 0.5e-6


def test_a_quiet_machine_is_done_after_the_fewest_rounds(lab_topology: Topology, invented: JobMaker) -> None:
    measured = calibrated(invented(lab_topology, noise=0.001), Effort(0.05, 60))
    assert measured.rounds == MIN_REPETITIONS
    assert len(measured.sure) == len(measured.steps)
    assert notes(measured) == []


def test_a_noisy_machine_is_measured_until_it_is_sure_or_the_time_is_up(
    lab_topology: Topology, invented: JobMaker
) -> None:
    longer = calibrated(invented(lab_topology, noise=0.3), Effort(0.05, 30))
    assert longer.rounds > MIN_REPETITIONS
    assert len(longer.sure) == len(longer.steps)
    cut = calibrated(invented(lab_topology, noise=0.5), Effort(0.0001, 0.3))
    assert cut.seconds < 5
    assert "not within" in notes(cut)[-1]


def test_only_with_processors_of_their_own_pairs_are_measured_at_once(invented: JobMaker) -> None:
    topology = discover([("synthetic", "8node:2core")])
    for at_once, most in ((True, MOST_PAIRS), (False, 1)):
        job = invented(topology)
        measured = plan_steps(job.layout, Effort(at_once=at_once))
        measured.levels[0].shared = ()
        measured.node_memory = None
        measure(measured, job)
        assert job.busiest == most


def test_the_number_of_experiments_grows_with_the_levels_and_not_with_the_ranks(invented: JobMaker) -> None:
    asked = []
    for spec in ("2leaf@1GB/s:4node@2GB/s:8core", "8leaf@1GB/s:16node@2GB/s:8core"):
        job = invented(discover([("synthetic", spec)]), noise=0.001)
        calibrated(job, Effort(0.05, 60))
        asked.append(sum(job.asked.values()))
    assert asked[1] <= 1.3 * asked[0]


def test_inside_of_a_node_flows_and_copies_are_seen_to_share_its_memory(invented: JobMaker) -> None:
    topology = discover([("synthetic", "2node@1GB/s:2socket:4core")])
    job = invented(topology)
    job.channels = 6e9
    job.costs["socket"] = Costs(3e-6, 0.5e-6, 3e9)
    measured = calibrated(job)
    record = calibration_of(measured, job_line([host.name for host in job.layout.nodes]), job.layout)
    assert write_into(topology, measured, record).remarks == []
    (socket,), (core,) = record.levels["socket"].shared, record.levels["core"].shared
    assert socket.edge in ("h0", "h1") and core.edge in ("h0", "h1")
    assert [k for k, _ in socket.flows] == [1, 2, 4]
    assert socket.filled and socket.bytes_per_s == pytest.approx(6e9, rel=0.03)
    assert core.filled and core.bytes_per_s == pytest.approx(6e9, rel=0.03)
    levels = {level.name: level for level in topology.machine.levels}
    assert levels["socket"].together_bytes_per_s == pytest.approx(socket.bytes_per_s, rel=1e-3)
    assert levels["core"].together_bytes_per_s == pytest.approx(core.bytes_per_s, rel=1e-3)
    assert levels["node"].together_bytes_per_s is None
    assert record.memory_shared is not None and record.memory_shared.filled
    assert record.memory_shared.bytes_per_s == pytest.approx(6e9, rel=0.03)
    assert [k for k, _ in record.memory_shared.flows] == [1, 2, 4, 8]
    assert "8 ranks at once copy" in (node_memory_line(measured) or "")
    document = topology.to_json()
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(document)))
    assert parse(json.dumps(document)) == topology


def test_on_two_ranks_a_node_memory_is_shared_by_both_and_no_flows_are_compared(invented: JobMaker) -> None:
    topology = discover([("synthetic", "2node@1GB/s:2core")])
    job = invented(topology)
    measured = calibrated(job)
    record = calibration_of(measured, job_line([host.name for host in job.layout.nodes]), job.layout)
    assert record.levels["core"].shared == []
    assert record.memory_shared is not None and not record.memory_shared.filled
    assert [k for k, _ in record.memory_shared.flows] == [1, 2]


def test_a_rank_a_node_shares_no_memory(invented: JobMaker) -> None:
    measured = calibrated(invented(discover([("synthetic", "2node@1GB/s:1core")])))
    assert measured.node_memory is None
    assert node_memory_line(measured) is None


def test_a_job_of_one_rank_is_refused(lab_topology: Topology, invented: JobMaker) -> None:
    with pytest.raises(CalibrateError, match="a job of 1 rank has no peer to send to"):
        plan_steps(invented(lab_topology, ["h0"]).layout, Effort())


def test_the_table_fits_80_columns_and_json_has_no_infinities(
    lab_topology: Topology, invented: JobMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    job = invented(lab_topology)
    measured = calibrated(job)
    record = calibration_of(measured, job_line(["h"] * 16), job.layout)
    remarks = write_into(lab_topology, measured, record).remarks
    lines = level_lines(measured)
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[1:]] == ["leaf", "node", "core"]
    json.dumps(to_json(measured, lab_topology, remarks, "t.json"), allow_nan=False)
    assert "3 levels by" in plan_line(measured) and "within 5.0%" in plan_line(measured)


def test_the_error_is_half_of_the_95_percent_interval_of_the_mean() -> None:
    # Student's t for 3 degrees of freedom is 3.182; the standard deviation of these is 1.29.
    assert relative_error([9.0, 10.0, 11.0, 8.0]) == pytest.approx(3.1824 * 1.29099 / 2 / 9.5, rel=1e-4)
    assert relative_error([1.0]) == math.inf
