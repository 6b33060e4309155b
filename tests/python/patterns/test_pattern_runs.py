"""Measured patterns: what each library brings is right, rates add up, bad input is one line."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.measure.places import LocalPlace
from palmette.mpi import install as mpi_install
from palmette.mpi.install import Installation
from palmette.patterns.errors import PatternError
from palmette.patterns.form import parse
from palmette.patterns.measure import PatternRunner, Settings, measure
from palmette.patterns.rates import evaluate
from palmette.patterns.seats import Seats
from palmette.patterns.svg import svg
from palmette.patterns.text import csv_text, table_lines, to_json
from palmette.patterns.transfers import plan

Call = Callable[..., Any]
QUICK = Settings(seconds=0.0, min_calls=3, max_calls=3, warmup=1)
MACHINE = "2leaf@50Mbit/s:2node@100Mbit/s:2core"


@pytest.fixture(params=["mpich", "openmpi", "impi"])
def mpi(request: pytest.FixtureRequest) -> Installation:
    try:
        return mpi_install.find(request.param)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))


def runner(mpi: Installation, ranks: int, folder: Path) -> PatternRunner:
    try:
        return PatternRunner(LocalPlace(ranks, folder), mpi, "block", None, None)
    except PatternError as error:
        pytest.skip(str(error))


@pytest.mark.mpi
def test_every_library_brings_the_right_bytes(mpi: Installation, tmp_path: Path) -> None:
    forms = [
        parse(f"dense:groups=2,way=all{library} + self{library} then rail:groups=3,window=2{library}")
        for library in ("@mpi", "@rma", "@shm", "@single_copy")
    ]
    # A size that is no multiple of a chunk, and longer than two.
    for made in measure(runner(mpi, 3, tmp_path), forms, [100_001], QUICK):
        assert made.wrong_ranks == 0
        assert made.whole is not None
        assert made.whole.samples + made.late >= 3
        assert [rate.messages for rate in made.rates] == [4, 3, 4]
        assert all(0 < rate.min_s <= rate.median_s <= rate.max_s for rate in made.rates)
        assert all(seconds > 0 for seconds in made.message_s)


@pytest.mark.mpi
def test_libraries_side_by_side_and_one_after_the_other_dont_block_each_other(
    mpi: Installation, tmp_path: Path
) -> None:
    forms = [
        parse("rail:groups=2@rma + dense:groups=2@shm then fan:groups=2,way=in@single_copy then dense:groups=2"),
        parse("dense:groups=2,way=both@rma then self@mpi + rail:groups=2@shm"),
    ]
    for made in measure(runner(mpi, 4, tmp_path), forms, [1, 70_000], QUICK):
        assert made.wrong_ranks == 0


@pytest.mark.mpi
def test_wrong_bytes_are_noticed(tmp_path: Path) -> None:
    """The second message claims to carry what it doesn't."""
    try:
        place = runner(mpi_install.find("mpich"), 2, tmp_path)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    file, output = tmp_path / "pattern.txt", tmp_path / "out.jsonl"
    file.write_text("palmette-pattern 1 2 1 1 2\n0 0 0 0 1 8 0 0 0 0\n0 0 0 1 0 8 0 8 1 4\n")
    done = place.run(
        ["--messages", str(file), "--max-iterations", "1", "--min-iterations", "1", "--output", str(output)], 60
    )
    assert done.returncode == 1, done.stderr
    assert "rank 0 got wrong bytes from rank 1" in done.stderr


@pytest.mark.mpi
def test_a_launchers_line_of_the_users_own_runs_patterns(palmette: Call, tmp_path: Path) -> None:
    try:
        mpich = mpi_install.find("mpich")
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    table, picture = tmp_path / "rates.csv", tmp_path / "matrix.svg"
    result = palmette(
        "bench", "pattern", "rail:groups=2,way=both", "--sizes", "1K", "--seconds", "0", "--min-iterations", "3",
        "--csv", table, "--svg", picture, "--json", "--", mpich.mpiexec, "-n", "2",
    )  # fmt: skip
    assert result.status == 0, result.err
    (document,) = json.loads(result.out)
    assert document["pattern"] == "rail:groups=2,way=both"
    assert [(m["source"], m["target"], m["bytes"]) for m in document["messages"]] == [(0, 1, 1024), (1, 0, 1024)]
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [row["part"] for row in rows] == ["rail", "everything"]
    assert float(rows[0]["rate_median_bytes_per_s"]) == pytest.approx(2048 / float(rows[0]["time_median_s"]), rel=1e-6)
    # Nothing is known of this machine's links.
    assert (document["bound"], document["multiple_of_bound"]) == (None, None)
    assert {(row["bound_s"], row["multiple_of_bound"]) for row in rows} == {("", "")}
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def invented() -> tuple[Any, Seats]:
    """A pattern between leaves and nodes, each call of which takes 2, 1, 4 and 3 s for the leaves, half of it for
    nodes."""
    machine = _core.Machine.synthetic(MACHINE)
    seats = Seats.on(machine, _core.Job(machine, "block").hosts)
    made = plan(parse("rail:width=1"), seats, 1_000_000)
    times = [2.0, 1.0, 4.0, 3.0, 9.0]
    levels = {kind.level: number for number, kind in enumerate(made.kinds)}
    classes = [
        {"class": levels["leaf"], "end_s": times, "begin_s": [0.0] * 5},
        {"class": levels["node"], "end_s": [time / 2 for time in times], "begin_s": [0.0] * 5},
    ]
    samples = {"time_s": times, "late_s": [0.0] * 4 + [8.0], "classes": classes, "wrong_ranks": 0}
    messages = {"number": [2, 0, 1], "median_s": [2.4, 1.2, 2.5]}
    return evaluate(made, seats, samples, messages), seats


