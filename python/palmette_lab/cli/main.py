"""The program `palmette-lab`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from palmette.cli.program import run_program

NAME = "palmette-lab"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status (palmette.cli.program.run_program)."""
    return run_program(NAME, arguments, _run, _group)


def _group() -> Any:
    from palmette_lab.cli.group import cli

    return cli


def _run(words: list[str]) -> int:
    from palmette.cli.group import run_group

    return run_group(_group(), words)


if __name__ == "__main__":
    sys.exit(main())
