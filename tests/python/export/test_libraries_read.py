"""The real libraries read what is exported: another algorithm runs, a rule is listed, a broken file is refused."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from palmette import _core
from palmette.bench.runner import measure
from palmette.bench.settings import COLLECTIVES, Settings
from palmette.cli.main import main
from palmette.export.decisions import FUNCTIONS
from palmette.export.make import make_exports
from palmette.export.mpich_coordinates import TREES
from palmette.export.openmpi_match import NUMBERS
from palmette.measure.errors import BenchError
from palmette.measure.places import LocalPlace, program
from palmette.mpi import install as mpi_install
from palmette_lab.lab import Lab

from .conftest import RANKS, table_of

pytestmark = pytest.mark.mpi

ONE_RULE = ("alltoallv", "barrier", "scan", "exscan", "gather", "scatter")
"""Functions without rules by size, in one library at least."""

Operands = Callable[..., subprocess.CompletedProcess[str]]
RING = f"{RANKS - 1}/{(RANKS - 1) * 4096 // RANKS} " * RANKS + "right"
"""Each rank combines a quarter of 4096 elements three times: a ring, and neither a tree nor exchanges of the whole
vector."""


def export(folder: Path, form: str, table: _core.Table, job: _core.Job, *, commutative: bool = True) -> dict[str, str]:
    """Write an export and return its variables."""
    try:
        (made,) = make_exports([form], table, job, commutative=commutative)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    for name, text in made.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return made.environment(folder)


def test_mpich_takes_the_algorithm_of_its_tuning_file(operands: Operands, job: _core.Job, tmp_path: Path) -> None:
    table = table_of([{"function": "allreduce", "algorithm": "ring"}])
    environment = export(tmp_path, "mpich-tuning", table, job)
    assert operands("mpich", {}, "allreduce", "4096").stdout.strip() != RING
    done = operands("mpich", environment, "allreduce", "4096")
    assert done.stdout.strip() == RING, done.stderr


def test_mpich_keeps_its_own_below_the_size_of_a_rule(operands: Operands, job: _core.Job, tmp_path: Path) -> None:
    rows = [
        {"function": "allreduce", "max_bytes": 8192, "algorithm": "mpi"},
        {"function": "allreduce", "algorithm": "ring"},
    ]
    environment = export(tmp_path, "mpich-tuning", table_of(rows), job)
    assert operands("mpich", environment, "allreduce", "4096").stdout.strip() == RING
    assert "2/2048" in operands("mpich", environment, "allreduce", "1024").stdout


def test_mpich_refuses_a_tuning_file_with_an_unknown_algorithm(
    operands: Operands, job: _core.Job, tmp_path: Path
) -> None:
    environment = export(tmp_path, "mpich-tuning", table_of([{"function": "allreduce", "algorithm": "ring"}]), job)
    path = Path(environment["MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"])
    path.write_text(path.read_text().replace("MPIR_Allreduce_intra_ring", "MPIR_Allreduce_intra_rong"))
    assert operands("mpich", environment, "allreduce", "4096").returncode != 0


def test_mpich_makes_trees_by_the_coordinates(operands: Operands, job: _core.Job, tmp_path: Path) -> None:
    environment = export(tmp_path, "mpich-coordinates", _core.Table.built_in(), job)
    # Ranks 2 and 3 are behind the other switch: 3 gives to 2, which gives to 0.
    assert operands("mpich", environment, "reduce", "4096").stdout.split()[:4] == ["2/8192", "0/0", "1/4096", "0/0"]
    scattered = _core.Job(_core.Machine.synthetic("2leaf:1node:2core"), "cyclic")
    environment = export(tmp_path, "mpich-coordinates", _core.Table.built_in(), scattered)
    assert operands("mpich", environment, "reduce", "4096").stdout.split()[:4] == ["2/8192", "1/4096", "0/0", "0/0"]


def mapped(folder: Path, machine: str, together: Sequence[int]) -> dict[str, str]:
    """Map four ranks, those of `together` close to each other; return the variables for trees by the file of `map`."""
    matrix, file = folder / "matrix.txt", folder / "coordinates.txt"
    rows = [[int(a != b and a in together and b in together) << 20 for b in range(RANKS)] for a in range(RANKS)]
    matrix.write_text("\n".join(" ".join(map(str, row)) for row in rows) + "\n", encoding="utf-8")
    assert main(["map", "--matrix", str(matrix), "--machine", machine, "--write", f"coordinates={file}"]) == 0
    return {"MPIR_CVAR_COORDINATES_FILE": str(file), **TREES["reduce"]}


def test_mpich_makes_trees_by_the_coordinates_of_a_mapped_order(operands: Operands, tmp_path: Path) -> None:
    # Each switch's first rank takes from its second, and rank 0 then from the other switch's first.
    environment = mapped(tmp_path, "2leaf:1node:2core", (0, 3))
    assert operands("mpich", environment, "reduce", "4096").stdout.split()[:4] == ["2/8192", "1/4096", "0/0", "0/0"]
    environment = mapped(tmp_path, "2leaf:1node:2core", (0, 1))
    assert operands("mpich", environment, "reduce", "4096").stdout.split()[:4] == ["2/8192", "0/0", "1/4096", "0/0"]


@pytest.mark.parametrize(
    ("together", "by_pods", "by_switches"),
    [
        # Rank 0 takes from both others of its pod and from the other pod. By switches alone that is a tree of four.
        ((0, 2, 3), ["3/12288", "0/0", "0/0", "0/0"], ["2/8192", "1/4096", "0/0", "0/0"]),
        # Rank 0 is alone, and takes from rank 1, which takes from the others of its pod.
        ((1, 2, 3), ["1/4096", "2/8192", "0/0", "0/0"], ["2/8192", "1/4096", "0/0", "0/0"]),
    ],
)
def test_mpich_follows_pods_in_the_coordinates_of_a_mapped_order(
    operands: Operands, tmp_path: Path, together: tuple[int, ...], by_pods: list[str], by_switches: list[str]
) -> None:
    environment = mapped(tmp_path, "2pod:3+1leaf:1node:1core", together)
    path = Path(environment["MPIR_CVAR_COORDINATES_FILE"])
    text = path.read_text(encoding="utf-8")
    groups = [line.split()[1] for line in text.splitlines()[1:]]
    assert [rank for rank in range(RANKS) if groups[rank] == groups[together[0]]] == list(together)
    assert set(groups) == {"0", "1"}
    assert operands("mpich", environment, "reduce", "4096").stdout.split()[:4] == by_pods
    path.write_text(re.sub(r"(?m)^(\d+): \d+ ", r"\1: 0 ", text), encoding="utf-8")
    assert operands("mpich", environment, "reduce", "4096").stdout.split()[:4] == by_switches


def test_mpich_follows_pods_in_the_coordinates_of_an_export(operands: Operands, tmp_path: Path) -> None:
    pods = _core.Job(_core.Machine.synthetic("2pod:3+1leaf:1node:1core"))
    environment = export(tmp_path, "mpich-coordinates", _core.Table.built_in(), pods)
    assert operands("mpich", environment, "reduce", "4096").stdout.split()[:4] == ["3/12288", "0/0", "0/0", "0/0"]


@pytest.mark.parametrize("form", ["mpich-coordinates", "mpich-tuning"])
def test_mpich_stays_right_for_operations_that_do_not_commute(
    operands: Operands, job: _core.Job, tmp_path: Path, form: str
) -> None:
    rows = [{"function": "allreduce", "algorithm": "ring"}, {"function": "reduce", "algorithm": "by_topology"}]
    environment = export(tmp_path, form, table_of(rows), job, commutative=False)
    assert operands("mpich", environment, "order", "64").stdout.strip() == "right"


def test_open_mpi_takes_the_algorithm_of_its_rule_file(operands: Operands, job: _core.Job, tmp_path: Path) -> None:
    environment = export(tmp_path, "openmpi-tuned", table_of([{"function": "allreduce", "algorithm": "ring"}]), job)
    assert operands("openmpi", {}, "allreduce", "4096").stdout.strip() != RING
    done = operands("openmpi", environment, "allreduce", "4096")
    assert done.stdout.strip() == RING, done.stderr


def test_open_mpi_stays_right_for_operations_that_do_not_commute(
    operands: Operands, job: _core.Job, tmp_path: Path
) -> None:
    rows = [{"function": name, "algorithm": "ring"} for name in ("allreduce", "reduce_scatter")]
    rows += [{"function": "reduce", "algorithm": "k_nomial"}]
    environment = export(tmp_path, "openmpi-tuned", table_of(rows), job, commutative=False)
    assert operands("openmpi", environment, "order", "64").stdout.strip() == "right"


def test_han_lists_the_rules_of_its_file(operands: Operands, job: _core.Job, tmp_path: Path) -> None:
    rows = [
        {"function": "bcast", "max_bytes": 1023, "algorithm": "by_topology:node=linear"},
        {"function": "bcast", "algorithm": "linear"},
    ]
    environment = export(tmp_path, "openmpi-han", table_of(rows), job)
    told = {"OMPI_MCA_coll_base_verbose": "10", "OMPI_MCA_coll_han_dump_dynamic_rules": "1"}
    done = operands("openmpi", {**environment, **told}, "allreduce", "16")
    text = done.stdout + done.stderr
    listed = re.findall(
        r"\(bcast\) topology level 2 \(global_communicator\) configuration size (\d+) message size (\d+)"
        r" -> collective component \d+ \((\w+)\)",
        text,
    )
    assert set(listed) >= {("4", "0", "han"), ("4", "1024", "tuned"), ("5", "0", "han"), ("1", "0", "han")}, text[
        -2000:
    ]
    assert "algorithm 'simple'" in text


@pytest.fixture
def lab(make_lab: Callable[[str, str], Lab]) -> Lab:
    """Two hosts of two places behind two switches: nodes and network are different things here."""
    return make_lab("2leaf:1node:2core", "export-test")


@pytest.mark.root
@pytest.mark.parametrize(
    ("name", "form"), [("mpich", "mpich-tuning"), ("openmpi", "openmpi-tuned"), ("openmpi", "openmpi-han")]
)
def test_rules_hold_between_hosts_where_libraries_put_nodes_together_by_themselves(
    operands_program: Callable[[str], Path], lab: Lab, tmp_path: Path, name: str, form: str
) -> None:
    made = _core.Job.on_hosts(_core.Machine.from_file(lab.topology_path), lab.place("block"))
    rows = [
        {"function": "allreduce", "max_bytes": 1023, "algorithm": "mpi"},
        {"function": "allreduce", "algorithm": "ring"},
    ]
    environment = export(tmp_path, form, table_of(rows), made)
    told = {}
    for number in ("64", "4096"):
        for which, variables in (("own", {}), ("exported", environment)):
            done = lab.run(
                [str(operands_program(name)), "allreduce", number], mpi=name, env=variables, capture=True, timeout_s=60
            )
            assert done.stdout.strip().endswith("right"), done.stderr
            told[which, number] = done.stdout.strip()
    assert told["exported", "4096"] == RING
    assert told["own", "4096"] != RING
    assert told["exported", "64"].split()[0] != f"{RANKS - 1}/{(RANKS - 1) * 64 // RANKS}"


RULES_FOR_ALL = [
    *({"function": name, "max_bytes": 1023, "algorithm": "mpi"} for name in FUNCTIONS if name not in ONE_RULE),
    {"function": "allreduce", "algorithm": "rabenseifner"},
    {"function": "bcast", "max_bytes": 8191, "algorithm": "chain:segment=4K"},
    {"function": "bcast", "algorithm": "scatter_allgather"},
    {"function": "reduce", "algorithm": "reduce_scatter_gather"},
    {"function": "allgather", "algorithm": "ring"},
    {"function": "allgatherv", "algorithm": "ring"},
    {"function": "reduce_scatter", "algorithm": "pairwise"},
    {"function": "reduce_scatter_block", "algorithm": "recursive_halving"},
    {"function": "alltoall", "algorithm": "bruck:radix=4"},
    {"function": "alltoallv", "algorithm": "linear"},
    {"function": "barrier", "algorithm": "dissemination"},
    {"function": "scan", "algorithm": "recursive_doubling"},
    {"function": "exscan", "algorithm": "linear"},
    {"function": "gather", "algorithm": "linear"},
    {"function": "scatter", "algorithm": "linear"},
]
"""Rules for every function; for small blocks the library's own, which then stands below conditions of ours."""


