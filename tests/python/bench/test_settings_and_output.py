"""What is asked for, and what collbench answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from palmette.bench.collbench import read_output
from palmette.bench.results import Overlap, PassThrough
from palmette.bench.settings import (
    BLOCKING,
    COLLECTIVES,
    Settings,
    expand_collectives,
    parse_sizes,
    split,
    split_placements,
)
from palmette.measure.errors import BenchError
from palmette.measure.job_output import count_cells


def test_sizes_are_bytes_in_powers_of_1024() -> None:
    assert parse_sizes(["64", "1K", "256K", "1M"]) == (64, 1024, 262144, 1 << 20)


@pytest.mark.parametrize("word", ["0", "x", "-1", "1.5", "3G"])
def test_a_size_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(BenchError):
        parse_sizes([word])


def test_lists_are_separated_by_commas() -> None:
    assert split("gather, scatter,") == ("gather", "scatter")


def test_a_placement_by_hosts_keeps_its_commas() -> None:
    assert split_placements("block,hosts=a,b,c,random:1") == ("block", "hosts=a,b,c", "random:1")
    assert split_placements("hosts=a,b,./file") == ("hosts=a,b", "./file")


def test_some_words_stand_for_several_collectives() -> None:
    assert expand_collectives(["all"]) == COLLECTIVES
    assert expand_collectives(["barrier", "blocking"]) == ("barrier", *(name for name in BLOCKING if name != "barrier"))
    assert expand_collectives(["gather", "nothing"]) == ("gather", "nothing")


def test_a_barrier_has_one_cell() -> None:
    assert Settings(collectives=("barrier", "bcast"), sizes=(8, 64, 512)).cells_per_job == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"collectives": ("gather", "gether")}, "'gether' is unknown; there are gather"),
        ({"mpis": ("lam",)}, "'lam' is unknown"),
        ({"sizes": ()}, "no size to measure"),
        ({"sizes": (64, 64)}, "named twice"),
    ],
)
def test_settings_that_can_not_be_measured_are_refused(change: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        Settings(**change)  # type: ignore[arg-type]


def test_a_job_gets_much_more_time_than_its_cells_need() -> None:
    assert Settings().job_timeout_s > 10 * Settings().cells_per_job * Settings().seconds
    assert Settings(timeout_s=5).job_timeout_s == 5


def test_the_output_of_a_job_is_read(samples_file: Path) -> None:
    output = read_output(samples_file)
    assert (output.ended, output.hosts, len(output.cells)) == (True, ["a", "b"], 1)
    assert output.cells[0].alone_s == [1e-3, 2e-3, 3e-3]
    assert output.cells[0].palmette_first == [False, True, False]
    assert count_cells(samples_file) == 1


def test_overlaps_and_calls_passed_through_are_read(samples_file: Path) -> None:
    text = samples_file.read_text()
    text = text.replace('"pairs":3', '"pairs":3,"overlap":{"computed_s":0.001,"alone":0,"palmette":0.5}')
    passed = (
        '{"event":"pass_through","function":"barrier","where":"MPI_COMM_SELF","calls":10,'
        '"alone_ns":[4,5],"palmette_ns":[6,8]}'
    )
    samples_file.write_text(text.replace('{"event":"end"', passed + '\n{"event":"end"'))
    output = read_output(samples_file)
    assert output.cells[0].overlap == Overlap(0.001, 0, 0.5)
    assert output.passes == [PassThrough("barrier", "MPI_COMM_SELF", 10, [4, 5], [6, 8])]


def test_a_job_that_died_leaves_its_finished_cells(samples_file: Path) -> None:
    text = samples_file.read_text()
    samples_file.write_text(text[: text.index('{"event":"end"')] + '{"event":"cell","colle')
    output = read_output(samples_file)
    assert not output.ended
    assert len(output.cells) == 1


def test_a_job_that_wrote_nothing_has_no_cells(tmp_path: Path) -> None:
    assert read_output(tmp_path / "none").cells == []
    assert count_cells(tmp_path / "none") == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [('"pairs":3', '"pairs":4'), ('"version":1', '"version":2'), ('"event":"job"', '"event""job"')],
)
def test_output_that_makes_no_sense_names_its_line(samples_file: Path, old: str, new: str) -> None:
    samples_file.write_text(samples_file.read_text().replace(old, new))
    with pytest.raises(BenchError, match=r"samples\.jsonl, line [12]: not what collbench writes"):
        read_output(samples_file)
