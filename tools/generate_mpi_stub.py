"""Write the source of a library that exports what an mpi.h declares, for programs to be linked with.

Usage: generate_mpi_stub.py FILE COMPILER [-I... -D...]

With it a build needs an MPI's header and no library: the programs name the real one in DT_NEEDED (its soname), and the
loader binds them to the one that the user's launcher brings. The stub itself is never loaded or installed. Programs
are compiled with -fPIC, so that they take addresses of variables (`ompi_mpi_comm_world`) from the loader and the sizes
that they have here don't matter.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from generate_mpi_symbols import preprocessed, variables

FUNCTION = re.compile(r"\b(P?MPIX?_\w+|OMPI_C_\w+)\s*\(")


def source(text: str) -> str:
    """Return the text of the stub for a preprocessed mpi.h."""
    functions = set(FUNCTION.findall(text))
    lines = [f"void {name}(void) {{}}" for name in sorted(functions)]
    lines += [f"char {name}[1];" for name in sorted(variables(text) - functions)]
    return "// Made by tools/generate_mpi_stub.py.\n" + "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Preprocess mpi.h with the given compiler and write the stub."""
    file, compiler = Path(arguments[0]), arguments[1:]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source(preprocessed(compiler, "-P")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
