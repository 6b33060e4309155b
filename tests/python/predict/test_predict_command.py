"""`palmette plan --predict`: tables, curves, JSON, what figures rest on, errors."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core

Call = Callable[..., Any]
LAB = "3leaf@50Mbit/s~200us:3+3+2node@100Mbit/s~100us:2core"


def test_a_table_names_the_fastest_its_multiple_of_the_bound_and_the_share_of_each_level(palmette: Call) -> None:
    result = palmette("plan", "--predict", "gather", "--machine", LAB, "--sizes", "64K")
    assert result.status == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == "gather, 16 ranks on 8 nodes, 3 leaves, placed block, root 0"
    assert max(map(len, lines)) <= 80
    heading = next(line for line in lines if "x bound" in line)
    assert heading.split()[-3:] == ["bound", "leaf", "node"], "what is next to nothing has no column"
    stars = [line for line in lines if " *" in line]
    assert len(stars) == 1
    assert any(line.startswith("given by the topology: latency of leaf 200 us") for line in lines)
    assert any(line.startswith("assumed, `palmette calibrate` measures them:") for line in lines)


def test_json_parts_add_up_and_stay_above_the_bound(palmette: Call) -> None:
    result = palmette(
        "plan", "--predict", "all", "--machine", LAB, "--sizes", "1K,64K", "--placement", "random:1", "--json"
    )
    assert result.status == 0, result.err
    answer = json.loads(result.out)
    assert {cell["collective"] for cell in answer["cells"]} == set(_core.collectives())
    for cell in answer["cells"]:
        parts = sum(part["latency_s"] + part["transfer_s"] + part["overhead_s"] for part in cell["levels"])
        assert parts + cell["copy_s"] + cell["reduce_s"] == pytest.approx(cell["seconds"], rel=1e-6)
        assert sum(stage["seconds"] for stage in cell["stages"]) == pytest.approx(cell["seconds"], rel=1e-6)
        assert cell["multiple"] is None or cell["multiple"] >= 0.999999
    bests = [cell for cell in answer["cells"] if cell["best"]]
    assert len(bests) == 2 * 10 + 1, "one for each collective and size; a barrier has no size"


def test_other_forms_are_predicted_with_equal_blocks_and_each_collective_once(palmette: Call) -> None:
    words = ("--machine", LAB, "--sizes", "1K", "--json")
    asked = palmette("plan", "--predict", "reduce_scatter_block,reduce_scatter,gatherv", *words)
    assert asked.status == 0, asked.err
    assert json.loads(asked.out) == json.loads(palmette("plan", "--predict", "reduce_scatter,gather", *words).out)
    assert asked.err.splitlines()[:2] == [
        "reduce_scatter_block: as reduce_scatter, all blocks of equal length",
        "gatherv: as gather, all blocks of equal length",
    ]


def test_a_picture_has_a_curve_for_each_algorithm_and_the_bound(palmette: Call, tmp_path: Path) -> None:
    path = tmp_path / "times.svg"
    result = palmette("plan", "--predict", "bcast", "--machine", LAB, "--svg", path)
    assert result.status == 0, result.err
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    curves = list(root.iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(curves) == 1 + len([spec for spec in _core.candidates("bcast") if spec != "shared"])
    assert f"wrote {path}" in result.out


def test_named_algorithms_are_predicted_alone(palmette: Call) -> None:
    result = palmette("plan", "--predict", "gather,bcast", "--machine", LAB, "--algorithm", "k_nomial:radix=4",
                      "--algorithm", "bine", "--sizes", "1K", "--json")  # fmt: skip
    assert result.status == 0, result.err
    found = {(cell["collective"], cell["algorithm"]) for cell in json.loads(result.out)["cells"]}
    assert found == {(c, a) for c in ("gather", "bcast") for a in ("k_nomial:radix=4", "bine")}


def test_a_plan_in_hand_is_predicted_too() -> None:
    job = _core.Job(_core.Machine.synthetic(LAB))
    costs = _core.Costs.of(job)
    plan = _core.Plan(job, "allgather", "ring", 0, 4096)
    found = _core.predict(plan, 4096, costs)
    assert found.seconds == _core.predict_algorithm(job, "allgather", "ring", costs, block_bytes=4096).seconds
    assert found.levels[0].contention >= 0.999999


def test_the_formula_is_near_the_play_where_nothing_overlaps() -> None:
    job = _core.Job(_core.Machine.synthetic("16node@1GB/s~10us"))
    costs = _core.Costs.of(job)
    played = _core.predict_algorithm(job, "allgather", "ring", costs, block_bytes=60000).seconds
    formula = _core.estimate(job, "allgather", "ring", costs, block_bytes=60000)
    assert formula == pytest.approx(played, rel=0.05)
    assert _core.estimate(job, "allgather", "neighbor_exchange", costs, block_bytes=1) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gather"], "no machine given; name one with --machine or --topology"),
        (["gather", "--machine", LAB, "--topology", "x.json"], "both name a machine"),
        (["gossip", "--machine", LAB], "'gossip' is no collective; there are"),
        (["gather", "--machine", LAB, "--sizes", "big"], "big"),
        (["gather", "--machine", LAB, "--root", "16"], "root 16 is outside of a job of 16 ranks"),
        (["gather", "--machine", LAB, "--algorithm", "ring"], "algorithm 'ring' belongs to none of gather"),
        (["gather", "--machine", LAB, "--algorithm", "linear:x=1"], "key 'x' is unknown"),
        (
            ["allgather", "--machine", "100leaf:100node:4core", "--algorithm", "ring", "--sizes", "1"],
            "too many to simulate",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(palmette: Call, arguments: list[str], said: str) -> None:
    result = palmette("plan", "--predict", *arguments)
    assert result.status == 2
    assert said in result.err
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith("palmette plan: ")
