"""Write the wrappers of the matrix library from the prototypes in an MPI's mpi.h.

Usage: generate_matrix.py FUNCTIONS DIRECTORY ABI COMPILER [-I... -D...]

For each function in the list that mpi.h declares, DIRECTORY/palmette/matrix/wrappers.hpp declares `on_MPI_X`, the
handler of the program's calls, and `next::MPI_X`, which calls whatever comes after this library (the preload library,
another tool or the MPI); DIRECTORY/matrix_wrappers.cpp defines both, with `MPI_X` and its Fortran names
(generate_fortran.py). `on_MPI_X` is written by hand for hooks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from generate_fortran import can_be_called, entry_points, fortran_names
from mpi_prototypes import Prototype, declared_functions, preprocessed_mpi_h
from wrappers_header import entry_point, finder, header

KINDS = ("hook", "message", "lasting", "neighbours", "uncounted")


def functions_of(kind: str, name: str) -> dict[str, str]:
    """Return the MPI functions that one line of the list stands for, each with its kind."""
    if kind == "hook":
        return {name: kind}
    if kind != "neighbours":
        return {name: kind, f"{name}_c": kind}
    nonblocking = f"MPI_Ineighbor{name.removeprefix('MPI_Neighbor')}"
    return {
        **{form: kind for plain in (name, nonblocking) for form in (plain, f"{plain}_c")},
        **dict.fromkeys((f"{name}_init", f"{name}_init_c"), "lasting neighbours"),
    }


def read_kinds(path: Path) -> dict[str, str]:
    """Return each function of the list with its kind. Raises ValueError with the line that has no known kind."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] not in KINDS:
            raise ValueError(f"{path}:{number}: '{line}' is not one of {', '.join(KINDS)} with an MPI_NAME")
        found.update(functions_of(*words))
    return found


def counted(prototype: Prototype, kind: str) -> str:
    """Return the statement that counts a successful call."""
    names = [p.name for p in prototype.parameters]
    request = "*request, " if "lasting" in kind else ""
    counters = "Counters::instance()"
    if kind == "uncounted":
        return f"{counters}.one_sided()"
    if kind.endswith("neighbours"):
        function = "keep_neighbours" if request else "sent_to_neighbours"
        count = "sendcounts" if "sendcounts" in names else "sendcount"
        types = "sendtypes" if "sendtypes" in names else "sendtype"
        return f"{counters}.{function}({request}comm, {count}, {types})"
    count, datatype = ("sendcount", "sendtype") if "sendcount" in names else ("count", "datatype")
    if "partitions" in names:
        count = f"static_cast<std::int64_t>(partitions) * {count}"
    return f"{counters}.{'keep' if request else 'sent'}({request}comm, dest, {count}, {datatype})"


def wrapper(prototype: Prototype, kind: str) -> str:
    """Return the definitions of one function."""
    p = prototype
    text = finder(p)
    if kind != "hook":
        text += f"""\
int on_{p.name}({p.declared}) {{
    const Outermost call;
    const int code = next::{p.name}({p.arguments});
    if (code == MPI_SUCCESS && call) {counted(p, kind)};
    return code;
}}
"""
    return f"namespace palmette::matrix {{\n{text}}}  // namespace palmette::matrix\n{entry_point(p, 'matrix')}"


def source(prototypes: list[Prototype], kinds: dict[str, str], abi: str) -> str:
    """Return the text of matrix_wrappers.cpp."""
    parts = [
        """\
// Made by tools/generate_matrix.py.
#include "palmette/interpose/fortran.hpp"
#include "palmette/matrix/counters.hpp"
#include "palmette/matrix/wrappers.hpp"

using palmette::interpose::Word;
"""
    ]
    parts += [wrapper(p, kinds[p.name]) for p in prototypes]
    parts += [
        entry_points(p, names, "matrix")
        for p in prototypes
        if abi in ("mpich", "ompi") and can_be_called(p) and (names := fortran_names(p, abi))
    ]
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Preprocess mpi.h with the given compiler and write both files."""
    path, directory, abi, compiler = Path(arguments[0]), Path(arguments[1]), arguments[2], arguments[3:]
    kinds = read_kinds(path)
    prototypes = declared_functions(preprocessed_mpi_h(compiler), kinds)
    if not prototypes:
        print(f"{path}: mpi.h declares none of these functions; is the prefix right?", file=sys.stderr)
        return 1
    include = directory / "palmette" / "matrix"
    include.mkdir(parents=True, exist_ok=True)
    (include / "wrappers.hpp").write_text(header(prototypes, __file__, "matrix"), encoding="utf-8")
    (directory / "matrix_wrappers.cpp").write_text(source(prototypes, kinds, abi), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
