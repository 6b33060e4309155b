"""The program `palmette`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from palmette.cli.program import run_program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status (program.run_program)."""
    return run_program("palmette", arguments, _run, _group)


def _group() -> Any:
    from palmette.cli.palmette import cli

    return cli


def _run(words: list[str]) -> int:
    if words[:1] == ["run"]:
        from palmette.cli.run_start import start  # alone, for a job waits for it

        started = start(words[1:])
        if started is not None:
            return started
    from palmette.cli.group import run_group

    return run_group(_group(), words)


if __name__ == "__main__":
    sys.exit(main())
