"""The one table of functions that move data: nothing of an MPI's header is missing from it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, "tools")

from counted_messages import counted, payload, read_kinds
from generate_recorder import functions
from mpi_prototypes import declared_functions, preprocessed_mpi_h

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ("MPI_Pack", "MPI_Unpack", "MPI_Reduce_local", "MPI_Type_get_attr", "MPI_Type_set_attr")
"""They take buffers and types, and move nothing between processes."""


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_every_function_with_a_buffer_and_a_type_moves_data_or_is_local(mpi: str) -> None:
    include = ROOT / ".mpi" / mpi / "include"
    compiler = shutil.which("cc")
    if not (include / "mpi.h").exists() or compiler is None:
        pytest.skip(f"no header of {mpi}, or no compiler")
    kinds = read_kinds(ROOT / "src" / "palmette" / "mpi" / "functions.txt")
    text = preprocessed_mpi_h([compiler, f"-I{include}"])
    prototypes = declared_functions(text, functions(text))
    assert len(prototypes) > 300
    for prototype in prototypes:
        types = " ".join(parameter.type for parameter in prototype.parameters)
        kind = kinds.get(prototype.name)
        if kind is not None:
            assert payload(prototype, kind), prototype.name
            assert counted(prototype, kind) or kind not in ("message", "lasting", "neighbours", "exchange")
        elif "void*" in types and "MPI_Datatype" in types:
            assert prototype.name.startswith(LOCAL), prototype.name


def test_a_line_that_says_nothing_known_is_named(tmp_path: Path) -> None:
    file = tmp_path / "functions.txt"
    file.write_text("# a comment\n\nmessage MPI_Send\nsomething MPI_Recv\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{file}:4: 'something MPI_Recv' is not one of message, lasting"):
        read_kinds(file)
