"""`palmette map --measure`: distances between all ranks of a job, their file, and orders for the hosts in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from palmette.cli.main import main
from palmette.map.errors import MapError
from palmette.map.matrix import read_matrix
from palmette.map.measured import TRIPS, hosts_in, job_on, measure, rounds_of
from palmette.measure.session import JobLine, Pair
from palmette.mpi.install import MpiNotFoundError, find


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 16, 33])
def test_each_pair_meets_once_and_no_rank_twice_in_a_round(ranks: int) -> None:
    rounds = rounds_of(ranks)
    assert len(rounds) == ranks - 1 + ranks % 2
    assert sorted(pair for one in rounds for pair in one) == [(a, b) for a in range(ranks) for b in range(a + 1, ranks)]
    for one in rounds:
        busy = [rank for pair in one for rank in pair]
        assert len(set(busy)) == len(busy)


class Ranks:
    """A job whose ranks stand on a line; the pair (0, 1) has times of a wide spread."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[float, ...], list[Pair]]] = []

    def ask(
        self, what: str, numbers: Sequence[float], pairs: Sequence[Pair], seconds: float = 1.0
    ) -> list[list[float]]:
        """Answer as the program calibrate does."""
        self.asked.append((what, tuple(numbers), list(pairs)))
        return [[d * 0.99, d, d * (1.5 if (a, b) == (0, 1) else 1.01)] for a, b in pairs for d in [1e-6 * (b - a)]]


def line_of(hosts: list[str]) -> JobLine:
    return JobLine("MPICH 5.0.2", hosts, hosts, [-1] * len(hosts))


def test_the_file_is_what_distances_reads_with_hosts_and_errors(tmp_path: Path) -> None:
    hosts = ["a", "b", "a", "c", "b"]
    ranks = Ranks()
    found = measure(ranks, line_of(hosts), 4096, "mpiexec -n 5")
    assert {(what, numbers) for what, numbers, _ in ranks.asked} == {("quartiles", (4096, TRIPS))}
    file = tmp_path / "distances.txt"
    file.write_text(found.text())
    places = np.arange(5)
    assert read_matrix(file) == pytest.approx(1e-6 * np.abs(places[:, None] - places))
    assert hosts_in(file) == hosts
    assert found.worst == pytest.approx((0.51, 0, 1))
    assert "2.0% in the median over pairs, 51.0% at most (ranks 0 and 1)" in file.read_text()
    assert "job: mpiexec -n 5" in file.read_text() and "noise" not in file.read_text()


def test_times_that_are_mostly_noise_are_told() -> None:
    class Noisy(Ranks):
        def ask(
            self, what: str, numbers: Sequence[float], pairs: Sequence[Pair], seconds: float = 1.0
        ) -> list[list[float]]:
            return [[1e-6, 2e-6, 4e-6] for _ in pairs]

    assert "would follow noise" in measure(Noisy(), line_of(["a", "b", "c"]), 1, "mpiexec -n 3").text()


def test_a_job_of_one_rank_is_refused() -> None:
    with pytest.raises(MapError, match="a job of 1 rank has no pair"):
        measure(Ranks(), line_of(["a"]), 1, "mpiexec -n 1")


def test_hosts_with_any_number_of_ranks_are_slots_of_launchers_files() -> None:
    job = job_on(["b", "a", "b", "b"])
    assert [job.host_of(rank) for rank in range(4)] == ["b", "a", "b", "b"]


def test_measured_hosts_are_written_for_launchers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, machinefile = tmp_path / "distances.txt", tmp_path / "hosts"
    file.write_text("# hosts: a b a b\n0 9 1 9\n9 0 9 1\n1 9 0 8\n9 1 8 0\n")
    words = ["--pattern", "ring", "--method", "greedy", "--distances", str(file), "--write", f"intel={machinefile}"]
    assert main(["map", *words]) == 0
    captured = capsys.readouterr()
    assert captured.out == "0 2 3 1\n"
    assert machinefile.read_text() == "a\na\nb\nb\n"
    assert f"mpiexec -machinefile {machinefile} -n 4" in captured.err
    assert main(["map", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == {"intel": str(machinefile)}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--measure"], "say where to run"),
        (["--measure", "--machine", "2node:2core", "--", "mpiexec", "-n", "2"], "both say how far ranks are"),
        (["--pattern", "ring", "--machine", "2node", "--", "mpiexec", "-n", "2"], "only --measure runs a job"),
        (["--measure", "--write", "seq=x", "--", "mpiexec", "-n", "2"], "add --pattern or --matrix"),
        (["--measure", "--distances", "notes", "--", "mpiexec", "-n", "2"], "wasn't measured by --measure"),
        (["--pattern", "ring", "--distances", "plain", "--write", "seq=x"], "names those of 0 ranks, not of 2"),
        (["--pattern", "ring", "--distances", "plain", "--write", "coordinates=x"], "needs switches"),
        (["--measure", "--", "nompiexec", "-n", "2"], "nompiexec: no such program"),
    ],
)
def test_mistakes_are_told_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str],
    complaint: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("notes").write_text("remember the milk\n")
    Path("plain").write_text("0 1\n1 0\n")
    assert main(["map", *words]) == 2
    told = capsys.readouterr().err
    assert complaint in " ".join(told.split())
    assert not Path("x").exists() and not Path("distances.txt").exists()


@pytest.mark.mpi
def test_a_job_is_measured_and_mapped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    try:
        mpi = find("mpich")
    except MpiNotFoundError as error:
        pytest.skip(str(error))
    file = tmp_path / "d.txt"
    words = ["--pattern", "recursive_doubling", "--measure", "--distances", str(file), "--size", "64"]
    assert main(["map", *words, "--", str(mpi.mpiexec), "-n", "5"]) == 0
    captured = capsys.readouterr()
    assert sorted(map(int, captured.out.split())) == list(range(5))
    found = read_matrix(file)
    assert np.array_equal(found, found.T) and (found[~np.eye(5, dtype=bool)] > 0).all()
    assert len(hosts_in(file)) == 5 and "half a round trip of 64 bytes" in file.read_text()
    assert f"wrote {file}" in " ".join(captured.err.split())
