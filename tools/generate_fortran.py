"""Write the Fortran entry points of the preload library, for MPIs whose Fortran layer bypasses the C functions MPI_X.

Usage: generate_fortran.py FUNCTIONS FILE ABI COMPILER [-I... -D...]

The C functions that Fortran's calls reach, determined from the libraries (docs/reference/served.md):

    ompi    Open MPI calls PMPI_X for mpif.h, use mpi and use mpi_f08: every function has all its Fortran names here
    mpich   MPICH calls MPI_X, which the C wrappers see, but for use mpi_f08 functions without a choice buffer: PMPI_X
    abi     no Fortran layer of the standard ABI is known: nothing is written
    smpi    SimGrid's simulated MPI runs our own programs only, in C++: nothing is written

Each entry point turns Fortran's arguments into C's (palmette/interpose/fortran.hpp) and calls `on_MPI_X`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from generate_wrappers import all_functions
from mpi_prototypes import Parameter, Prototype, declared_functions, preprocessed_mpi_h, read_list
from wrappers_header import with_offers

BY_VALUE = {
    "MPI_Comm": "Comm",
    "MPI_Datatype": "Type",
    "MPI_Op": "Op",
    "MPI_Info": "Info",
    "MPI_Request": "Request",
    "MPI_Errhandler": "Errhandler",
}
"""Handles that C takes by value: PMPI_<this>_f2c."""
BY_ADDRESS = {
    "MPI_Request*": "Request",
    "MPI_Comm*": "Comm",
    "MPI_Datatype*": "Type",
    "MPI_Op*": "Op",
    "MPI_Message*": "Message",
    "MPI_Session*": "Session",
}
"""Handles that C changes: fortran::Changed<...>."""
FROM_ONE = {"index": "1", "indx": "1", "array_of_indices": "*outcount"}
"""Indices, which Fortran counts from 1, and how many there are."""

FROM_C = (
    "MPI_Comm_dup", "MPI_Comm_create", "MPI_Comm_create_group", "MPI_Comm_split", "MPI_Comm_split_type", "MPI_Cart_sub",
    "MPI_Intercomm_merge",
)  # fmt: skip
"""Functions that Fortran calls past palmette where it doesn't come by way of C: what they make is met later."""


WEIGHTS = ("weights", "sourceweights", "destweights")
"""Lists that may be MPI_UNWEIGHTED or MPI_WEIGHTS_EMPTY."""


def has_choice_buffer(prototype: Prototype) -> bool:
    """Return whether data of any type are passed."""
    return any(p.type in ("void*", "const void*") for p in prototype.parameters)


def has_large_integers(prototype: Prototype) -> bool:
    """Return whether it takes counts or addresses that aren't Fortran's default integers."""
    large = ("MPI_Count", "MPI_Count*", "MPI_Aint", "MPI_Aint*")
    return any(p.type.removeprefix("const ") in large for p in prototype.parameters)


def can_be_called(prototype: Prototype) -> bool:
    """Return whether Fortran's arguments convert to C's: not large counts, nor lists of types that outlive the call."""
    types = [p.type for p in prototype.parameters]
    lasting = "MPI_Request*" in types and "const MPI_Datatype*" in types
    if prototype.name in FROM_C or prototype.name.startswith("MPI_T_"):
        return False
    return not lasting and not has_large_integers(prototype)


def fortran_names(prototype: Prototype, abi: str) -> list[str]:
    """Return all names under which Fortran calls the function."""
    name = prototype.name.lower()
    if abi == "mpich":
        return [] if has_choice_buffer(prototype) else [f"{name}_f08_"]
    return [f"{name}_", name, f"{name}__", name.upper(), f"{name}_f08_"]


