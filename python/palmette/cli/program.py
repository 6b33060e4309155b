"""What the programs of the command line share: errors that nobody expected, interrupts, pipes, completion."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from palmette.cli.table import complete_variable

if TYPE_CHECKING:
    import click


def _says_utf8() -> bool:
    """Whether the locale, as it is mostly, names UTF-8 at once."""
    return (os.environ.get("LC_ALL") or os.environ.get("LANG") or "UTF-8").endswith(("UTF-8", "utf8"))


def run_program(
    program: str, arguments: Sequence[str] | None, run: Callable[[list[str]], int], group: Callable[[], click.Command]
) -> int:
    """Run the words of a program, by default those that it was started with, and return the exit status.

    2 for bad input, reported in one line on standard error; 130 after Ctrl-C; 70 for an internal error;
    otherwise what `run` says. `group` gives the click group, for completion.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if arguments is None and not _says_utf8():
        from palmette.cli import ascii_output

        if ascii_output.wanted(os.environ):
            ascii_output.install()
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        variable = complete_variable(program)
        if variable in os.environ:
            from palmette.cli.completion import complete

            return complete(os.environ[variable], group)
        return run(words)
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader closed the pipe (`palmette show ... | head`): not an error.
        sys.stderr.close()
        return 0
    except SystemExit:
        # Inside of click a closed pipe becomes an exit, and standard output a wrapper that flushes nothing more.
        if type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
            return 0
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            print(f"{program}: can't write: {error.strerror}; make room, or write elsewhere", file=sys.stderr)
            return 2
        from palmette.cli.fault import report

        return report(error, words, program)
