"""Write a header that makes an MPI's symbols weak references.

Usage: generate_weak_mpi.py HEADER COMPILER [-I... -D...]

Every PMPI_ function and every exported constant (`ompi_mpi_comm_world`, `MPI_F_STATUS_IGNORE`) that the given mpi.h
declares gets a `#pragma weak`. MPI_ functions don't: a call of one from within the preload library would be counted as
the program's, so it must stay an error of the link.
"""

import re
import subprocess
import sys
from pathlib import Path

FUNCTION = re.compile(r"\b(PMPI_\w+|OMPI_C_\w+)\s*\(")
VARIABLE = re.compile(r"\bextern\b[^;(){}]*?\b(\w+)\s*(?:__attribute__\s*\(\([^;]*\)\)\s*)?;")


def weak_names(preprocessed: str) -> list[str]:
    """Return the names to weaken in the text of a preprocessed mpi.h, sorted."""
    names = set(FUNCTION.findall(preprocessed))
    names |= {name for name in VARIABLE.findall(preprocessed) if "mpi" in name.lower()}
    return sorted(names)


def main(arguments: list[str]) -> int:
    """Preprocess mpi.h with the given compiler and write the header."""
    target, compiler = Path(arguments[0]), arguments[1:]
    text = subprocess.run(
        [*compiler, "-E", "-P", "-x", "c", "-"],
        input="#include <mpi.h>\n",
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    names = weak_names(text)
    if not any(name.startswith("PMPI_") for name in names):
        print(f"{target}: mpi.h declares no PMPI_ function; is the prefix right?", file=sys.stderr)
        return 1
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = ["// Made by tools/generate_weak_mpi.py: the preload takes these from the program's MPI.", "#pragma once"]
    lines += [f"#pragma weak {name}" for name in names]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