def converted(parameter: Parameter, prototype: Prototype) -> tuple[str, str]:
    """Return the declaration of Fortran's argument and the expression that C gets."""
    name, kind = parameter.name, parameter.type
    is_list = "[" in parameter.declared
    count = prototype.parameters[0].name
    if kind in ("void*", "const void*"):
        return f"void* {name}", f"fortran::buffer({name})"
    if kind == "int":
        return f"const MPI_Fint* {name}", f"*{name}"
    if name == "periods":
        return f"const MPI_Fint* {name}", f"fortran::Flags({name}, *ndims)"
    if name in WEIGHTS:
        return f"const MPI_Fint* {name}", f"fortran::weights({name})"
    if kind in ("int*", "const int*"):
        return f"MPI_Fint* {name}", name
    if kind in BY_VALUE:
        return f"const MPI_Fint* {name}", f"PMPI_{BY_VALUE[kind]}_f2c(*{name})"
    if kind == "MPI_Status*":
        return f"MPI_Fint* {name}", f"fortran::Statuses({name}, *{count})" if is_list else f"fortran::Status({name})"
    if kind == "const MPI_Datatype*":
        # With MPI_IN_PLACE there may be nothing behind the list of sending types.
        types = f"fortran::is_in_place(sendbuf) ? nullptr : {name}" if name == "sendtypes" else name
        return f"const MPI_Fint* {name}", f"fortran::Types({types}, PMPI_Comm_f2c(*comm))"
    if kind in ("MPI_Request*", "const MPI_Request*") and is_list:
        return f"MPI_Fint* {name}", f"fortran::Requests({name}, *{count})"
    if kind in BY_ADDRESS:
        makes = prototype.name.startswith(("MPI_I", "MPI_Mprobe")) or prototype.name.endswith("_init")
        new = ", true" if makes and kind in ("MPI_Request*", "MPI_Message*") else ""
        if (
            any(word in prototype.name for word in ("_create", "_dup", "_split"))
            or prototype.name == "MPI_Session_init"
        ):
            new = ", true"
        return f"MPI_Fint* {name}", f"fortran::{BY_ADDRESS[kind]}({name}{new})"
    raise ValueError(f"{prototype.name}: no rule for the parameter `{parameter.declared}`")


def entry_points(prototype: Prototype, names: list[str], layer: str) -> str:
    """Return the functions by all their names; `layer` holds the `on_MPI_X` that they call."""
    starts = prototype.name in ("MPI_Init", "MPI_Init_thread")
    parameters = [p for p in prototype.parameters if not starts or p.name not in ("argc", "argv")]
    pairs = [converted(p, prototype) for p in parameters]
    declared = ", ".join([*(declaration for declaration, _ in pairs), "MPI_Fint* ierror"])
    arguments = ", ".join([*(["nullptr", "nullptr"] if starts else []), *(argument for _, argument in pairs)])
    after = "".join(
        f"    fortran::count_as_fortran({p.name}, {FROM_ONE[p.name]});\n"
        for p in parameters
        if p.name in FROM_ONE and p.type == "int*"
    )
    alias = "" if layer == "interpose" else "namespace fortran = interpose::fortran;\n"
    text = f"""\
namespace palmette::{layer} {{
{alias}static void fortran_{prototype.name}({declared}) {{
    const int code = on_{prototype.name}({arguments});
{after}    if (ierror) *ierror = code;
}}
}}  // namespace palmette::{layer}
"""
    count = len(parameters) + 1
    words = ", ".join(f"Word w{i}" for i in range(count))
    passed = ", ".join(f"w{i}" for i in range(count))
    types = [declaration.rsplit(" ", 1)[0] for declaration, _ in pairs] + ["MPI_Fint*"]
    typed = ", ".join(f"palmette::interpose::argument<{kind}>(w{i})" for i, kind in enumerate(types))
    for name in names:
        text += f"""\
extern "C" __attribute__((visibility("default"))) void entry_{name}({words}) __asm__("{name}");
void entry_{name}({words}) {{
    static constinit palmette::interpose::PassOn pass_on{{"{name}"}};
    if (!palmette::mpi::is_ours(__builtin_return_address(0))) [[unlikely]]
        pass_on({passed});
    else
        palmette::{layer}::fortran_{prototype.name}({typed});
}}
"""
    return text


def source(prototypes: list[Prototype], abi: str) -> str:
    """Return the text of the C++ file."""
    parts = [
        """\
// Made by tools/generate_fortran.py.
#include "palmette/interpose/fortran.hpp"
#include "palmette/interpose/wrappers.hpp"

using palmette::interpose::Word;
"""
    ]
    for prototype in prototypes:
        names = fortran_names(prototype, abi) if can_be_called(prototype) else []
        if names:
            parts.append(entry_points(prototype, names, "interpose"))
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Preprocess mpi.h with the given compiler and write the file."""
    listed, target, abi, compiler = Path(arguments[0]), Path(arguments[1]), arguments[2], arguments[3:]
    prototypes: list[Prototype] = []
    if abi not in ("abi", "smpi"):
        prototypes = declared_functions(preprocessed_mpi_h(compiler), all_functions(read_list(listed)))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(with_offers(source(prototypes, abi)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
