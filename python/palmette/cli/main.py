"""The command `palmette`: a table of commands, each loaded when it is called."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

COMMANDS: dict[str, tuple[str, str, str]] = {
    "demo": ("palmette.cli.demo", "command", "Run a demonstration on this machine."),
    "doctor": ("palmette.cli.doctor", "command", "Say what palmette finds on this machine."),
    "settings": ("palmette.cli.settings", "command", "List the PALMETTE_ variables and their values."),
    "completion": ("palmette.cli.completion", "command", "Print the completion script of bash, zsh or fish."),
    "discover": ("palmette.cli.discover", "command", "Find out how a cluster is wired; write topology.json."),
    "calibrate": ("palmette.cli.calibrate", "command", "Measure what messages cost on each level of a machine."),
    "show": ("palmette.cli.show", "command", "Show a topology as a tree, a picture or JSON."),
    "run": ("palmette.cli.run", "command", "Run an MPI program with faster collectives."),
    "tune": ("palmette.cli.tune", "command", "Find the fastest algorithms here; write a decision table."),
    "explain": ("palmette.cli.explain", "command", "Explain which algorithm a call gets, why, and the alternatives."),
    "export": ("palmette.cli.export", "command", "Write tuning files for MPI libraries without palmette."),
    "map": ("palmette.cli.map", "command", "Find a rank order for a pattern of messages."),
    "aggregator": ("palmette.cli.aggregator", "command", "Reduce on the way: the daemon, its tokens, its status."),
    "top": ("palmette.cli.top", "command", "Show which MPI calls a recorded job is in, and who waits for whom."),
    "report": ("palmette.cli.report", "command", "Say where a recorded job's time went; benchmark pages."),
    "what-if": ("palmette.cli.what_if", "command", "Tell what a recorded job would take if it were changed."),
    "convert": ("palmette.cli.convert", "command", "Write a recording in another tool's format."),
    "plan": ("palmette.cli.plan", "command", "Make, verify, count and draw the plan of a collective."),
    "predict": ("palmette.cli.predict", "command", "Predict the time of algorithms, and what it goes into."),
    "bound": ("palmette.cli.bound", "command", "The time that no plan and no library can go below."),
    "flow": ("palmette.cli.flow", "command", "Run a flow simulation of a plan on a machine's links."),
    "compose": ("palmette.cli.compose", "command", "Factor communication made of multicasts and reductions."),
    "bench": ("palmette.cli.bench", "command", "Measure collectives with and without palmette."),
    "simulate": ("palmette.cli.simulate", "command", "Run collectives on clusters that SimGrid simulates."),
    "lab": ("palmette.cli.lab", "command", "Emulate a cluster on this machine."),
}
"""name -> (module, attribute, one-line help), in the order of GROUPS. Help and completion import no module."""

GROUPS: dict[str, tuple[str, ...]] = {
    "Start": ("demo", "doctor", "settings", "completion"),
    "The cluster": ("discover", "calibrate", "show"),
    "Run programs": ("run", "tune", "explain", "export", "map", "aggregator"),
    "Where a program's time goes": ("top", "report", "what-if", "convert"),
    "Plans": ("plan", "predict", "bound", "flow", "compose"),
    "Measure": ("bench", "simulate", "lab"),
}
"""What `palmette --help` calls them, and the commands below each heading."""

UNDER: dict[tuple[str, str], tuple[str, str, str]] = {
    ("bench", "collectives"): (
        "palmette.cli.bench",
        "command",
        "Collectives; the default: `bench allgather` is short.",
    ),
    ("bench", "app"): ("palmette.cli.bench_app", "command", "A whole program with and without palmette."),
    ("bench", "pattern"): ("palmette.cli.bench_pattern", "command", "Patterns of messages between groups of ranks."),
    ("bench", "compose"): ("palmette.cli.bench_compose", "command", "Composed plans against the MPI's collectives."),
}
"""Subcommands of two words: their arguments have nothing in common with those of the first word's command."""

COMPLETE = "_PALMETTE_COMPLETE"
"""The environment variable through which a completion script asks what may follow; the name is click's."""


def loaded(module: str, attribute: str) -> Any:
    """Return what a command's row of the table names."""
    return getattr(import_module(module), attribute)


def _says_utf8() -> bool:
    """Whether the locale, as it is mostly, names UTF-8 at once."""
    return (os.environ.get("LC_ALL") or os.environ.get("LANG") or "UTF-8").endswith(("UTF-8", "utf8"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    2 for bad input, reported in one line on standard error; 130 after Ctrl-C; 70 for an internal error;
    otherwise what the command says.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if arguments is None and not _says_utf8():
        from palmette.cli import ascii_output

        if ascii_output.wanted(os.environ):
            ascii_output.install()
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        if COMPLETE in os.environ:
            from palmette.cli.completion import complete

            return complete(os.environ[COMPLETE])
        if words[:1] == ["run"]:
            from palmette.cli.run_start import start  # alone, for a job waits for it

            started = start(words[1:])
            if started is not None:
                return started
        from palmette.cli.group import run_group

        return run_group(words)
    except KeyboardInterrupt:
        print("palmette: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader closed the pipe (`palmette show ... | head`): not an error.
        sys.stderr.close()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            print(f"palmette: can't write: {error.strerror}; make room, or write elsewhere", file=sys.stderr)
            return 2
        from palmette.cli.fault import report

        return report(error, words)


if __name__ == "__main__":
    sys.exit(main())
