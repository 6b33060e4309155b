"""The archive of runs: planted growth, regressions, placements and dates are found, and nothing where nothing is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palmette.runs.archive import open_archive
from palmette.runs.growth import fitted
from palmette.runs.questions import FEWEST_BEFORE, gate, slower_since, variation
from palmette.runs.schema import ArchiveError
from runs.invented import COMPUTING_S, ROWS, entry, filled, noisy


def test_planted_growth_is_found() -> None:
    random = np.random.default_rng(1)
    counts = (4, 8, 16, 32, 64, 128)
    laws: dict[str, Callable[[float], float]] = {
        "O(1)": lambda p: 0.2, "O(p)": lambda p: 0.01 + 1e-3 * p, "O(log p)": lambda p: 1e-3 + 0.02 * np.log2(p),
        "O(p^2)": lambda p: 0.01 + 1e-4 * p * p, "O(1/p)": lambda p: 0.001 + 3.0 / p,
        "O(p log p)": lambda p: 0.001 + 1e-3 * p * np.log2(p),
    }  # fmt: skip
    for name, law in laws.items():
        points = [(p, law(p) * random.normal(1, 0.01)) for p in counts for _ in range(3)]
        found = fitted(points)
        assert found is not None and found.name == name, (name, found)
        assert found.at(256) == pytest.approx(law(256), rel=0.15)
        assert found.outgrows_logarithm == (name in ("O(p)", "O(p^2)", "O(p log p)"))
    assert fitted([(4, 1.0), (8, 1.0), (16, 1.0)]) is None
    assert fitted([(p, 0.0) for p in counts]) is None


@pytest.mark.parametrize("seed", [1, 2])
def test_a_gate_stays_open_for_fifty_runs_and_closes_at_the_planted_regression(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    with open_archive(tmp_path / "a.sqlite", create=True) as archive:
        for number in range(50):
            archive.add(entry(number, noisy(random, 0.03), computing_s=COMPUTING_S * random.lognormal(0, 0.03)))
            if number % 3 == 2 and number > FEWEST_BEFORE:
                assert not gate(archive, archive.find("last")).slower
        rows = noisy(random, 0.03, {**ROWS, "MPI_Bcast": 1.4 * ROWS["MPI_Bcast"]})
        archive.add(entry(50, rows))
        judged = gate(archive, archive.find("last"))
    assert [one.key[0] for one in judged.slower] == ["MPI_Bcast"]
    assert len(judged.before) == 50 and judged.same_placement


def test_few_runs_pass_no_gate(tmp_path: Path) -> None:
    with open_archive(tmp_path / "a.sqlite", create=True) as archive:
        for number in range(5):
            archive.add(entry(number))
        with pytest.raises(ArchiveError, match="4 earlier runs"):
            gate(archive, archive.find("last"))


def test_placement_explains_its_share(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    with open_archive(tmp_path / "a.sqlite", create=True) as archive:
        for number in range(40):
            far = number % 4 == 0
            rows = {**ROWS, "MPI_Alltoall": 2.0 if far else 1.0}
            archive.add(entry(number, noisy(random, 0.01, rows), placement="far" if far else "near", program="far"))
            archive.add(entry(100 + number, noisy(random, 0.01), placement=str(number % 4), program="same"))
        found = {one.program: one for one in variation(archive.runs())}
    far_one, same = found["far"], found["same"]
    assert far_one.explained is not None and far_one.explained > 0.9 and far_one.placements == 2
    assert same.explained is not None and same.explained < 0.3


def test_what_got_slower_since_a_day(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    with open_archive(tmp_path / "a.sqlite", create=True) as archive:
        for number in range(20):
            late = number >= 10
            rows = noisy(random, 0.02, {**ROWS, "MPI_Send": 0.6 if late else 0.3})
            archive.add(entry(number, rows, day="11-20" if late else "11-10"))
        found = slower_since(archive, archive.runs(), "2026-11-15")
        assert "MPI_Send" in {one.key[0] for one in found}
        assert not {"MPI_Allreduce", "MPI_Bcast", "MPI_Alltoall"} & {one.key[0] for one in found}
        with pytest.raises(ArchiveError, match="before and after"):
            slower_since(archive, archive.runs(), "2026-12-24")


def test_the_command_answers(palmette: Callable[..., Any], tmp_path: Path) -> None:
    path = filled(tmp_path / "a.sqlite")
    listed = palmette("runs", "--archive", path)
    assert listed.status == 0 and listed.out.count(" app ") == 4
    scaled = json.loads(palmette("runs", "--archive", path, "--scaling", "ranks", "--json").out)
    assert {row["function"]: row["name"] for row in scaled["rows"]} == {
        "MPI_Allreduce": "O(log p)", "MPI_Alltoall": "O(p)", "(computing)": "O(1/p)",
    }  # fmt: skip
    shown = palmette("runs", "--archive", path, "--scaling", "ranks").out
    assert "MPI_Alltoall at alltoall.c:7 doesn't scale" in " ".join(shown.split())
    by_bytes = palmette("runs", "--archive", path, "--scaling", "bytes")
    assert by_bytes.status == 0 and "MPI_Alltoall" in by_bytes.out
    both = palmette("runs", "--archive", path, "1", "last").out
    assert "MPI_Alltoall" in both and "8.00" in both
    one = palmette("runs", "--archive", path, "last~1").out
    assert "16 ranks" in one
    assert all(len(line) <= 80 for text in (listed.out, shown, both, one) for line in text.splitlines())
    assert palmette("runs", "--archive", path, "--variation").status == 0
    with sqlite3.connect(path) as database:  # open to others
        assert database.execute("SELECT count(*) FROM call_rows WHERE function = 'MPI_Alltoall'").fetchone() == (4,)


def test_a_gate_ends_with_one(palmette: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with open_archive(path, create=True) as archive:
        for number in range(8):
            archive.add(entry(number))
        assert palmette("runs", "--archive", path, "--gate").status == 0
        archive.add(entry(9, {**ROWS, "MPI_Send": 0.9}))
    closed = palmette("runs", "--archive", path, "--gate")
    assert closed.status == 1
    assert "MPI_Send at send.c:7" in closed.out and "3.00" in closed.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--gate", "--variation"), "one at a time"),
        (("--tag", "a=b"), "--add adds"),
        (("1", "2", "3"), "too many runs"),
        (("99",), "holds no run 99; give a number from 1 to 4"),
        (("--slower-since", "yesterday"), "give a date as 2026-11-01"),
        (("--program", "other"), "holds no run of other; it has app"),
    ],
)
def test_bad_input_is_told_in_a_line(
    palmette: Callable[..., Any], tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    ended = palmette("runs", "--archive", filled(tmp_path / "a.sqlite"), *words)
    assert ended.status == 2
    assert told in " ".join(ended.err.split())


def test_files_of_other_kinds_are_refused(palmette: Callable[..., Any], tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE cells (id INTEGER)")
    (tmp_path / "text.sqlite").write_text("no database" * 100, encoding="ascii")
    for name in ("other.sqlite", "text.sqlite", "none.sqlite"):
        ended = palmette("runs", "--archive", tmp_path / name)
        assert ended.status == 2 and "--archive" in ended.err and len(ended.err.splitlines()) == 1


def test_no_run_is_there_twice(tmp_path: Path) -> None:
    with open_archive(tmp_path / "a.sqlite", create=True) as archive:
        numbers = [archive.add(entry(1)) for _ in range(2)]
        assert numbers == [1, None]
        assert len(archive.runs()) == 1