def test_rates_are_bytes_of_a_level_over_the_time_of_its_last_message() -> None:
    made, _ = invented()
    leaf, node = made.rates
    assert (leaf.level, leaf.messages, leaf.bytes, leaf.samples) == ("leaf", 2, 2_000_000, 4)
    assert (leaf.min_s, leaf.median_s, leaf.max_s) == (1.0, 2.5, 4.0), "the call that started late doesn't count"
    assert leaf.low_s <= leaf.median_s <= leaf.high_s
    assert node.to_json()["bytes_per_s"]["median"] == pytest.approx(1_000_000 / 1.25)
    assert leaf.to_json()["bytes_per_s"]["max"] == pytest.approx(2_000_000)
    assert made.late == 1
    assert made.message_s == [1.2, 2.5, 2.4]


def test_the_busiest_link_is_that_of_the_machine() -> None:
    made, _ = invented()
    assert made.busiest is not None
    # 2 MB leave the first leaf at 50 Mbit/s; 3 MB leave the first host at 100 Mbit/s.
    assert (made.busiest.text, made.busiest.bytes) == ("out of leaf0", 2_000_000)
    assert made.busiest.seconds == pytest.approx(2_000_000 / 6.25e6)


def test_rows_of_whole_patterns_tell_their_multiple_of_the_bound() -> None:
    made, _ = invented()
    # The median of 2.5 s over the 0.32 s that the busiest link needs; the table says the same.
    multiple = 2.5 / 0.32
    assert to_json("here", made)["multiple_of_bound"] == pytest.approx(multiple)
    assert "takes 7.81 times that" in " ".join(line.strip() for line in table_lines(made, "here"))
    *parts, whole = csv.DictReader(csv_text([("here", made)]).splitlines())
    assert float(whole["multiple_of_bound"]) == pytest.approx(multiple)
    assert float(whole["bound_s"]) == pytest.approx(0.32)
    assert {row["multiple_of_bound"] for row in parts} == {""}
    made.busiest = None
    assert to_json("here", made)["multiple_of_bound"] is None
    assert {row["multiple_of_bound"] for row in csv.DictReader(csv_text([("here", made)]).splitlines())} == {""}


def test_tables_fit_in_80_columns_and_pictures_show_each_pair() -> None:
    made, seats = invented()
    lines = table_lines(made, "mpich 5.0.2, random:1")
    assert max(map(len, lines)) <= 80, lines
    assert any("between leaves" in line for line in lines)
    picture = ElementTree.fromstring(svg(made, seats, "mpich"))
    tips = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert "0 to 4: 977K at 400 kB/s" in tips, tips
    assert len(tips) == 1 + len(made.plan.transfers)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "no pattern given"),
        (("trail", "-n", "2"), "pattern 'trail' is unknown"),
        (("rail", "-n", "2", "--sizes", "many"), "many"),
        (("rail", "-n", "2", "--", "mpiexec", "-n", "2"), "name different places"),
        (("rail", "--topology", "x.json"), "belongs to a launcher line"),
        (("rail", "--", "no-such-launcher", "-n", "2"), "no such program"),
        (("rail", "-n", "2", "--mpi", "nompi"), "nompi"),
        (("rail", "-n", "2", "--lab", "x"), "name different places"),
        (("rail", "--placement", "cyclic", "--", "mpiexec", "-n", "2"), "both say where to run"),
    ],
)
def test_bad_input_is_one_line_and_status_2(palmette_lab: Call, arguments: tuple[str, ...], complaint: str) -> None:
    result = palmette_lab("bench", "pattern", *arguments)
    assert result.status == 2
    assert complaint in result.err
    assert result.err.startswith("palmette-lab bench pattern: ")
    assert len(result.err.splitlines()) == 1


def test_help_names_all_patterns(palmette_lab: Call) -> None:
    result = palmette_lab("bench", "pattern", "--help")
    assert result.status == 0
    assert all(word in result.out for word in ("rail", "fan", "dense", "self", "matrix:FILE", "single_copy"))
