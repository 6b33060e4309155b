"""What docs/guide/add-an-algorithm.md promises: an algorithm is one file and one line.

The guide's example is put into a copy of the tree as it says; then it is verified, predicted, tuned, chosen, explained
and compared with an MPI, and no other file was changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import conftest
from .conftest import ROOT, Mpi, forced, pretended

EXAMPLE = ROOT / "tests" / "cpp" / "collectives" / "gather_chain.cpp"
JOB = ("--machine", "2node@10Gbit/s:4core")

pytestmark = [pytest.mark.mpi, pytest.mark.long]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the tree with the example among the algorithms, built as `make demo` does."""
    copy = tmp_path_factory.mktemp("tree")
    folders = ("src", "tools", "cmake", "python", "tests", "studies")
    for name in (*folders, "CMakeLists.txt", "CMakePresets.json", "pyproject.toml"):
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("*.so", "__pycache__")
            )
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, copy / name)
    for name in (".venv", ".mpi"):
        (copy / name).symlink_to(ROOT / name)
    shutil.copy2(EXAMPLE, copy / "src" / "palmette" / "collectives" / "gather_scatter" / "chain.cpp")
    rows = copy / "src" / "palmette" / "collectives" / "rows.hpp"
    text = rows.read_text(encoding="utf-8")
    assert text.count("ROW(gather_linear)") == 1
    rows.write_text(text.replace("ROW(gather_linear)", "ROW(gather_linear) ROW(gather_chain)"), encoding="utf-8")
    built = subprocess.run(
        [copy / "tools" / "build.sh", "release", "2", "palmette_demo"], check=False, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stdout + built.stderr
    yield copy
    shutil.rmtree(copy)


def printed(tree: Path, code: str, *words: str) -> str:
    """What Python code prints with the copy's package; its finder would get the one that is installed."""
    of_the_copy = "import sys; sys.meta_path = [one for one in sys.meta_path if 'editable' not in type(one).__module__]"
    done = subprocess.run(
        [sys.executable, "-c", f"{of_the_copy}; {code}", *words],
        env={**os.environ, "PYTHONPATH": str(tree / "python")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def palmette(tree: Path, *words: str) -> Any:
    """What the copy's command says in JSON."""
    return json.loads(printed(tree, "from palmette.cli.main import main; sys.exit(main())", *words, "--json"))


def test_it_is_listed_and_verified(tree: Path) -> None:
    listed = [one["name"] for one in palmette(tree, "plan", "--list") if one["collective"] == "gather"]
    assert listed.index("chain") == 1, "listed where its line stands"
    assert palmette(tree, "plan", "gather", *JOB, "--algorithm", "chain", "--verify")


def test_the_model_predicts_it_among_those_that_it_chooses_from(tree: Path) -> None:
    assert '"chain"' in json.dumps(palmette(tree, "plan", "gather", *JOB, "--sizes", "1K", "--predict"))


def test_a_table_chooses_it_and_explain_says_so(tree: Path, tmp_path: Path) -> None:
    table = {"function": "gather", "algorithm": "chain", "why": "to be read"}
    (tmp_path / "table.json").write_text(
        json.dumps({"format": "palmette-table", "version": 1, "rows": [table]}), encoding="utf-8"
    )
    found = palmette(tree, "explain", "gather", "1K", *JOB, "--table", str(tmp_path / "table.json"))
    assert found["algorithm"] == "chain"


def test_it_is_tuned(tree: Path) -> None:
    code = (
        "from palmette import _core; from palmette.tune.candidates import candidates; "
        "print(candidates(_core.Job(_core.Machine.synthetic('2node:4core'), 'block'), 'gather', 1024))"
    )
    assert "'chain'" in printed(tree, code)


@pytest.mark.parametrize("spec", ["chain", "chain:longest=64"])
def test_results_under_an_mpi_are_right(
    tree: Path, mpi_called: Callable[[str], Mpi], spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "PRELOADS", tree / "python" / "palmette" / "lib")
    settings = forced(pretended(5, "001"), gather=spec)
    ran = mpi_called("mpich").run(5, "random_arguments", "--seed", 7, "--cases", 300, settings=settings)
    ran.assert_right()
    assert ran.served()["gather"].get(spec, 0) > 0
