"""From the command line that a user would type without palmette to the one that runs with it."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from palmette.launch import LauncherKind, identify
from palmette.run.abi import (
    LIBRARIES,
    SONAMES,
    Abi,
    Evidence,
    abi_of_launcher,
    fits_launcher,
    matrix_library,
    preload_library,
)
from palmette.run.command_line import CommandLine, Part, read_command_line
from palmette.run.errors import RunError
from palmette.run.preload import NAME as LD_PRELOAD
from palmette.run.preload import with_preload
from palmette.run.program import check_privileges, find_program, mpi_behind, mpi_of
from palmette.run.rewrite import rewrite

# Only a program with such a name is asked what it is: `./app --version` might be hours of work.
_LAUNCHER_NAME = re.compile(r"(?:mpi(?:exec|run)|prte?run|orterun|srun)(?:[.\-_]\w+)*$")


@dataclass(frozen=True)
class Prepared:
    """What to execute.

    `command` is the whole command line, and `environment` what to add to this process's environment before it:
    variables that the launcher's options can't carry, or all of them where there is no launcher. `warnings` are
    sentences for people. `preloads` are palmette's libraries in their order in LD_PRELOAD.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    launcher: LauncherKind | None
    program: str
    evidence: Evidence
    preloads: tuple[Path, ...]
    warnings: tuple[str, ...] = field(default=())

    def shell_line(self) -> str:
        """Return a line for a shell that does the same."""
        assignments = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*(["env", *assignments] if assignments else []), shlex.join(self.command)])


def prepare(
    words: Sequence[str],
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    abi: Abi | None = None,
    directory: Path | None = None,
    libraries: Path = LIBRARIES,
) -> Prepared:
    """Return how to run the command line `words` under palmette with the PALMETTE_ variables `variables`.

    `words` begins with a launcher or with the program itself. `environment` is what the launcher will see, `abi` spares
    looking into the program, `directory` is the working directory. Raises RunError when it can't be done.
    """
    if not words:
        raise RunError("no command; say which, as in `palmette run mpiexec -n 4 ./app`")
    directory = directory or Path.cwd()
    kind = _launcher_kind(words[0], environment)
    if kind is None:
        return _without_launcher(words, variables, environment, abi, directory, libraries)
    if abi is not None:
        line = _line_unread(kind, words)
        evidence = Evidence(abi, "--abi says so")
    else:
        line = read_command_line(kind, words)
        evidence = _evidence(line, environment, directory)
    preloads = _preloads(evidence.abi, variables, libraries)
    command, extra = rewrite(line, variables, preloads, environment)
    warnings = []
    if not fits_launcher(evidence.abi, kind):
        warnings.append(
            f"{evidence.because}, but {words[0]} starts another MPI's programs: "
            "they may run as so many jobs of one rank; use the launcher of the program's MPI"
        )
    program = line.parts[0].program if line.parts else ""
    return Prepared(command, extra, kind, program, evidence, preloads, tuple(warnings))


def _without_launcher(
    words: Sequence[str],
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    abi: Abi | None,
    directory: Path,
    libraries: Path,
) -> Prepared:
    part = Part(0, words[0], tuple(words[1:]))
    evidence = Evidence(abi, "--abi says so") if abi else _evidence_of_part(part, environment, directory)
    if evidence is None:
        raise RunError(
            f"{words[0]} is not linked with an MPI, and is no launcher that palmette knows (mpiexec, mpirun, prterun, "
            "srun); start it by one of these, or say --abi"
        )
    preloads = _preloads(evidence.abi, variables, libraries)
    extra = {**variables, LD_PRELOAD: with_preload(preloads, environment.get(LD_PRELOAD))}
    return Prepared(tuple(words), extra, None, words[0], evidence, preloads)


def _preloads(abi: Abi, variables: Mapping[str, str], libraries: Path) -> tuple[Path, ...]:
    """Return our libraries for that ABI: the one that counts messages first, so that it sees the program's own calls."""
    preload = preload_library(abi, libraries)
    return (matrix_library(abi, libraries), preload) if variables.get("PALMETTE_MATRIX") else (preload,)


def _launcher_kind(word: str, environment: Mapping[str, str]) -> LauncherKind | None:
    """Return what launcher `word` is, or None for a program. Raises RunError for a launcher that isn't there or unknown."""
    if not _LAUNCHER_NAME.match(Path(word).name):
        return None
    path = shutil.which(word, path=environment.get("PATH"))
    if path is None:
        raise RunError(
            f"{word}: no such launcher; install an MPI or correct PATH (`palmette doctor` lists what there is)"
        )
    identified = identify(Path(path))
    if identified is None:
        raise RunError(
            f"{path} is no launcher that palmette knows, by its `--version`: it knows MPICH's and Intel's hydra, "
            "Open MPI's (PRRTE) and srun"
        )
    return identified.kind


def _line_unread(kind: LauncherKind, words: Sequence[str]) -> CommandLine:
    """Read what can be read: with --abi nothing about the program need be known."""
    try:
        return read_command_line(kind, words)
    except RunError:
        return CommandLine(kind, tuple(words), ())


def _evidence(line: CommandLine, environment: Mapping[str, str], directory: Path) -> Evidence:
    """Return the ABI of the job's programs, or the launcher's own where none is linked with MPI (scripts, Python)."""
    given = {assignment.name: assignment.value for assignment in line.assignments if assignment.value is not None}
    ranks = {**environment, **given}
    found: dict[Abi, Evidence] = {}
    for part in line.parts:
        evidence = _evidence_of_part(part, ranks, directory / (part.directory or ""))
        if evidence is not None:
            found.setdefault(evidence.abi, evidence)
    if len(found) > 1:
        reasons = ", ".join(evidence.because for evidence in found.values())
        raise RunError(f"the programs of this job use different MPIs ({reasons}); build them with one")
    if found:
        return next(iter(found.values()))
    of_launcher = abi_of_launcher(line.kind)
    if of_launcher is None:
        raise RunError(
            f"{line.parts[0].program} is not linked with an MPI, and srun starts programs of any; say --abi mpich, ompi or abi"
        )
    return Evidence(of_launcher, f"{line.parts[0].program} names no MPI, and the launcher's is {SONAMES[of_launcher]}")


def _evidence_of_part(part: Part, environment: Mapping[str, str], directory: Path) -> Evidence | None:
    program = find_program(part.program, environment, directory)
    check_privileges(program)
    return mpi_of(program, environment) or mpi_behind(program, part.arguments, environment, directory)