POLITE = {"mpich": {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}}
"""Settings with which an MPI gives way while it polls: beside other tests it takes a minute otherwise."""


@pytest.mark.parametrize(
    ("name", "form"),
    [pytest.param("mpich", "mpich-tuning", marks=pytest.mark.long), ("openmpi", "openmpi-han")],
)
def test_all_collectives_stay_right_with_the_files(name: str, form: str, job: _core.Job, tmp_path: Path) -> None:
    environment = export(tmp_path, form, table_of(RULES_FOR_ALL), job)
    try:
        mpi = mpi_install.find(name)
        program("mpich" if name == "mpich" else "ompi")
    except (mpi_install.MpiNotFoundError, BenchError) as error:
        pytest.skip(str(error))
    settings = Settings(
        collectives=COLLECTIVES, sizes=(64, 4096, 16384), placements=("block",), mpis=(mpi.name,), seconds=0,
        min_pairs=1, max_pairs=1, warmup=1, preload=False, env={**POLITE.get(name, {}), **environment},
    )  # fmt: skip
    (measured,) = measure(settings, LocalPlace(RANKS, tmp_path)).jobs
    assert measured.error is None
    assert len(measured.cells) == settings.cells_per_job
    assert not any(cell.wrong_alone or cell.wrong_palmette for cell in measured.cells)


def test_the_numbers_of_open_mpis_algorithms_are_those_of_the_library() -> None:
    try:
        mpi = mpi_install.find("openmpi")
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    info = subprocess.run(
        [mpi.prefix / "bin" / "ompi_info", "--param", "coll", "tuned", "--level", "9", "--parsable"],
        env={**os.environ, **mpi.environment()}, capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    found = {
        (function, name): int(number)
        for function, number, name in re.findall(r"coll_tuned_(\w+)_algorithm:enumerator:value:(\d+):(\w+)", info)
    }
    assert found, info[:500]
    for function, names in NUMBERS.items():
        for name, number in names.items():
            assert found[function, name] == number, (function, name)
