"""The extension palmette._core as Python sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palmette import _core
from palmette.topology.placement import hosts_of_ranks

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


@pytest.fixture
def machine() -> _core.Machine:
    return _core.Machine.synthetic(LAB)


def test_a_machine_reads_back_from_text_dict_and_file(machine: _core.Machine, tmp_path: Path) -> None:
    document = machine.to_json()
    assert _core.Machine.from_json(document).to_json() == document
    assert _core.Machine.from_json(json.dumps({"version": 1, "machine": document})).to_json() == document
    path = tmp_path / "topology.json"
    path.write_text(json.dumps({"version": 1, "machine": document}), encoding="utf-8")
    assert _core.Machine.from_file(path).hosts == [f"h{i}" for i in range(8)]
    assert machine.levels == ["leaf", "node", "core"]
    assert machine.slots == [2] * 8
    assert machine.total_slots == 16
    assert machine.find_host("h3.cluster.example") == 3
    assert machine.find_host("n9") is None


def test_errors_are_value_errors_that_name_the_place(machine: _core.Machine, tmp_path: Path) -> None:
    with pytest.raises(_core.Error, match="'x' must begin with a count"):
        _core.Machine.synthetic("x")
    with pytest.raises(ValueError, match="4 slots"):
        _core.Job(_core.Machine.synthetic("4node"), "block", 5)
    broken = tmp_path / "broken.json"
    broken.write_text('{"machine": ', encoding="utf-8")
    with pytest.raises(_core.Error, match=r"broken\.json: line 1, column 13: expected a value"):
        _core.Machine.from_file(broken)
    with pytest.raises(_core.Error, match="rank 1 sits on host 'n9'"):
        _core.Job.on_hosts(machine, ["h0", "n9"])
    job = _core.Job(machine)
    for call in (
        lambda: job.rank_at(16),
        lambda: job.position_of(-1),
        lambda: job.host_of(16),
        lambda: job.levels[0].first(3),
    ):
        with pytest.raises(_core.Error, match="is outside of 0 to"):
            call()


@pytest.mark.parametrize("form", ["block", "cyclic", "random:1", "random:77", "hosts=h3,h0,h3,h7"])
def test_both_implementations_of_placements_agree(machine: _core.Machine, form: str) -> None:
    slots = list(zip(machine.hosts, machine.slots, strict=True))
    assert _core.Job(machine, form).hosts == hosts_of_ranks(slots, form)


def test_a_job_knows_its_order_and_levels(machine: _core.Machine) -> None:
    job = _core.Job(machine, "cyclic", 16)
    assert len(job) == job.size == 16
    assert [job.rank_at(position) for position in range(4)] == [0, 8, 1, 9]
    assert job.position_of(8) == 1
    assert [level.name for level in job.levels] == ["leaf", "node"]
    leaf = job.level("leaf")
    assert leaf is not None
    assert leaf.sizes == [6, 6, 4]
    assert leaf.names == ["leaf0", "leaf1", "leaf2"]
    assert leaf.up_bytes_per_s == [6.25e6] * 3
    assert leaf.group_of(15) == 2
    assert job.level("socket") is None
    again = _core.Job.from_json(job.to_json())
    assert again.to_json() == job.to_json()
    assert job.restricted_to([0, 8, 3]).hosts == ["h0", "h0", "h3"]


def test_a_regular_job_of_a_million_ranks_takes_no_tables() -> None:
    job = _core.Job.regular([("leaf", 1024), ("node", 64), ("core", 16)], cyclic=True)
    assert job.size == 1 << 20
    assert job.position_of(65536) == 1
    program = _core.make_program(job, 65536, "gather", "by_topology")
    assert len(program) == 1
    assert program.text() == "0 send to 0 tag 0: send[1]\n"
    assert program.size_bytes < 200


def test_a_plan_is_verified_counted_and_told(machine: _core.Machine) -> None:
    job = _core.Job(machine, "random:1")
    plan = _core.Plan(job, "gather", "by_topology:node=linear,top=linear", root=3, block_bytes=1000)
    assert plan.verify() is None
    assert (plan.collective, plan.root, plan.block_bytes, plan.order) == ("gather", 3, 1000, "topology")
    counted = plan.count()
    assert counted.messages == 15
    assert [level.level for level in counted.levels] == ["leaf", "node"]
    assert counted.levels[1].messages == 7
    assert plan.count(2000).bytes == 2 * counted.bytes
    assert plan.count([1] * 16).bytes == counted.bytes // 1000
    messages = plan.messages()
    assert len(messages) == 15
    last = messages[-1]
    assert last.receiver == 3
    assert plan.bytes_of(last) == last.block_count * 1000
    owners = {
        plan.owner_of(block)
        for m in messages
        if m.receiver == 3
        for first, n in m.blocks
        for block in range(first, first + n)
    }
    assert owners == set(range(16)) - {3}
    document = plan.to_json()
    assert document["format"] == "palmette-plan"
    assert len(document["programs"]) == 16
    assert plan.program(3).to_json() == document["programs"][3]
    assert plan.text(3) == plan.program(3).text()


def test_counts_need_sizes_that_fit(machine: _core.Machine) -> None:
    plan = _core.Plan(_core.Job(machine), "allgather", "ring")
    with pytest.raises(_core.Error, match="made without block_bytes"):
        plan.count()
    with pytest.raises(_core.Error, match="expected one, or one for each of 16 blocks, found 2"):
        plan.count([1, 2])
    with pytest.raises(_core.Error, match="can't have -1 bytes"):
        plan.count(-1)


def test_the_registry_tells_what_each_algorithm_is() -> None:
    rows = _core.algorithms()
    assert {row.collective for row in rows} <= set(_core.collectives())
    assert {"gather", "scatter", "allgather"} <= {row.collective for row in rows}
    for row in rows:
        assert row.sentence
        assert row.source
        assert row.keys
        assert row.preconditions
    job = _core.Job.flat(6)
    assert _core.refusal(job, "allgather", "bruck") is None
    refusal = _core.refusal(job, "allgather", "recursive_doubling")
    assert refusal is not None
    assert "power of two participants, not 6" in refusal
    with pytest.raises(_core.Error, match="algorithm 'tree' is unknown for gather: there are linear"):
        _core.refusal(job, "gather", "tree")
    with pytest.raises(_core.Error, match="collective 'broadcast' is unknown"):
        _core.make_program(job, 0, "broadcast", "linear")


def test_what_is_known_of_collectives() -> None:
    assert [name for name in _core.collectives() if _core.is_rooted(name)] == ["gather", "scatter", "bcast", "reduce"]
    reductions = {name for name in _core.collectives() if _core.is_reduction(name)}
    assert reductions == {"reduce", "allreduce", "reduce_scatter", "scan", "exscan"}
    spaces = {name: _core.space_of(name) for name in ("gather", "alltoall", "allreduce", "barrier")}
    assert spaces == {"gather": "per_rank", "alltoall": "pairs", "allreduce": "cut", "barrier": "none"}


def test_sizes_of_a_reduction_are_whole_elements(machine: _core.Machine) -> None:
    job = _core.Job(machine)
    with pytest.raises(_core.Error, match="10 bytes are no whole number of elements of 4 bytes"):
        _core.refusal(job, "reduce", "linear", block_bytes=10, element_bytes=4)
    with pytest.raises(_core.Error, match="an element can't have 0 bytes"):
        _core.refusal(job, "reduce", "linear", element_bytes=0)


def test_the_bound_names_what_sets_it(machine: _core.Machine) -> None:
    bound = _core.bound(_core.Job(machine), "gather", 65536, root=0)
    assert bound.kind == "link"
    assert (bound.level, bound.group_name, bound.outwards) == ("leaf", "leaf0", False)
    assert bound.bytes == 10 * 65536
    assert bound.seconds == pytest.approx(10 * 65536 / 6.25e6)
    assert _core.bound(_core.Job.flat(4), "gather", 65536).kind == "none"
    together = _core.bound(_core.Job(machine), "allreduce", 262144)
    assert (together.kind, together.level, together.bytes) == ("links", "leaf", 4 * 262144)
    assert together.seconds == pytest.approx(4 * 262144 / (3 * 6.25e6))
    pairs = _core.bound(_core.Job(_core.Machine.synthetic("2node@1B/s")), "alltoall", [9, 7, 3, 9])
    assert (pairs.seconds, pairs.bytes) == (7, 7)
    with pytest.raises(_core.Error, match="one for each of 256 pairs of ranks"):
        _core.bound(_core.Job(machine), "alltoall", [1, 2])


def test_the_table_chooses_and_reads_back(machine: _core.Machine) -> None:
    table = _core.Table.built_in()
    job = _core.Job(machine)
    choice = table.choose("allgather", job, block_bytes=65536)
    assert choice.algorithm is not None
    assert _core.refusal(job, "allgather", choice.algorithm) is None
    assert _core.Table.from_json(table.to_json()).to_json() == table.to_json()
    assert len(table.rows) == len(table.to_json()["rows"])
    assert _core.is_scattered(_core.Job(machine, "cyclic"))
    assert not _core.is_scattered(job)
