"""Write the wrappers of the preload library from the prototypes in an MPI's mpi.h.

Usage: generate_wrappers.py FUNCTIONS DIRECTORY COMPILER [-I... -D...]

For each function in the list that mpi.h declares, DIRECTORY/palmette/interpose/wrappers.hpp declares `on_MPI_X`, which the
interpose layer writes by hand, and `next::MPI_X`, which calls whatever comes after this library (another tool or the
MPI); DIRECTORY/wrappers.cpp exports the MPI_X that calls the former.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Prototype(NamedTuple):
    """One C function: name, parameters as declared, and their names."""

    name: str
    parameters: str
    arguments: str


def declared_functions(preprocessed: str, names: list[str]) -> list[Prototype]:
    """Return the prototypes of `names` in the text of a preprocessed mpi.h, in the order of `names`."""
    found = []
    for name in names:
        match = re.search(
            rf"\bint\s+{name}\s*\(([^;]*?)\)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)*;", preprocessed, re.DOTALL
        )
        if not match:
            continue
        parameters = " ".join(match.group(1).split())
        parameters = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", parameters).strip()
        found.append(Prototype(name, parameters, ", ".join(argument_names(parameters))))
    return found


def argument_names(parameters: str) -> list[str]:
    """Return the names in a parameter list such as `const int a[], char ***b`."""
    if parameters in ("", "void"):
        return []
    return [re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", part))[-1] for part in parameters.split(",")]


def header(prototypes: list[Prototype]) -> str:
    """Return the text of wrappers.hpp."""
    hooks = "\n".join(f"int on_{p.name}({p.parameters});" for p in prototypes)
    following = "\n".join(f"int {p.name}({p.parameters});" for p in prototypes)
    return f"""\
// Made by tools/generate_wrappers.py.
#pragma once

#include <mpi.h>

namespace palmette::interpose {{

// What the program's calls come to.
{hooks}

// What comes after this library: another tool, or the MPI.
namespace next {{
{following}
}}  // namespace next

}}  // namespace palmette::interpose
"""


def source(prototypes: list[Prototype]) -> str:
    """Return the text of wrappers.cpp."""
    parts = [
        "// Made by tools/generate_wrappers.py.",
        '#include "palmette/interpose/wrappers.hpp"',
        "",
        "#include <dlfcn.h>",
        "",
    ]
    for p in prototypes:
        parts.append(f"""\
namespace palmette::interpose::next {{
int {p.name}({p.parameters}) {{
    using Function = int (*)({p.parameters});
    static const Function function = [] {{
        void* found = dlsym(RTLD_NEXT, "{p.name}");
        return found ? reinterpret_cast<Function>(found) : &P{p.name};
    }}();
    return function({p.arguments});
}}
}}  // namespace palmette::interpose::next

extern "C" __attribute__((visibility("default"))) int {p.name}({p.parameters}) {{
    return palmette::interpose::on_{p.name}({p.arguments});
}}
""")
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Preprocess mpi.h with the given compiler and write both files."""
    listed, directory, compiler = Path(arguments[0]), Path(arguments[1]), arguments[2:]
    lines = (line.split("#")[0].strip() for line in listed.read_text(encoding="utf-8").splitlines())
    names = [line for line in lines if line]
    text = subprocess.run(
        [*compiler, "-E", "-P", "-x", "c", "-"],
        input="#include <mpi.h>\n",
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    prototypes = declared_functions(text, names)
    if not prototypes:
        print(f"{listed}: mpi.h declares none of these functions; is the prefix right?", file=sys.stderr)
        return 1
    include = directory / "palmette" / "interpose"
    include.mkdir(parents=True, exist_ok=True)
    (include / "wrappers.hpp").write_text(header(prototypes), encoding="utf-8")
    (directory / "wrappers.cpp").write_text(source(prototypes), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
