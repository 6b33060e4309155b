"""The options of `palmette run`: declared once, for click and for a parser that works without it.

Loading click takes longer than all that `palmette run` does before a job begins, so it is only loaded for help, JSON
and error messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from palmette.mpi.abi import ABIS


class Option(NamedTuple):
    """One option: its names, its parameter, its value and its help.

    `report` is a value that may be left out: the next word is its own only if it ends in .json. `optional` is one that
    stands behind `=` or is left out.
    """

    words: tuple[str, ...]
    parameter: str
    kind: Literal["value", "path", "repeated", "flag", "count", "report", "optional"]
    help: str
    metavar: str | None = None
    allowed: tuple[str, ...] = ()


OPTIONS: tuple[Option, ...] = (
    Option(("--topology",), "topology", "path", "topology.json of the cluster.", "FILE"),
    Option(("--table",), "table", "path", "Decision table to choose by.", "FILE"),
    Option(
        ("--report",), "report", "report",
        "Print a page at the end: what was served and how; or write it as JSON.", "[FILE.json]",
    ),
    Option(("--profile",), "profile", "path", "Record all MPI calls, summed: for palmette top.", "DIR"),
    Option(("--trace",), "trace", "path", "The same, and the last calls of each rank one by one.", "DIR"),
    Option(
        ("--sample",), "sample", "optional",
        "Record where each thread spends its CPU time, too: 100 times a second, HZ times (above the kernel's ticks: "
        "HZ:events), or for at most P% of it.",
        "[=HZ|=P%]",
    ),
    Option(
        ("--force",), "force", "repeated",
        "Always take this algorithm: gather=linear. Repeatable.", "COLLECTIVE=SPEC",
    ),
    Option(
        ("--reorder",), "reorder", "value",
        "What MPI_Cart_create orders ranks for: halo (default), exchange for FFTs, or off.",
        allowed=("halo", "exchange", "off"),
    ),
    Option(("--off",), "off", "flag", "Preload, but pass all calls through: for comparisons."),
    Option(
        ("--compare",), "compare", "flag",
        "Run it with and without palmette by turns, five times each, and compare: palmette bench app.",
    ),
    Option(("-v", "--verbose"), "verbose", "count", "Report choices and fallbacks; twice: every call."),
    Option(("--abi",), "abi", "value", "Don't look into the program: its MPI has this ABI.", allowed=ABIS),
    Option(("--print",), "only_print", "flag", "Print the command line instead of running it."),
    Option(("--json",), "as_json", "flag", "Print the result as JSON."),
)  # fmt: skip
"""In the order of the help."""

DEFAULT_RATE = "100"
"""Samples a second, where --sample names no rate."""

BY_WORD = {word: option for option in OPTIONS for word in option.words}


def read_options(words: Sequence[str]) -> tuple[dict[str, Any], tuple[str, ...]] | None:
    """Return the parameters with their values, and the command behind the options.

    None where click is needed: for help, JSON or an error message.
    """
    values: dict[str, Any] = {option.parameter: _default(option) for option in OPTIONS}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            at += 1
            break
        word, equals, attached = words[at].partition("=")
        at += 1
        if word.startswith("-v") and not word.strip("v").strip("-") and not equals:
            values["verbose"] += len(word) - 1
            continue
        option = BY_WORD.get(word)
        if option is None:
            return None
        if option.kind in ("flag", "count"):
            if equals:
                return None
            values[option.parameter] = values[option.parameter] + 1 if option.kind == "count" else True
            continue
        if option.kind == "report":
            value = attached if equals else "1"
            if not equals and at < len(words) and words[at].endswith(".json"):
                value, at = words[at], at + 1
        elif option.kind == "optional":
            value = attached if equals else DEFAULT_RATE
        elif equals:
            value = attached
        elif at < len(words):
            value, at = words[at], at + 1
        else:
            return None
        if option.allowed and value not in option.allowed:
            return None
        values[option.parameter] = (*values[option.parameter], value) if option.kind == "repeated" else value
    return (values, tuple(words[at:])) if at < len(words) else None


def _default(option: Option) -> Any:
    return {"flag": False, "count": 0, "repeated": ()}.get(option.kind)
