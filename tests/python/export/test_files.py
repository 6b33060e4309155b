"""What exports say, without running any library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.export import mpich_match, openmpi_match, ucc_tune
from palmette.export.decisions import Place, Spec, decide, place_of
from palmette.export.make import FORMS, make_exports
from palmette.export.match import match_all
from palmette.export.mpich_defaults import Defaults
from palmette.export.mpich_tuning import tuning
from palmette.mpi import install as mpi_install
from palmette.plan.listing import list_json

from .conftest import table_of

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
PLACE = Place(16, 8, (2,) * 8, scattered=False)
DEFAULTS = Defaults(
    {
        "collective=allreduce": {"comm_type=intra": {"algorithm=A": {}}, "comm_type=inter": {"algorithm=I": {}}},
        "collective=alltoall": {"comm_type=intra": {"algorithm=B": {}}},
        "collective=exscan": {"algorithm=E": {}},
        "collective=scan": {"algorithm=S": {}},
    },
    {"collective=allreduce": {"comm_type=intra": {"composition=C": {}}}},
)


@pytest.fixture
def lab_job() -> _core.Job:
    return _core.Job(_core.Machine.synthetic(LAB), "random:1")


def test_decisions_follow_the_rows_of_the_table(lab_job: _core.Job) -> None:
    rows = [
        {"function": "bcast", "max_bytes": 100, "algorithm": "linear"},
        {"function": "bcast", "max_bytes": 5000, "algorithm": "chain"},
        {"function": "bcast", "min_ranks": 17, "algorithm": "bine"},
    ]
    found = decide(table_of(rows), lab_job, "mpich", ["bcast", "barrier"])
    assert [(one.function, one.min_bytes, one.max_bytes, one.algorithm) for one in found] == [
        ("bcast", 0, 100, "linear"), ("bcast", 101, 5000, "chain"), ("bcast", 5001, None, None), ("barrier", 0, None,
         None),
    ]  # fmt: skip


def test_rows_for_another_mpi_do_not_count(job: _core.Job) -> None:
    table = table_of(
        [{"function": "scan", "mpi": "impi", "algorithm": "linear"}, {"function": "scan", "algorithm": "all"}]
    )
    assert [one.algorithm for one in decide(table, job, "mpich", ["scan"])] == ["all"]


@pytest.mark.parametrize("matcher", [mpich_match.match, openmpi_match.match, ucc_tune.match])
def test_every_algorithm_of_the_registry_has_a_match_or_a_reason(matcher: Callable[..., Any]) -> None:
    for scattered in (False, True):
        place = Place(12, 6, (2,) * 6, scattered)
        for row in list_json(None):
            if row["collective"] in openmpi_match.NUMBERS:
                match = matcher(row["collective"], Spec.parse(row["name"]), place)
                assert match.name or match.remark, (row["collective"], row["name"])


def test_open_mpi_is_told_sizes_as_it_measures_them(lab_job: _core.Job) -> None:
    rows = [
        {"function": "alltoall", "max_bytes": 1023, "algorithm": "bruck"},
        {"function": "alltoall", "algorithm": "linear"},
        {"function": "bcast", "max_bytes": 1023, "algorithm": "linear"},
        {"function": "bcast", "algorithm": "k_nomial:segment=8K"},
    ]
    (made,) = make_exports(["openmpi-tuned"], table_of(rows), lab_job)
    rules = [re.sub(r"\s*#.*", "", line) for line in made.files["openmpi-tuned.rules"].splitlines()]
    rules = [line for line in rules if line]
    assert rules == [
        "2",
        "3", "3", "0 1", "0 0 0 0", "16 2", "0 3 0 0", "16384 1 0 0", "17 1", "0 0 0 0",
        "7", "3", "0 1", "0 0 0 0", "16 2", "0 1 0 0", "1024 6 0 8192", "17 1", "0 0 0 0",
    ]  # fmt: skip


def test_mpich_rules_hold_for_communicators_of_the_size_of_the_job_only(lab_job: _core.Job) -> None:
    rows = [{"function": "allreduce", "max_bytes": 1023, "algorithm": "ring"}]
    lines = match_all(
        decide(table_of(rows), lab_job, "mpich", ["allreduce"]), mpich_match.match, PLACE, commutative=True
    )
    made = tuning(lines, PLACE, DEFAULTS, "")
    tree = json.loads(re.sub(r"/\*.*?\*/", "", made.files["mpich-algorithms.json"], flags=re.DOTALL))
    default = {"algorithm=A": {}}
    ring = {"is_commutative=yes": {"algorithm=MPIR_Allreduce_intra_ring": {}}, "is_commutative=no": default}
    assert tree["collective=allreduce"] == {
        "comm_type=intra": {
            "comm_size<16": default,
            "comm_size<=16": {"avg_msg_size<1024": ring, "avg_msg_size=any": default},
            "comm_size=any": default,
        },
        "comm_type=inter": {"algorithm=I": {}},
    }
    assert tree["collective=alltoall"] == DEFAULTS.algorithms["collective=alltoall"]
    flat = json.loads(re.sub(r"/\*.*?\*/", "", made.files["mpich-compositions.json"], flags=re.DOTALL))
    intra = flat["collective=allreduce"]["comm_type=intra"]["comm_size<=16"]
    assert intra["avg_msg_size<1024"]["is_commutative=yes"] == {
        "composition=MPIDI_Allreduce_intra_composition_beta": {}
    }


def test_mpich_is_not_asked_for_sizes_that_it_can_not_tell(lab_job: _core.Job) -> None:
    rows = [
        {"function": "scan", "max_bytes": 100, "algorithm": "recursive_doubling"},
        {"function": "scan", "algorithm": "linear"},
    ]
    lines = match_all(decide(table_of(rows), lab_job, "mpich", ["scan"]), mpich_match.match, PLACE, commutative=True)
    made = tuning(lines, PLACE, DEFAULTS, "")
    assert [line.match.name for line in made.lines] == [None, None]
    assert "can't distinguish sizes of scan" in made.files["mpich-algorithms.json"]


def test_what_does_not_commute_is_left_alone_unless_told(lab_job: _core.Job) -> None:
    table = table_of([{"function": "allreduce", "algorithm": "ring"}])
    (careful,) = make_exports(["openmpi-tuned"], table, lab_job)
    (told,) = make_exports(["openmpi-tuned"], table, lab_job, commutative=True)
    names = [
        [line.match.name for line in made.lines if line.decision.function == "allreduce"] for made in (careful, told)
    ]
    assert names == [[None], ["ring"]]
    assert "--commutative" in careful.files["openmpi-tuned.rules"]


def test_ucc_strings_have_its_form(lab_job: _core.Job) -> None:
    rows = [
        {"function": "allgather", "max_bytes": 1023, "algorithm": "bruck"},
        {"function": "allgather", "algorithm": "ring"},
        {"function": "allreduce", "max_bytes": 1023, "algorithm": "leaders"},
        {"function": "allreduce", "algorithm": "leaders:between=ring"},
        {"function": "reduce_scatter_block", "max_bytes": 1023, "algorithm": "ring"},
        {"function": "barrier", "algorithm": "dissemination"},
    ]
    (made,) = make_exports(["ucc-tune"], table_of(rows), lab_job)
    variables = made.variables
    plain = ["allgather:0-16383:host:[16-16]:inf", "allgather:16384-inf:host:[16-16]:inf",
             "reduce_scatter:0-1023:host:[16-16]:inf"]  # fmt: skip
    assert variables["UCC_TL_UCP_TUNE"].split("#") == [
        rule + name for rule, name in zip(plain, (":@bruck", ":@ring", ":@ring"), strict=True)
    ]
    assert variables["UCC_CL_HIER_TUNE"] == "allreduce:0-inf:host:[16-16]:inf:@rab"
    assert variables["UCC_CL_BASIC_TUNE"].split("#") == plain
    (barrier,) = [line for line in made.lines if line.decision.function == "barrier"]
    assert barrier.match.name is None


def test_han_gets_nothing_where_nodes_are_uneven() -> None:
    job = _core.Job(_core.Machine.synthetic(LAB), "block", 15)
    assert not place_of(job).even_nodes
    (made,) = make_exports(["openmpi-han"], table_of([{"function": "bcast", "algorithm": "by_topology"}]), job)
    assert [line.match.name for line in made.lines if line.decision.function == "bcast"] == [None]


def test_the_command_writes_files_and_says_how_to_use_them(palmette: Callable[..., Any], tmp_path: Path) -> None:
    forms = [form for form in FORMS if form != "mpich-tuning"]
    for form in forms:
        result = palmette("export", "--format", form, "--machine", LAB, "--placement", "random:1", "-o", tmp_path)
        assert result.status == 0, result.err
        wide = [
            line for line in result.out.splitlines() if len(line) > 80 and not line.startswith(("use: ", "  export "))
        ]
        assert wide == []
    assert {path.name for path in tmp_path.iterdir()} == {
        "mpich-coordinates.txt", "openmpi-tuned.rules", "openmpi-han.rules", "ucc.env",
    }  # fmt: skip
    document = json.loads(palmette("export", "--format", "ucc-tune", "--machine", LAB, "--json").out)
    assert document["exports"][0]["environment"]["UCC_CLS"] == "basic,hier"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name the cluster with --topology or --machine"),
        (("--machine", "2node", "--placement", "block", "--hosts", "a"), "--placement and --hosts both"),
        (("--machine", "2node", "--hosts", "nobody"), "nobody"),
        (("--topology", "none.json"), "none.json"),
        (("--machine", "2node", "--table", "none.json"), "none.json"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(
    palmette: Callable[..., Any], arguments: tuple[str, ...], message: str
) -> None:
    result = palmette("export", "--format", "ucc-tune", *arguments)
    assert (result.status, result.err.count("\n"), result.out) == (2, 1, "")
    assert message in result.err


def test_an_mpich_that_is_not_there_is_told(
    palmette: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALMETTE_MPI_MPICH", str(tmp_path))
    result = palmette("export", "--format", "mpich-tuning", "--machine", "2node:2core")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "PALMETTE_MPI_MPICH" in result.err


def test_every_mpich_tuning_starts_from_the_librarys_own(lab_job: _core.Job) -> None:
    try:
        (made,) = make_exports(["mpich-tuning"], _core.Table.built_in(), lab_job)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    tree = json.loads(re.sub(r"/\*.*?\*/", "", made.files["mpich-algorithms.json"], flags=re.DOTALL))
    assert {f"collective={name}" for name in ("bcast", "iallgather", "ineighbor_alltoallw", "exscan")} <= set(tree)
