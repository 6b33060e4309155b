"""`palmette run`: from its options to the exec of the launcher."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from palmette.cli.printable import printable
from palmette.cli.run_mistakes import mistake_in
from palmette.cli.run_options import BY_WORD, read_options
from palmette.mpi.program import SHELL
from palmette.run import Choices, LaunchPlan, RunError, prepare, starts_job, variables
from palmette.run.folders import is_rank
from palmette.settings_files import read_files, with_files


def start(words: Sequence[str]) -> int | None:
    """Run the words behind `palmette run` and return the exit status where nothing was executed.

    None where the words ask for help or JSON, or have a mistake: click handles these.
    """
    read = read_options(words)
    if read is None or read[0]["as_json"] or read[0]["compare"]:
        return None
    values, command_line = read
    if mistake_in(words):
        return None
    try:
        execute(prepared_for(values, command_line), verbose=values["verbose"], only_print=values["only_print"])
    except RunError as error:
        from palmette.cli.meant import with_suggestion  # a job waits for this module: only where it ends here

        print(f"palmette run: {printable(with_suggestion(' '.join(str(error).split())))}", file=sys.stderr)
        return 2
    return 0


PATHS = ("topology", "table", "profile", "trace")


def prepared_for(values: Mapping[str, Any], command_line: Sequence[str]) -> LaunchPlan:
    """Return what to execute, for the parameters of `read_options`. Raises RunError."""
    files = read_files()
    warnings: list[str] = []
    rank = is_rank(os.environ) and not starts_job(command_line)
    given = variables(choices_of(values), with_files(os.environ, files), rank=rank, warnings=warnings)
    own = {word: option.metavar or "" for word, option in BY_WORD.items() if option.kind not in ("report", "optional")}
    prepared = prepare(command_line, given, os.environ, abi=values["abi"], own={**own, "--report": "", "--sample": ""})
    return prepared._replace(warnings=(*files.mistakes, *warnings, *prepared.warnings))


def choices_of(values: Mapping[str, Any]) -> Choices:
    """Return what the parameters choose. Raises RunError."""
    paths = {name: Path(values[name]) if values[name] is not None else None for name in PATHS}
    force = dict(_assignment(text) for text in values["force"])
    return Choices(
        report=values["report"], sample=values["sample"], reorder=values["reorder"], force=force, off=values["off"],
        verbose=values["verbose"], **paths,
    )  # fmt: skip


def execute(prepared: LaunchPlan, *, verbose: int, only_print: bool) -> None:
    """Become the command, or print it. Raises RunError where it can't be executed."""
    for warning in prepared.warnings:
        print(f"palmette run: warning: {printable(warning)}", file=sys.stderr)
    if only_print:
        print(prepared.shell_line(), flush=True)
        return
    if verbose:
        print(f"palmette run: {prepared.evidence.because}: {' '.join(map(str, prepared.preloads))}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {**os.environ, **prepared.environment}
    # exec, not a child: exit status, signals and the terminal are the launcher's own.
    try:
        try:
            os.execvpe(prepared.command[0], prepared.command, environment)  # noqa: S606
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without a first line that names its interpreter, as execvp(3) does it.
            script = shutil.which(prepared.command[0]) or prepared.command[0]
            os.execve(SHELL, [str(SHELL), script, *prepared.command[1:]], environment)  # noqa: S606
    except OSError as error:
        raise RunError(f"{prepared.command[0]}: {error.strerror}; correct the name or its permissions") from None


def _assignment(text: str) -> tuple[str, str]:
    """Return the collective and its algorithm. Raises RunError without `=`."""
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise RunError(f"--force {text}: expected COLLECTIVE=SPEC, as in --force gather=linear")
    return name, value
