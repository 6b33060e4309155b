"""Palmette and its rivals on simulated clusters."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.bench.settings import BLOCKING
from palmette.settings import force
from palmette_lab.simulate import cluster, job, kept, parameters, platform, run, simgrid
from palmette_lab.simulate.compare import ComparisonRequest, compare

Call = Callable[..., Any]
VALUES = parameters.read()
SMALL = "2leaf@3GB/s~2.45us:3+2node@1.5GB/s~1.57us:4core"


def on(spec: str = SMALL, placement: str = "random:1", ranks: int | None = None) -> job.Job:
    """Ranks on a small tree of two switches."""
    return job.make_job(cluster.prepared(cluster.from_spec(spec), VALUES), placement, ranks)


@pytest.mark.parametrize("collective", BLOCKING)
def test_palmette_is_called_and_right(collective: str, smpirun: str) -> None:
    sizes = (0,) if collective == "barrier" else (4, 1024, 40_000)
    found = run.simulate(smpirun, on(), VALUES, run.PALMETTE, collective, sizes)
    assert found.trouble == ""
    assert found.wrong_ranks == dict.fromkeys(sizes, 0)
    assert all(found.times_s[size] > 1e-6 for size in sizes)
    # Which plan served which size; what palmette left to the MPI below it says so.
    assert set(found.algorithms) == set(sizes)


def test_most_collectives_are_served_and_not_left_to_the_mpi(smpirun: str) -> None:
    for collective in ("gather", "scatter", "allgather", "bcast", "reduce", "allreduce", "alltoall", "barrier"):
        sizes = (0,) if collective == "barrier" else (1024,)
        found = run.simulate(smpirun, on(), VALUES, run.PALMETTE, collective, sizes)
        assert found.served >= 2, collective  # the check and the timing
        assert found.algorithms[sizes[0]] != "mpi", collective


def test_a_forced_algorithm_is_what_runs(smpirun: str) -> None:
    environment = {"PALMETTE_FORCE": "gather=linear"}
    found = run.simulate(smpirun, on(), VALUES, run.PALMETTE, "gather", (64,), environment=environment)
    assert found.algorithms[64].startswith("linear")


@pytest.mark.parametrize(
    ("collective", "algorithm", "size"),
    [
        ("allgather", "leaders:leaders=2,between=bruck,inside=binomial", 128 << 10),
        ("alltoall", "node_aware:rounds=3", 128 << 10),
        ("allreduce", "node_pieces:inside=halving", 4 << 20),
    ],
)
def test_contents_that_nobody_compares_take_as_long_in_memory_that_all_ranks_share(
    collective: str, algorithm: str, size: int, smpirun: str
) -> None:
    environment = force(**{collective: algorithm})
    own, folded = (
        run.simulate(
            smpirun, on(), VALUES, run.PALMETTE, collective, (64, size), checks=checks, environment=environment
        )
        for checks in (True, False)
    )
    assert own.trouble == folded.trouble == ""
    assert own.wrong_ranks == {64: 0, size: 0}
    assert folded.algorithms == {64: algorithm, size: algorithm}
    # SimGrid takes events for simultaneous that are 1e-9 s apart, and their order goes by addresses.
    assert folded.times_s == pytest.approx(own.times_s, rel=1e-9, abs=2e-8)


def test_a_composed_broadcast_is_right_and_its_tree_shorter_than_a_chain(smpirun: str) -> None:
    seats = on("8node@1GB/s:1core", "block")
    tree, ring = (
        run.simulate(smpirun, seats, VALUES, run.PALMETTE, "bcast", (64,), factoring=f"method={method}")
        for method in ("tree.2", "ring")
    )
    assert tree.wrong_ranks == ring.wrong_ranks == {64: 0}
    assert tree.times_s[64] < ring.times_s[64]


def test_two_runs_give_the_same_times_to_the_last_digit(smpirun: str) -> None:
    for contender in (run.PALMETTE, "mpich"):
        first, second = (
            run.simulate(smpirun, on(), VALUES, contender, "allgather", (8, 1024, 40_000)) for _ in range(2)
        )
        assert len(first.times_s) == 3
        assert first.times_s == second.times_s


def test_two_runs_beside_traffic_give_the_same_times_to_the_last_digit(smpirun: str) -> None:
    seats = on(ranks=16)
    loaded = job.Job(seats.cluster, seats.placement, seats.seats, job.Background(("h0", "h3", "h4", "h1"), 65_536))
    first, second = (run.simulate(smpirun, loaded, VALUES, run.PALMETTE, "gather", (64, 10_000)) for _ in range(2))
    assert first.background_rounds > 0
    assert first.times_s == second.times_s


def test_a_slower_uplink_takes_longer(smpirun: str) -> None:
    slow = SMALL.replace("3GB/s", "300MB/s")
    for contender in (run.PALMETTE, "mpich"):
        fast_s, slow_s = (
            run.simulate(smpirun, on(spec), VALUES, contender, "alltoall", (10_000,)).times_s[10_000]
            for spec in (SMALL, slow)
        )
        assert slow_s > 1.5 * fast_s


def test_a_rival_that_fails_is_shown_as_such_and_not_compared_with(smpirun: str) -> None:
    asked = ComparisonRequest([on(ranks=16, placement="block")], ["allgather"], [64], ["mpich", "no-such-algorithm"])
    found = compare(smpirun, asked, VALUES, lambda _: None)
    assert set(found.cells[0].rivals_s) == {"mpich"}
    (trouble,) = found.troubles
    assert trouble.contender == "no-such-algorithm"
    assert re.match("SimGrid has no such selector or algorithm for it: there are .*rdb.*, at 64 B$", trouble.text)


def test_a_contender_over_its_cpu_limit_is_ended_and_told(smpirun: str) -> None:
    large = on("8leaf@3GB/s:8node@1.5GB/s:8core", "block")
    found = run.simulate(smpirun, large, VALUES, "ompi", "alltoall", (1, 10, 100, 1000, 10_000), cpu_limit_s=1)
    assert "CPU" in found.trouble


def test_background_traffic_slows_down_what_crosses_the_same_uplink(smpirun: str) -> None:
    wide = cluster.prepared(cluster.from_spec("2leaf@1GB/s~2.45us:4node@1.5GB/s~1.57us:4core"), VALUES)
    half = "hosts=" + ",".join(host for host in ("h0", "h1", "h4", "h5") for _ in range(4))
    others = tuple(host for host in ("h2", "h3", "h6", "h7") for _ in range(4))
    quiet = job.make_job(wide, half, None)
    loaded = job.make_job(wide, half, None, job.Background(others, 65_536))
    for contender in (run.PALMETTE, "mpich"):
        times = [run.simulate(smpirun, it, VALUES, contender, "gather", (10_000,)) for it in (quiet, loaded)]
        assert times[1].background_rounds > 0
        assert times[1].wrong_ranks == {10_000: 0}
        assert times[1].times_s[10_000] > times[0].times_s[10_000]


def test_the_table_and_its_json_say_the_same(smpirun: str, palmette_lab: Call) -> None:
    asked = ("--machine", SMALL, "--placement", "block,cyclic", "--collectives", "gather,barrier", "--sizes", "64,4K")
    result = palmette_lab("simulate", *asked, "--rivals", "mpich,ompi")
    assert result.status == 0, result.err
    assert max(map(len, result.out.splitlines())) <= 80
    document = json.loads(palmette_lab("simulate", *asked, "--rivals", "mpich,ompi", "--json").out)
    assert document["ranks"] == 20
    assert len(document["cells"]) == 2 * (2 + 1)
    for cell in document["cells"]:
        assert cell["ratio"] == pytest.approx(cell["palmette_s"] / min(cell["rivals_s"].values()))
        assert f"{cell['ratio']:.2f}" in result.out


def test_means_of_each_placement_stand_below_the_tables_and_in_json(smpirun: str, palmette_lab: Call) -> None:
    asked = ("--machine", SMALL, "--placement", "block,random:1", "--collectives", "gather", "--sizes", "64,1K,16K",
             "--rivals", "ompi")  # fmt: skip
    result = palmette_lab("simulate", *asked)
    document = json.loads(palmette_lab("simulate", *asked, "--json").out)
    assert [mean["placement"] for mean in document["means"]] == ["block", "random:1", None]
    ratios = [cell["ratio"] for cell in document["cells"]]
    assert document["means"][-1]["geometric_mean_ratio"] == pytest.approx(math.prod(ratios) ** (1 / 6))
    told = " ".join(result.out.split())
    for mean in document["means"][:-1]:
        assert f"{mean['placement']} {mean['geometric_mean_ratio']:.2f}" in told
    assert document["command"].startswith("palmette-lab simulate --machine")


def test_a_variable_forces_an_algorithm_and_only_palmettes_are_taken(smpirun: str, palmette_lab: Call) -> None:
    asked = ("--machine", SMALL, "--collectives", "gather", "--sizes", "64", "--rivals", "none")
    result = palmette_lab("simulate", *asked, "--env", "PALMETTE_FORCE=gather=linear", "--json")
    (cell,) = json.loads(result.out)["cells"]
    assert cell["algorithm"] == "linear"
    assert "PALMETTE_FORCE" in cell["reason"]
    assert palmette_lab("simulate", *asked, "--env", "HOME=/").status == 2


def test_what_is_given_beside_a_set_stands_instead_of_its_own(smpirun: str, palmette_lab: Call) -> None:
    result = palmette_lab("simulate", "--set", "test-bed", "--collectives", "bcast", "--placement", "block", "--sizes",
    "64",
                      "--rivals", "mpich", "--json")  # fmt: skip
    (cell,) = json.loads(result.out)["cells"]
    assert (cell["size_bytes"], set(cell["rivals_s"])) == (64, {"mpich"})


def test_calls_left_to_the_mpi_and_long_names_are_told_in_full(smpirun: str, palmette_lab: Call) -> None:
    result = palmette_lab("simulate", "--machine", SMALL, "--collectives", "gather,alltoallv", "--sizes", "64,1K",
                      "--rivals", "mpich")  # fmt: skip
    assert "alltoallv 64 B, 1K: mpi: chosen" in result.out
    assert "..." not in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_jobs_of_different_size_are_each_checked(smpirun: str, tmp_path: Path, palmette_lab: Call) -> None:
    for name, hosts in (("four", 4), ("two", 2)):
        (tmp_path / name).write_text("".join(f"h{host}\n" for host in range(hosts)), encoding="utf-8")
    asked = ("--machine", SMALL, "--placement", f"{tmp_path / 'four'},{tmp_path / 'two'}", "--sizes", "64", "--rivals",
             "none", "--collectives", "gather")  # fmt: skip
    result = palmette_lab("simulate", *asked, "--root", "3")
    assert result.status == 2
    assert "two has 2 ranks" in result.err
    assert list(json.loads(palmette_lab("simulate", *asked, "--json").out)["ranks_by_placement"].values()) == [4, 2]


def test_what_ibnetdiscover_wrote_is_simulated_as_it_is(smpirun: str, palmette_lab: Call) -> None:
    fabric = Path(__file__).parents[2] / "data" / "fabrics" / "fat-tree.txt"
    result = palmette_lab("simulate", "--topology", fabric, "--ppn", "2", "--ranks", "16", "--collectives", "gather",
                      "--sizes", "1K", "--placement", "random:3", "--rivals", "mpich", "--json")  # fmt: skip
    assert result.status == 0, result.err
    assert json.loads(result.out)["cells"][0]["ratio"] > 0


def test_a_real_fabric_is_simulated(
    smpirun: str, fabrics: Path, tmp_path: Path, palmette_lab: Call, palmette: Call
) -> None:
    topology = tmp_path / "topology.json"
    found = palmette("discover", "--from", "ibnetdiscover", fabrics / "qdr-2014.txt", "-o", topology)
    assert found.status == 0, found.err
    result = palmette_lab("simulate", "--topology", topology, "--ranks", "32", "--collectives", "gather", "--sizes",
                          "1K", "--placement", "random:3", "--rivals", "mpich", "--json")  # fmt: skip
    assert result.status == 0, result.err
    assert json.loads(result.out)["cells"][0]["ratio"] > 0


def test_calls_without_bytes_take_no_time(smpirun: str, palmette_lab: Call) -> None:
    words = ["simulate", "--machine", SMALL, "--collectives", "gather,bcast,alltoall", "--sizes", "0,8"]
    result = palmette_lab(*words)
    assert result.status == 0, result.err
    result = palmette_lab(*words, "--json")
    cells = json.loads(result.out)["cells"]
    assert "none" not in {cell["algorithm"] for cell in cells if cell["size_bytes"] > 0}
    empty = [cell for cell in cells if cell["size_bytes"] == 0]
    assert len(empty) == 3
    for cell in empty:
        assert (cell["palmette_s"], cell["algorithm"], cell["bound_s"]) == (0, "none", 0)
        assert cell["good"] and not cell["slower"]
    # Some rivals return at once, too, and some send messages without bytes.
    assert {cell["ratio"] for cell in empty} == {None, 0.0}


def test_the_simulators_start_takes_few_steps_and_a_measured_ring_all(
    smpirun: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SimGrid asks first which ranks share a host: along a ring of 128 ranks, but for what is preloaded."""
    bed = on("32node@1GB/s~2us:4core", "block")
    hosts = "".join(f"{seat}\n" for seat in bed.seats)
    xml = platform.platform_xml(bed.cluster.topology, VALUES, bed.cluster.mesh)

    def simulated_s(collective: str, selector: dict[str, str]) -> tuple[float, float]:
        settings = simgrid.configuration(VALUES, selector)
        settings += ["--cfg=smpi/display-timing:yes", "--log=smpi_utils.thres:info"]
        words = ["--variant", "alone", "--collective", collective, "--sizes", "64", "--checked-bytes", "0"]
        asked = kept.SimulationKey(simgrid.VERSION, xml, hosts, settings, [*words, *run.end_costs(VALUES)], "", "", {})
        ended, _ = run.started(smpirun, asked, 60, None)
        assert ended.trouble == ""
        whole = re.search(r"Simulated time: (\S+) seconds", ended.errors)
        assert whole is not None
        return float(whole[1]), next(event["time_s"] for event in run.events_of(ended) if event["event"] == "cell")

    ring = {"smpi/coll-selector": "mpich", "smpi/allgather": "ring"}
    short = simulated_s("bcast", {"smpi/coll-selector": "impi"})
    short_ring = simulated_s("allgather", ring)
    monkeypatch.setattr(simgrid, "START", tmp_path / "none")
    long = simulated_s("bcast", {"smpi/coll-selector": "impi"})
    long_ring = simulated_s("allgather", ring)
    assert long[0] - short[0] > 100 * 2e-6  # of 127 steps over 2 us each, seven are left
    assert long[1] == pytest.approx(short[1], rel=1e-9)
    assert long_ring == pytest.approx(short_ring, rel=1e-9)


@pytest.mark.long
def test_large_exchanges_may_end_a_little_together(smpirun: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among 512 ranks and more; here that is asked of fewer, as of so many an exchange takes minutes."""
    bed = on("2leaf@3GB/s~2.45us:8node@1.5GB/s~1.57us:4core")
    size = 128 << 10

    def times_s(ranks: int) -> list[float]:
        monkeypatch.setattr(run, "_COARSE_RANKS", ranks)
        contenders = (run.PALMETTE, "pair", "mvapich2")
        return [run.simulate(smpirun, bed, VALUES, name, "alltoall", (size,)).times_s[size] for name in contenders]

    fine, coarse = times_s(512), times_s(2)
    assert coarse != fine
    assert coarse == pytest.approx(fine, rel=0.01)
