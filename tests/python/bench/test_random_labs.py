"""studies/random_labs.py: which labs and sizes are drawn, what is told of cells, and what a lab that can't be makes of
it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from palmette import _core


@pytest.fixture(scope="module")
def script(bench_program: Callable[[str], ModuleType]) -> ModuleType:
    return bench_program("random_labs")


def test_the_same_seed_draws_the_same_labs_of_few_ranks(script: ModuleType) -> None:
    labs = list(script.draw(1, 40))
    assert labs == list(script.draw(1, 40)) and labs != list(script.draw(2, 40))
    assert len(set(labs)) > 20
    for lab in labs:
        machine = _core.Machine.synthetic(lab)
        assert 6 <= _core.Job(machine, "block").size <= script.MOST_RANKS
    assert any("leaf" in lab for lab in labs) and any("leaf" not in lab for lab in labs)


def test_sizes_are_spread_over_the_range_and_fit_numbers(script: ModuleType) -> None:
    sizes = script.sizes_of(3, 6)
    assert sizes == sorted(set(sizes)) and len(sizes) == 6
    assert all(size % 8 == 0 and 56 <= size <= 65536 for size in sizes)
    assert sizes[0] < 256 and sizes[-1] > 16384


def test_the_table_counts_verdicts_and_the_page_names_what_lost(script: ModuleType) -> None:
    cells = [
        script.Cell("8node:2core", "mpich", "bcast", 4096, 2e-3, 1e-3, 0.5, "faster", "k_nomial"),
        script.Cell("8node:2core", "openmpi", "bcast", 4096, 1e-3, 2e-3, 2.0, "slower", "linear"),
    ]
    assert script.table_of(cells)[-1] == "| all | 2 | 1 | 0 | 0 | 1 | 2.00 | 1.00 |"
    page = script.page_of(["8node:2core"], [4096], cells, ["8node:2core: bad"], "random_labs.py --draw 1")
    assert "    random_labs.py --draw 1\n" in page
    assert "- bcast 4K, openmpi, 8node:2core: 2.00 slower, 2 ms by linear, 1 ms without" in page
    assert "bcast 4K, mpich" not in page
    assert "## Missing or wrong\n\n- 8node:2core: bad\n" in page


def test_cells_that_are_missing_or_wrong_are_told(script: ModuleType) -> None:
    row = {
        "mpi": "mpich", "collective": "bcast", "size_bytes": 64, "alone": {"median_s": 1e-3},
        "palmette": {"median_s": 2e-3},
        "ratio": 2.0, "verdict": "slower", "algorithm": "linear", "wrong": False,
    }  # fmt: skip
    cells, told = script.taken("8node", [row, row | {"ratio": None}, row | {"wrong": True}], 4)
    assert [cell.ratio for cell in cells] == [2.0]
    assert told == "bcast of 64 bytes is wrong; 2 of 4 cells weren't measured, or have too few pairs for a ratio"
    assert script.table_of([])[-1].startswith("|---")


def test_a_lab_that_cannot_be_is_told(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--lab", "3leaf:nonsense", "--mpi", "mpich"]) == 2
    assert "random_labs: 3leaf:nonsense: " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        script.main(["--draw", "0"])
