"""Write the function table through which the preload library calls the process's MPI.

Usage: generate_mpi_symbols.py DIRECTORY COMPILER [-I... -D...]

A program may dlopen its MPI late and with RTLD_LOCAL (Python modules do), where the dynamic loader resolves none of our
symbols, neither functions nor the constants that are variables (`ompi_mpi_comm_world`). Both are resolved explicitly:

    DIRECTORY/palmette_mpi_symbols.h  included first: PMPI_X and such constants become entries of a table
    DIRECTORY/mpi_symbols.cpp         the table, and the names by which palmette/mpi/library.cpp fills it

MPI_ functions get no entry: a call of one from within the preload library would be counted as the program's, so it must
stay an error of the link.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FUNCTION = re.compile(r"\b(PMPIX?_\w+|OMPI_C_\w+)\s*\(")
VARIABLE = re.compile(r"\bextern\b[^;(){}]*?\b(\w+)\s*(?:__attribute__\s*\(\([^;]*\)\)\s*)?;")
OPTIONAL = {
    "PMPI_Type_get_envelope_c": "MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*, int*",
    "PMPI_Type_get_contents_c": "MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int[], MPI_Aint[], "
    "MPI_Count[], MPI_Datatype[]",
    "PMPI_Pack_c": "const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Count*, MPI_Comm",
    "PMPI_Unpack_c": "const void*, MPI_Count, MPI_Count*, void*, MPI_Count, MPI_Datatype, MPI_Comm",
    "PMPIX_Comm_revoke": "MPI_Comm",
    "PMPIX_Comm_is_revoked": "MPI_Comm, int*",
}
"""Functions of newer MPIs and of extensions, with their parameters: the program's library may have them, though this
mpi.h doesn't."""
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)


def preprocessed(compiler: list[str], *flags: str) -> str:
    """Return mpi.h as the compiler, with its -I and -D, sees it."""
    return subprocess.run(
        [*compiler, "-E", *flags, "-x", "c", "-"],
        input="#include <mpi.h>\n",
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout


def variables(text: str) -> set[str]:
    """Return the variables that a preprocessed mpi.h declares."""
    return {name for name in VARIABLE.findall(text) if "mpi" in name.lower()}


def symbols(text: str, macros: str) -> list[str]:
    """Return the functions and variables that mpi.h declares and that aren't macros there, sorted."""
    return sorted((set(FUNCTION.findall(text)) | variables(text)) - set(MACRO.findall(macros)))


def header(names: list[str], optional: list[str]) -> str:
    """Return the text of palmette_mpi_symbols.h for all `names`, of which mpi.h doesn't declare the `optional` ones."""
    declared = "\n".join(f'extern "C" int {name}({OPTIONAL[name]});' for name in optional)
    members = "\n".join(f"    decltype(&::{name}) {name}_in_table;" for name in names)
    # Tests are programs that are linked with an MPI.
    macros = "\n".join(f"#define {name} (*::palmette::mpi::table.{name}_in_table)" for name in names)
    return f"""\
// Made by tools/generate_mpi_symbols.py.
#pragma once

#include <mpi.h>

#ifndef PALMETTE_LINKED_WITH_MPI
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
{declared}
namespace palmette::mpi {{

/// Addresses of the symbols of the process's MPI; null before it is found, and for symbols that it lacks.
struct Table {{
{members}
}};
extern __attribute__((visibility("hidden"))) constinit Table table;

}}  // namespace palmette::mpi
#pragma GCC diagnostic pop

{macros}
#endif
"""


def source(names: list[str]) -> str:
    """Return the text of mpi_symbols.cpp."""
    listed = "\n".join(f'    "{name}",' for name in names)
    return f"""\
// Made by tools/generate_mpi_symbols.py.
#include <array>

#include "palmette/mpi/library.hpp"

namespace palmette::mpi {{

constinit Table table{{}};

namespace {{

/// In the order of the table's members, which are pointers all.
constexpr std::array names = {{
{listed}
}};
static_assert(sizeof(Table) == names.size() * sizeof(void*));

__attribute__((constructor(101))) void at_load() {{ look_at_load(); }}

}}  // namespace

std::span<const char* const> symbol_names() {{ return names; }}
void** symbol_places() {{ return reinterpret_cast<void**>(&table); }}

}}  // namespace palmette::mpi
"""


def main(arguments: list[str]) -> int:
    """Preprocess mpi.h with the given compiler and write both files."""
    directory, compiler = Path(arguments[0]), arguments[1:]
    names = symbols(preprocessed(compiler, "-P"), preprocessed(compiler, "-dM"))
    if not any(name.startswith("PMPI_") for name in names):
        print(f"{directory}: mpi.h declares no PMPI_ function; is the prefix right?", file=sys.stderr)
        return 1
    optional = sorted(OPTIONAL.keys() - set(names))
    names = sorted([*names, *optional])
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "palmette_mpi_symbols.h").write_text(header(names, optional), encoding="utf-8")
    (directory / "mpi_symbols.cpp").write_text(source(names), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
