"""Words of `palmette run` that were taken for something else than they were meant as."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from palmette.cli.run_options import BY_WORD

FORMER = {
    "--matrix": "every recording has the matrix: palmette run --profile DIR COMMAND, then palmette map --matrix DIR",
}
"""Options that are gone, and what does the same."""
LAUNCHERS = ("mpiexec", "mpirun", "srun", "prterun", "orterun", "jsrun", "aprun")


def mistake_in(words: Sequence[str]) -> str | None:
    """Return what is wrong with an option whose value was left out, or is none, in one sentence; None: nothing.

    `words` stand behind `palmette run`. What click or the run itself would say of them names another word.
    """
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        name, equals, attached = words[at].partition("=")
        option, rest = BY_WORD.get(name), words[at + 1 :]
        kind = option.kind if option is not None else "flag"
        if name in ("-h", "--help"):
            return None
        if name in FORMER:
            return f"{name} is gone; {FORMER[name]}"
        if name == "--report":
            mistake = report_mistake(attached, []) if equals else report_mistake("", rest)
            if mistake is not None:
                return mistake
            at += bool(not equals and rest and rest[0].endswith(".json"))
        elif option is not None and kind == "path" and not equals:
            if not rest or _begins_the_command(rest):
                a, form = ("a folder", "DIR") if option.metavar == "DIR" else ("a file", "FILE")
                command = " ".join(rest[:1]) or "mpiexec"
                return f"{name} needs {a} before the command: palmette run {name} {form} {command} ..."
        elif kind == "optional" and not equals and rest and rest[0][:1].isdigit() and not _is_program(rest[0]):
            return f"{name} {rest[0]}: a rate stands behind =: {name}={rest[0]}"
        elif kind == "repeated" and not equals and rest and "=" not in rest[0]:
            return f"{name} {rest[0]}: expected COLLECTIVE=SPEC, as in {name} gather=linear"
        at += 1 if equals or kind in ("flag", "count", "report", "optional") else 2
    return None


def report_mistake(attached: str, rest: Sequence[str]) -> str | None:
    """Return what is wrong with `--report=attached`, or with what stands behind a lone `--report`."""
    if attached and attached not in ("0", "1") and not attached.endswith(".json"):
        file = attached
    elif len(rest) > 1 and "." in Path(rest[0]).name and not rest[0].endswith(".json") and not _is_program(rest[0]):
        if not _is_program(rest[1]):
            return None
        file = rest[0]
    else:
        return None
    return f"--report {file}: a report's file ends in .json; --report without a file prints the page"


def _begins_the_command(rest: Sequence[str]) -> bool:
    """Whether an option's value is none: another option, a launcher, or the program that ends the line."""
    if rest[0].startswith("-"):
        return True
    if Path(rest[0]).name.partition(".")[0] in LAUNCHERS:
        return not Path(rest[0]).exists() or "/" in rest[0]
    return len(rest) == 1 and _is_program(rest[0])


def _is_program(word: str) -> bool:
    try:
        return shutil.which(word) is not None
    except ValueError:  # a null byte
        return False
