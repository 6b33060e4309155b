"""`palmette plan`: stages, counts, proof, picture, list, errors."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core

Call = Callable[..., Any]
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def test_stages_are_told_time_by_time_with_the_level_that_is_crossed(palmette: Call) -> None:
    result = palmette("plan", "gather", "--machine", LAB, "--placement", "random:1", "--root", "3",
                      "--algorithm", "by_topology:node=linear,leaf=linear,top=linear")  # fmt: skip
    assert result.status == 0
    assert result.out.splitlines() == [
        "gather, algorithm by_topology:node=linear,leaf=linear,top=linear",
        "16 ranks on 8 nodes, 3 leaves, placed random:1, root 3 on h3, 1K a block",
        "",
        "time 1",
        "  gather to node leader, inside nodes: 8 messages of 1K",
        "    1→2  4→3  5→8  9→14  10→6  11→13  12→0  15→7",
        "time 2",
        "  gather to leaf leader, between nodes: 5 messages of 2K",
        "    0→7  2→3  6→8  13→3  14→7",
        "time 3",
        "  gather to top leader, between leaves: 2 messages of 4K to 6K",
        "    7→3: blocks of 0 7 9 12 14-15",
        "    8→3: blocks of 5-6 8 10",
    ]


TREE = "2pod:4leaf@50Mbit/s:4node@100Mbit/s:2socket:2core"


def algorithms(collective: str, machine: str, placement: str) -> list[str]:
    """Return the names of the algorithms that serve a job."""
    job = _core.Job(_core.Machine.synthetic(machine), placement)
    names = [row.name for row in _core.algorithms() if row.collective == collective]
    return [
        name
        for name in names
        if _core.refusal(job, collective, name, block_bytes=0 if collective == "barrier" else 1024, shared_memory=True)
        is None
    ]


@pytest.mark.parametrize("collective", _core.collectives())
@pytest.mark.parametrize("options", [(), ("--count", "--verify"), ("--rank", "5"), ("--all",)])
def test_everything_fits_in_80_columns(palmette: Call, collective: str, options: tuple[str, ...]) -> None:
    for algorithm in algorithms(collective, TREE, "random:5"):
        result = palmette("plan", collective, "--machine", TREE, "--placement", "random:5",
                          "--algorithm", algorithm, *options)  # fmt: skip
        assert result.status == 0, result.err
        # A rank's steps are data, one line each whatever their length.
        lines = result.out.splitlines()[: 4 if "--rank" in options else None]
        assert not [line for line in lines if len(line) > 80]


def test_a_long_plan_is_folded_and_all_shows_it_whole(palmette: Call) -> None:
    call = ("plan", "allgather", "--machine", "12leaf:5+3+7node:3core", "--algorithm", "ring")
    folded, whole = palmette(*call).out, palmette(*call, "--all").out
    assert "alike but for partners and blocks" in folded
    assert "like these left out; --all shows them" in folded
    assert len(folded.splitlines()) < 250
    assert "left out" not in whole
    plan = _core.Plan(_core.Job(_core.Machine.synthetic("12leaf:5+3+7node:3core")), "allgather", "ring", 0, 1024)
    # Every message is there: a line of its own, or a pair with the number of times it stands there.
    pairs = re.findall(r"(\d+)→(\d+)(?:×(\d+))?", whole)
    assert sum(int(times or 1) for _, _, times in pairs) == len(plan.messages())


def test_counts_name_the_busiest_link_and_the_bound(palmette: Call) -> None:
    call = ("plan", "gather", "--machine", LAB, "--size", "64K", "--algorithm", "linear", "--count")
    out = palmette(*call).out
    assert "busiest link: into leaf0, 640K in 10 messages, 104.9 ms at its capacity" in out
    assert "physical bound: 104.9 ms; the busiest link takes 1 times that" in out
    count = json.loads(palmette(*call, "--json").out)["count"]
    assert count["messages"] == 15
    assert count["busiest"] == {"level": "leaf", "group": "leaf0", "direction": "in", "messages": 10, "bytes": 655360,
                                "seconds": pytest.approx(0.1048576)}  # fmt: skip
    leaf = next(level for level in count["levels"] if level["level"] == "leaf")
    assert [link["bytes_out"] for link in leaf["links"]] == [0, 6 * 65536, 4 * 65536]


def test_a_message_of_an_alltoall_says_whose_blocks_go_to_whom(palmette: Call) -> None:
    if "bruck" not in algorithms("alltoall", "4node", "block"):
        pytest.skip("no algorithm `bruck` of alltoall in this build")
    out = palmette("plan", "alltoall", "--machine", "4node", "--algorithm", "bruck", "--all").out
    assert "4 ranks on 4 nodes, placed block, 1K a pair" in out
    assert re.search(r"0→1: 2 blocks of [\d -]+ for [\d -]+\n", out)


def plans_with(kind: str) -> list[tuple[str, str]]:
    """Return collective and algorithm of the plans on one node with steps of a kind."""
    job = _core.Job(_core.Machine.synthetic("1node:4core"))
    found = []
    for collective in _core.collectives():
        for name in algorithms(collective, "1node:4core", "block"):
            size = 0 if collective == "barrier" else 1024
            plan = _core.Plan(job, collective, name, block_bytes=size, shared_memory=True)
            if plan.step_counts.get(kind, 0):
                found.append((collective, name))
    return found


def test_pulls_are_told_counted_and_drawn_dashed(palmette: Call, tmp_path: Path) -> None:
    found = plans_with("pull")
    if not found:
        pytest.skip("no algorithm of this build reads in the memory of others by default")
    for collective, name in found:
        call = ("plan", collective, "--machine", "1node:4core", "--algorithm", name)
        assert re.search(r"inside nodes: \d+ pulls?|between cores: \d+ pulls?", palmette(*call).out)
        count = json.loads(palmette(*call, "--count", "--json").out)["count"]
        pulls = count["steps"].get("pull", 0) + count["steps"].get("pull_reduce", 0)
        assert f"read from other ranks' memory: {_core.format_size(count['pulled_bytes'])} in {pulls} pull" in palmette(
            *call, "--count"
        ).out.replace(",", "")
        picture = tmp_path / "plan.svg"
        assert palmette(*call, "--svg", picture).status == 0
        drawn = picture.read_text(encoding="utf-8").count('stroke-dasharray="5 3"')
        assert drawn == pulls + 1  # and one in the legend
        without = palmette(*call, "--no-shared")  # some can't do without, and say so
        assert " pull" not in (without.out if without.status == 0 else "")
        assert without.err.count("\n") == (without.status == 2)


def test_steps_that_combine_are_counted(palmette: Call) -> None:
    found = plans_with("reduce")
    if not found:
        pytest.skip("no algorithm of this build reduces")
    for collective, name in found:
        call = ("plan", collective, "--machine", "1node:4core", "--algorithm", name, "--count")
        steps = json.loads(palmette(*call, "--json").out)["count"]["steps"]
        combining = steps.get("reduce", 0) + steps.get("pull_reduce", 0)
        assert re.search(rf"combined: \S+ in {combining} steps?\n", palmette(*call).out)


def test_a_size_that_cuts_elements_is_refused(palmette: Call) -> None:
    if not algorithms("allreduce", "4node", "block"):
        pytest.skip("no algorithm of allreduce in this build")
    name = algorithms("allreduce", "4node", "block")[0]
    result = palmette("plan", "allreduce", "--machine", "4node", "--algorithm", name, "--size", "10")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "10 bytes are no whole number of elements of 4 bytes" in result.err


def test_counts_without_capacities_say_so(palmette: Call) -> None:
    out = palmette("plan", "gather", "--machine", "2leaf:2node", "--algorithm", "linear", "--count").out
    assert "capacities are not known" in out


def test_verify_says_that_the_plan_is_right(palmette: Call) -> None:
    result = palmette("plan", "allgather", "--machine", LAB, "--algorithm", "bruck:radix=3", "--verify")
    assert result.status == 0
    assert "verified: right" in result.out
    document = json.loads(
        palmette("plan", "allgather", "--machine", LAB, "--algorithm", "ring", "--verify", "--json").out
    )
    assert document["verified"] is True
    assert document["complaint"] is None


def test_a_wrong_plan_is_told_with_status_1(palmette: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(_core.Plan):
        def verify(self) -> str | None:
            return "rank 3, step 1 (send, top): reads scratch block 2 before anything is there"

    monkeypatch.setattr(_core, "Plan", Wrong)
    result = palmette("plan", "gather", "--machine", LAB, "--algorithm", "linear", "--verify")
    assert result.status == 1
    assert "wrong: rank 3, step 1 (send, top)" in result.out


def test_json_is_the_plan_with_its_job(palmette: Call) -> None:
    document = json.loads(palmette("plan", "scatter", "--machine", LAB, "--algorithm", "k_nomial", "--json").out)
    assert document["format"] == "palmette-plan"
    assert document["algorithm"] == "k_nomial"
    assert len(document["programs"]) == 16
    assert _core.Job.from_json(document["job"]).size == 16


def test_without_an_algorithm_the_table_chooses(
    palmette: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = palmette("plan", "allgather", "--machine", LAB, "--size", "64").out
    assert "chosen by the built-in table, row " in out
    table = tmp_path / "table.json"
    rows = [{"function": "allgather", "algorithm": "neighbor_exchange", "why": "a test"}]
    table.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    monkeypatch.setenv("PALMETTE_TABLE", str(table))
    out = palmette("plan", "allgather", "--machine", LAB).out
    assert out.startswith("allgather, algorithm neighbor_exchange\n")


def test_a_call_that_is_left_to_the_mpi_asks_for_an_algorithm(
    palmette: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.json"
    rows = [{"function": "gather", "algorithm": "mpi"}]
    table.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    monkeypatch.setenv("PALMETTE_TABLE", str(table))
    result = palmette("plan", "gather", "--machine", "1node:4core")
    assert result.status == 2
    assert re.fullmatch(rf"palmette plan: the {table} leaves this call to the MPI \(.*\); name one .*\n", result.err), (
        result.err
    )


def test_one_rank_of_a_million_needs_no_plan_of_the_others(palmette: Call) -> None:
    result = palmette(
        "plan", "gather", "--machine", "1024leaf:64node:16core", "--algorithm", "by_topology", "--rank", "17"
    )
    assert result.status == 0
    assert result.out.endswith("0 send to 16 tag 0: send[17]\n")
    too_large = palmette("plan", "allgather", "--machine", "16leaf:16node:16core", "--algorithm", "ring")
    assert too_large.status == 2
    assert "show one rank with --rank" in too_large.err


def test_the_list_has_every_algorithm_with_source_and_preconditions(palmette: Call) -> None:
    out = palmette("plan", "--list").out
    assert max(map(len, out.splitlines())) <= 80
    for row in _core.algorithms():
        assert f"{row.collective} {row.name}\n" in out
    listed = json.loads(palmette("plan", "allgather", "--list", "--json").out)
    assert [row["name"] for row in listed] == [row.name for row in _core.algorithms() if row.collective == "allgather"]
    assert all(row["source"] and row["preconditions"] for row in listed)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "no collective given, it is one of gather, scatter, allgather"),
        (("gather",), "no machine given; name one with --machine or --topology"),
        (("gather", "--machine", "4node", "--topology", "x.json"), "leave one of them out"),
        (("gather", "--topology", "missing.json"), "missing.json: can't be read (No such file"),
        (("gather", "--machine", "node4"), "'node4' must begin with a count"),
        (("gather", "--machine", "4node", "--placement", "spread"), "placement 'spread' is neither block"),
        (("gather", "--machine", "4node", "--ranks", "9"), "9 ranks don't fit"),
        (("gather", "--machine", "4node", "--root", "4", "--algorithm", "linear"),
         "root 4 is outside of a job of 4 ranks"),
        (("gather", "--machine", "4node", "--size", "lots"), "'lots' is not a size"),
        (("gather", "--machine", "4node", "--algorithm", "bruck"), "algorithm 'bruck' is unknown for gather"),
        (("gather", "--machine", "4node", "--algorithm", "k_nomial:radix=1"),
         "radix must be a whole number of at least 2"),
        (("allgather", "--machine", "6node", "--algorithm", "recursive_doubling"),
         "needs a power of two participants, not 6"),
        (("gather", "--machine", "4node", "--algorithm", "linear", "--rank", "7"),
         "rank 7 is outside of a job of 4 ranks"),
        (("gather", "--machine", "300node", "--algorithm", "linear", "--svg", "x.svg"),
         "300 ranks don't fit in a picture"),
        (("gather", "--machine", "4node", "--algorithm", "linear", "--svg", "no/dir/x.svg"),
         "can't write no/dir/x.svg"),
        (("broadcast", "--machine", "4node"),
         "'broadcast' is no collective (did you mean bcast?); there are gather, scatter, allgather, bcast"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_line_and_status_2(
    palmette: Call, arguments: tuple[str, ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = palmette("plan", *arguments)
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith("palmette plan: ")
    assert result.err.count("\n") == 1
    assert expected in result.err


def test_a_topology_file_is_a_machine(palmette: Call, tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    machine = _core.Machine.synthetic(LAB).to_json()
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    call = ("plan", "gather", "--placement", "cyclic", "--algorithm", "by_topology")
    assert palmette(*call, "--topology", path).out == palmette(*call, "--machine", LAB).out


def test_the_picture_has_an_arrow_for_each_message_and_a_legend(palmette: Call, tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    result = palmette("plan", "gather", "--machine", LAB, "--algorithm", "by_topology:segment=512", "--svg", picture)
    assert result.status == 0
    tree = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    names = "{http://www.w3.org/2000/svg}"
    assert len(tree.findall(f".//{names}polygon")) == 2 * 15
    texts = [element.text or "" for element in tree.iter(f"{names}text")]
    assert "between leaves: 4 messages" in texts
    assert "inside nodes: 16 messages" in texts
    assert {"h0", "h7", "leaf0", "leaf2", "15"} <= set(texts)
    width, height = float(tree.attrib["width"]), float(tree.attrib["height"])
    for line in tree.iter(f"{names}line"):
        assert 0 <= float(line.attrib["x1"]) <= width
        assert 0 <= float(line.attrib["x2"]) <= width
        assert 0 <= float(line.attrib["y1"]) <= height
        assert 0 <= float(line.attrib["y2"]) <= height
