"""`palmette explain`: which row decides, why not another, and how to take it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.explain.decision import CollectiveCall, decide
from palmette.mpi.abi import LIBRARIES
from palmette.tune.candidates import sizes_unknown
from palmette.tune.results import CandidateTimes, Cell, CellResult
from palmette.tune.store import TuneJob, open_tunings

Palmette = Callable[..., Any]
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_names_the_row_that_decides_and_why_no_row_before(palmette: Palmette) -> None:
    result = palmette("explain", "allreduce", "64K", "--machine", LAB, "--placement", "random:1", "--mpi", "mpich")
    assert result.status == 0, result.err
    assert "ring:segment=32K" in result.out
    assert "decided by row" in result.out
    assert "rows for allreduce before it don't match (--rows shows why)" in result.out
    text = " ".join(result.out.split())
    assert "for links of which other traffic takes 30 % and more, here it is 0 %" in text
    assert "up to 3 ranks a node, links of 150 Mbit/s and less" in text
    assert "for up to 1 node" not in result.out
    assert "PALMETTE_FORCE='allreduce=" in result.out
    assert "palmette run --force allreduce=" in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    result = palmette(
        "explain", "allreduce", "64K", "--machine", LAB, "--placement", "random:1", "--mpi", "mpich", "--rows"
    )
    assert "for up to 1 node, here are 8" in result.out
    assert "for impi, the MPI is mpich" in result.out


def test_a_call_without_bytes_sends_nothing(palmette: Palmette) -> None:
    result = palmette("explain", "gather", "0", "--machine", LAB)
    assert result.status == 0, result.err
    assert result.out.splitlines()[0].endswith(": none")
    assert "nothing to move" in result.out
    assert "row" not in result.out


def test_the_json_form_has_the_same(palmette: Palmette) -> None:
    result = palmette("explain", "allreduce", "64K", "--machine", LAB, "--mpi", "mpich", "--json")
    found = json.loads(result.out)
    assert found["algorithm"] == "ring:segment=32K"
    assert found["row"]["why_not"] == ""
    assert all(look["why_not"] for look in found["passed_over"])
    # Nobody measured a latency or other traffic here; what a row asks of sizes, ranks or the MPI is known.
    unmeasured = ("here it is unknown", "of which other traffic takes")
    for look in found["passed_over"]:
        assert look["measurable"] == any(words in look["why_not"] for words in unmeasured)
    assert found["passed_over"][-1]["number"] < found["row"]["number"]
    assert found["bound_s"] > 0
    times = [one["seconds"] for one in found["predicted"]]
    assert times == sorted(times)
    assert "ring:segment=32K" in {one["spec"] for one in found["predicted"]}
    assert all(one["multiple"] > 0 for one in found["predicted"])


def test_only_limits_about_links_may_change_with_a_measurement() -> None:
    rows = [
        {"function": "gather", "min_load": 0.3, "algorithm": "linear"},
        {"function": "gather", "max_latency": "20us", "algorithm": "linear"},
        {"function": "gather", "min_nodes": 99, "algorithm": "linear"},
        {"function": "gather", "algorithm": "k_nomial"},
    ]
    table = _core.Table.from_json({"format": "palmette-table", "version": 1, "rows": rows})

    def measurable(spec: str) -> list[bool]:
        job = _core.Job(_core.Machine.synthetic(spec), "block")
        return [look[2] for look in table.match_rows("gather", job, 0, 64)]

    assert measurable("2leaf@1GB/s:4node@1GB/s") == [True, True, False, False]
    # A latency that is known, and too long.
    assert measurable("2leaf@1GB/s~50us:4node@1GB/s~40us") == [True, False, False, False]


def test_the_looks_agree_with_the_choice_everywhere() -> None:
    table = _core.Table.built_in()
    draw = random.Random(5)
    specs = (
        LAB,
        "1node:4core",
        "4node:1core",
        "40leaf:8node:2core",
        "2node:32core",
        "3leaf@50Mbit/s~5ms:3+3+2node@100Mbit/s:2core",
    )
    jobs = [_core.Job(_core.Machine.synthetic(spec), form) for spec in specs for form in ("block", "random:3")]
    functions = sorted({row.function for row in table.rows})
    for _ in range(1500):
        function, size = draw.choice(functions), draw.choice((1, 4, 8, 300, 5000, 70000, 1 << 21))
        asked = CollectiveCall(
            function, 0 if function == "barrier" else -1 if sizes_unknown(function) else size, 0, draw.choice(jobs),
            draw.choice(("", "mpich", "openmpi", "impi")), draw.random() < 0.5, draw.random() < 0.7,
            draw.random() < 0.3,
            draw.random() < 0.7,
        )  # fmt: skip
        # As select::choose_route asks: what is combined in the order of ranks is planned for ranks of which nothing is
        # known.
        by_rank = (
            asked.ordered
            and _core.is_reduction(_core.collective_of(asked.function))
            and any(asked.job.rank_at(position) != position for position in range(asked.job.size))
        )
        choice = table.choose(
            asked.function, _core.Job.flat(asked.job.size) if by_rank else asked.job, 0, asked.size_bytes,
            mpi=asked.mpi, oversubscribed=asked.oversubscribed, blocking=asked.blocking, ordered=asked.ordered,
            shared_memory=asked.shared_memory and not by_rank, compared=asked.blocking,
        )  # fmt: skip
        decision = decide(asked, table, "it")
        assert decision.algorithm == (choice.algorithm or "mpi"), asked
        if decision.row is not None:
            assert choice.reason.startswith(f"table row {decision.row.number}"), asked
        else:
            assert choice.reason.startswith("no table row fits")


def test_what_a_setting_forces_is_told(palmette: Palmette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALMETTE_FORCE", "bcast=chain")
    result = palmette("explain", "bcast", "1K", "--machine", LAB)
    assert "forced by PALMETTE_FORCE=bcast=chain" in result.out
    assert "without it: row" in result.out


def test_what_a_setting_forces_and_cannot_be_is_told(palmette: Palmette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALMETTE_FORCE", "bcast=foo")
    result = palmette("explain", "bcast", "1K", "--machine", LAB)
    assert result.status == 2
    assert "PALMETTE_FORCE=bcast=foo" in result.err
    monkeypatch.setenv("PALMETTE_FORCE", "bcast=shared")
    result = palmette("explain", "bcast", "1K", "--machine", LAB)
    reason = "PALMETTE_FORCE=bcast=shared can't serve it: the ranks are not all on one node"
    assert reason in " ".join(result.out.split())
    assert json.loads(palmette("explain", "bcast", "1K", "--machine", LAB, "--json").out)["algorithm"] == "mpi"


def test_settings_count_as_in_a_run(palmette: Palmette, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("explain", "allreduce", "64K", "--machine", "1node:4core")
    assert json.loads(palmette(*asked, "--json").out)["algorithm"].startswith("shared")
    monkeypatch.setenv("PALMETTE_SHARED", "0")
    assert "shared" not in json.loads(palmette(*asked, "--json").out)["algorithm"]
    monkeypatch.setenv("PALMETTE_ENABLE", "0")
    assert "switched off by PALMETTE_ENABLE=0" in palmette(*asked).out
    monkeypatch.delenv("PALMETTE_ENABLE")
    monkeypatch.setenv("PALMETTE_REPRODUCIBLE", "1")
    found = json.loads(palmette("explain", "allreduce", "64K", "--machine", LAB, "--json").out)
    assert found["in_rank_order"]
    # Of 16 ranks nobody knows where.
    assert found["algorithm"] == _core.rank_by_model(_core.Job.flat(16), "allreduce", 0, 65536)[0][0]
    assert found["forced_by"] == "PALMETTE_REPRODUCIBLE"


@pytest.mark.parametrize("there", [True, False])
def test_switches_count_where_their_library_is(
    palmette: Palmette, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, there: bool
) -> None:
    twin = LIBRARIES / "sharp" / "libsharp_coll.so.5"
    if not twin.is_file():
        pytest.skip(f"{twin} isn't built")
    path = tmp_path / "topology.json"
    machine = _core.Machine.synthetic("8node@1GB/s:2core").to_json()
    words = ("explain", "allreduce", "1M", "--topology", str(path), "--no-model")
    monkeypatch.setenv("PALMETTE_SHARP", str(twin) if there else "/none/libsharp_coll.so.5")
    said = []
    for reduces in (True, False):
        machine["tree"]["can_reduce"] = reduces
        path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
        said.append(palmette(*words).out)
    assert ("in_network" in said[0]) is there
    assert ("libsharp_coll is there and the switches reduce" in said[0]) is there
    assert (said[0] == said[1]) is not there


def test_only_what_can_serve_is_a_runner_up(palmette: Palmette) -> None:
    asked = ("explain", "allreduce", "64K", "--machine", LAB, "--placement", "cyclic", "--ordered")
    found = json.loads(palmette(*asked, "--json").out)
    assert found["in_rank_order"]
    assert found["predicted"] == []
    in_order = json.loads(palmette("explain", "allreduce", "64K", "--machine", LAB, "--ordered", "--json").out)
    assert in_order["predicted"]
    assert not any(one["spec"].startswith("ring") for one in in_order["predicted"])
    result = palmette("explain", "alltoallv", "1K", "--machine", LAB)
    assert "--force alltoallv=linear" in result.out


def test_what_is_taken_by_many_ranks_is_played(palmette: Palmette) -> None:
    machine = "64node@100Mbit/s:16core"
    found = json.loads(palmette("explain", "allreduce", "1K", "--machine", machine, "--json").out)
    assert all(one["played"] for one in found["predicted"])
    (mine,) = [one for one in found["predicted"] if one["spec"] == found["algorithm"]]
    job = _core.Job(_core.Machine.synthetic(machine), "block")
    played = _core.predict_algorithm(job, "allreduce", mine["spec"], _core.Costs.of(job), 0, 1024, element_bytes=4)
    assert mine["seconds"] == pytest.approx(played.seconds)


def test_a_table_of_ones_own_is_named(palmette: Palmette) -> None:
    rows = [{"function": "bcast", "max_bytes": 64, "algorithm": "chain", "why": "tuned 2026-11-21: 1 ms against 2 ms"}]
    Path("mine.json").write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}))
    result = palmette("explain", "bcast", "64", "--machine", LAB, "--table", "mine.json")
    assert "decided by row 0 of mine.json (up to 64)" in result.out
    assert "1 ms against 2 ms" in result.out
    result = palmette("explain", "bcast", "128", "--machine", LAB, "--table", "mine.json")
    assert "no row of mine.json matches" in result.out
    assert "row 0, chain: for up to 64" in result.out


def test_without_a_machine_it_is_this_host(palmette: Palmette) -> None:
    result = palmette("explain", "MPI_Allreduce", "64", "--ranks", "4", "--mpi", "mpich")
    assert result.status == 0, result.err
    assert "4 ranks on 1 node" in result.out
    assert "shared" in result.out


def test_nonblocking_and_unknown_sizes_can_be_asked(palmette: Palmette) -> None:
    assert "nonblocking bcast" in palmette("explain", "ibcast", "1K", "--machine", LAB).out
    assert palmette("explain", "gatherv", "--machine", LAB).status == 0
    assert palmette("explain", "barrier", "--machine", LAB).status == 0


def test_measured_figures_come_from_the_store_of_tune(palmette: Palmette) -> None:
    result = CellResult(
        Cell("allreduce", 65536),
        [
            CandidateTimes("table", False, True, None, 0, [2e-3], [0.0]),
            CandidateTimes("direct", True, True, None, 0, [1e-3], [0.0]),
        ],
    )
    with open_tunings(Path("tuning.sqlite"), create=True) as store:
        store.begin("2026-11-21T10:00:00Z", {}, "lab", None, {})
        store.add(TuneJob("mpich", "MPICH 5", "random:1", "search", ["h"] * 16, 1.0, None, [result]))
    shown = palmette("explain", "allreduce", "64K", "--machine", LAB, "--mpi", "mpich").out
    assert "Measured 2026-11-21 (64K, mpich, random:1; tuning.sqlite)" in shown
    assert shown.index("1 ms  direct") < shown.index("2 ms  what the table chose then")
    assert "Measured" not in palmette("explain", "allreduce", "64K", "--machine", LAB, "--mpi", "impi").out
    assert "Measured" not in palmette("explain", "allreduce", "1K", "--machine", LAB, "--mpi", "mpich").out


def report(**changes: Any) -> dict[str, Any]:
    rows = _core.Table.built_in().rows
    number = next(i for i, row in enumerate(rows) if row.function == "allreduce" and row.algorithm)
    call = {
        "function": "allreduce", "min_bytes": 64, "max_bytes": 1024, "blocking": True, "algorithm": "shared",
        "reason": f"table row {number}: {rows[number].why}", "calls": 3, "mean_seconds": 1e-3,
    }  # fmt: skip
    forced = {**call, "function": "bcast", "reason": "forced by PALMETTE_FORCE", "algorithm": "chain"}
    fallback = {"function": "gather", "reason": "a communicator of one rank", "calls": 2}
    return {"format": "palmette-report", "version": 1, "calls": [{**call, **changes}, forced], "fallbacks": [fallback]}


def test_what_was_gained_stands_first(palmette: Palmette) -> None:
    gain = {"sentence": "served collectives took 2 s of a rank's time (20 %); not compared with the MPI alone"}
    Path("run.json").write_text(json.dumps({**report(), "gain": gain}))
    lines = palmette("explain", "--report", "run.json").out.splitlines()
    assert " ".join(" ".join(lines[:2]).split()) == gain["sentence"]
    assert lines[2:4] == ["topology: none (levels from the MPI); --topology FILE", ""]
    assert json.loads(palmette("explain", "--report", "run.json", "--json").out)["gain"] == gain
    Path("run.json").write_text(json.dumps({**report(), "gain": gain, "topology": "t.json"}))
    assert "topology: none" not in palmette("explain", "--report", "run.json").out
    Path("old.json").write_text(json.dumps(report()))
    assert palmette("explain", "--report", "old.json").out.startswith("allreduce"), "reports of earlier versions"


def test_each_row_of_a_report_is_explained(palmette: Palmette) -> None:
    Path("run.json").write_text(json.dumps(report()))
    result = palmette("explain", "--report", "run.json")
    assert result.status == 0, result.err
    assert "allreduce of 64 to 1K, 3 calls" in result.out
    assert "is for: " in result.out
    assert "forced by PALMETTE_FORCE" in result.out
    assert "gather, 2 calls: the MPI's own" in result.out
    assert "a communicator of one rank" in result.out
    assert "another table" not in result.out
    assert "To take another: palmette run --force allreduce=ALGORITHM mpiexec ..." in result.out
    assert "What others cost: palmette explain allreduce SIZE" in result.out
    (first, *_) = json.loads(palmette("explain", "--report", "run.json", "--json").out)["rows"]
    assert first["row"] is not None


def test_a_report_tells_bounds_what_others_cost_and_how_the_mpi_compared(palmette: Palmette) -> None:
    job = _core.Job(_core.Machine.synthetic(LAB), "random:1")
    told = report(min_bytes=65536, max_bytes=65536, algorithm="ring:segment=32K", mean_seconds=0.05)
    told["job"] = job.to_json()
    told["calls"][0]["bounds"] = 1.25
    told["compared"] = [
        {"function": "allreduce", "max_bytes": 65536, "algorithm": "ring:segment=32K", "pairs": 7, "ours_seconds": 0.04,
         "mpi_seconds": 0.08}
    ]  # fmt: skip
    Path("run.json").write_text(json.dumps(told))
    first, second, _ = json.loads(palmette("explain", "--report", "run.json", "--json").out)["rows"]
    assert (first["bound_s"], first["multiple"]) == (pytest.approx(0.04), 1.25)
    assert "ring:segment=32K" in {cost["spec"] for cost in first["predicted"]}
    assert first["compared"] == {"pairs": 7, "ours_s": 0.04, "mpi_s": 0.08}
    assert first["predicted_bytes"] == 65536
    # The run knew no limit of these calls, whose sizes differ.
    assert second["bound_s"] is None
    result = palmette("explain", "--report", "run.json")
    assert f"{first['multiple']:.2f} times the physical bound" in result.out
    assert "ring:segment=32K (taken)" in " ".join(result.out.split())
    assert "in 7 pairs: 40 ms against 80 ms" in " ".join(result.out.split())
    assert max(map(len, result.out.splitlines())) <= 80
    quick = json.loads(palmette("explain", "--report", "run.json", "--no-model", "--json").out)["rows"][0]
    assert quick["predicted"] == []


def test_calls_of_several_sizes_get_what_others_cost_in_the_middle_of_them(palmette: Palmette) -> None:
    told = report(min_bytes=33000, max_bytes=65000, algorithm="ring:segment=32K")
    told["job"] = _core.Job(_core.Machine.synthetic(LAB), "random:1").to_json()
    told["calls"].append({**told["calls"][0], "min_bytes": -1, "max_bytes": -1})
    Path("run.json").write_text(json.dumps(told))
    ranged, _, unknown, _ = json.loads(palmette("explain", "--report", "run.json", "--json").out)["rows"]
    assert ranged["predicted_bytes"] == 49000
    assert len(ranged["predicted"]) == 3
    assert "ring:segment=32K" in {cost["spec"] for cost in ranged["predicted"]}
    assert (unknown["predicted"], unknown["predicted_bytes"]) == ([], None)
    told["calls"][0] |= {"min_bytes": 49000, "max_bytes": 49000}
    Path("same.json").write_text(json.dumps(told))
    same = json.loads(palmette("explain", "--report", "same.json", "--json").out)["rows"][0]
    assert same["predicted"] == ranged["predicted"]
    shown = " ".join(palmette("explain", "--report", "run.json").out.split())
    assert "by the model at 49000, the middle of these sizes: " in shown
    shown = palmette("explain", "--report", "same.json").out
    assert "the middle" not in shown.partition("bcast")[0]
    assert max(map(len, shown.splitlines())) <= 80


def test_exchanges_whose_counts_repeat_are_explained_by_rows_of_alltoall(palmette: Palmette) -> None:
    rows = _core.Table.built_in().rows
    number = next(i for i, row in enumerate(rows) if row.function == "alltoall" and row.algorithm == "linear")
    reason = f"counts repeat, at most 8K: table row {number}: {rows[number].why}"
    told = report(function="alltoallw", min_bytes=8192, max_bytes=8192, algorithm="linear", reason=reason)
    Path("run.json").write_text(json.dumps(told))
    result = palmette("explain", "--report", "run.json", "--json")
    assert result.status == 0, result.err
    assert json.loads(result.out)["rows"][0]["row"] == number
    assert "another table" not in palmette("explain", "--report", "run.json").out


def test_a_report_of_a_run_with_another_table_is_noticed(palmette: Palmette) -> None:
    Path("run.json").write_text(json.dumps(report(reason="table row 0: mine")))
    result = palmette("explain", "--report", "run.json")
    assert "the run had another table than the built-in table" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no collective given"),
        (("allreduce",), "how many bytes?"),
        (("allreduces", "1K"), "allreduces"),
        (("allreduce", "many"), "many"),
        (("allreduce", "1K", "--machine", LAB, "--topology", "x"), "both name a machine"),
        (("allreduce", "1K", "--placement", "cyclic"), "needs a machine"),
        (("allreduce", "1K", "--table", "none.json"), "none.json"),
        (("bcast", "1K", "--machine", LAB, "--root", "99"), "root 99"),
        (("--report", "none.json"), "palmette run --report"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(palmette: Palmette, arguments: tuple[str, ...], message: str) -> None:
    result = palmette("explain", *arguments)
    assert result.status == 2, result.out
    assert result.err.startswith("palmette explain: ")
    assert result.err.count("\n") == 1
    assert message in result.err


def test_a_table_with_a_key_of_before_its_renaming_is_told_the_new_one() -> None:
    row = {"function": "bcast", "crowded": True, "algorithm": "mpi"}
    with pytest.raises(_core.Error, match='crowded: this key is "oversubscribed" now'):
        _core.Table.from_json({"format": "palmette-table", "version": 1, "rows": [row]})


def test_the_line_that_measures_stands_there_once(palmette: Palmette) -> None:
    for call, another_is_faster in (("bcast 1M", True), ("gather 64", False)):
        out = palmette("explain", *call.split(), "--machine", "2leaf@1GB/s:4node@1GB/s:2core", "--mpi", "mpich").out
        assert out.count(f"palmette tune {call.replace(' ', ' --sizes ')} -- mpiexec -n 16") == 1, out
        assert ("times faster than the chosen one" in out) is another_is_faster
