"""From the command line that a user would type without palmette to the one that runs with it."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from palmette.mpi import sanitizer
from palmette.mpi.abi import (
    LIBRARIES,
    Abi,
    Evidence,
    fits_launcher,
    preload_library,
    record_library,
)
from palmette.mpi.errors import RunError
from palmette.mpi.installed import is_temporary
from palmette.mpi.launch import LauncherKind, identify
from palmette.mpi.program import check_privileges, find_program, linked_behind, linked_itself
from palmette.run.choices import RECORDED
from palmette.run.command_line import CommandLine, Part, ProgramsInFileError, read_command_line
from palmette.run.jobs import undecided
from palmette.run.launcher_options import LauncherOptions, MisplacedError
from palmette.run.preload import NAME as LD_PRELOAD
from palmette.run.preload import with_preload
from palmette.run.rewrite import Amendments, rewrite

# Only a program with such a name is called with --version: `./app --version` might run for hours.
_LAUNCHER_NAME = re.compile(r"(?:mpi(?:exec|run)|prte?run|orterun|srun|aprun|flux)(?:[.\-_]\w+)*$")


def starts_job(words: Sequence[str]) -> bool:
    """Whether a command line names a launcher, at its beginning or behind a wrapper."""
    return any(_LAUNCHER_NAME.match(Path(word).name) for word in words)


class LaunchPlan(NamedTuple):
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
    warnings: tuple[str, ...] = ()

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
    own: Mapping[str, str] = MappingProxyType({}),
) -> LaunchPlan:
    """Return how to run the command line `words` under palmette with the PALMETTE_ variables `variables`.

    `words` begins with a launcher or with the program itself. `environment` is what the launcher will see, with
    `abi` the program isn't examined, `directory` is the working directory. `own`: palmette's options and what stands
    for their values, which some type behind the launcher. Raises RunError when it can't be done.
    """
    if not words:
        raise RunError("no command; say which, as in `palmette run mpiexec -n 4 ./app`")
    directory = directory or Path.cwd()
    warnings: list[str] = []
    launcher = _launcher(words[0], environment, warnings)
    if launcher is None:
        kind: LauncherKind | None = None
        line = CommandLine(None, tuple(words), (Part(0, words[0], tuple(words[1:])),))
    else:
        kind, path = launcher
        line = _line(kind, words, LauncherOptions(kind, path, environment, own), abi)
    found = (
        _Examination(Evidence((abi,), "--abi says so"))
        if abi is not None
        else _examine(line, environment, directory, warnings)
    )
    named = Path(line.parts[0].program).name if line.parts else "the file of programs"
    evidence = found.evidence or undecided(named, kind, {**environment, **variables}, libraries)
    preloads = _preloads(evidence.abis, variables, libraries)
    amended: Amendments = {LD_PRELOAD: partial(with_preload, [*found.first, *preloads])}
    if found.has_asan:
        amended[sanitizer.NAME] = sanitizer.with_flag
    warnings += _elsewhere(preloads, libraries)
    if kind is None:
        changed = {name: amend(environment.get(name)) for name, amend in amended.items()}
        command, extra = tuple(words), {**variables, **changed}
        _warn_of_launcher_behind(words, environment, warnings)
    else:
        command, extra = rewrite(line, variables, amended, environment)
        if evidence.abi is not None and not fits_launcher(evidence.abi, kind):
            warnings.append(
                f"{evidence.because}, but {words[0]} starts another MPI's programs: "
                "they may run as separate jobs of one rank each; use the launcher of the program's MPI"
            )
    program = line.parts[0].program if line.parts else ""
    return LaunchPlan(command, extra, kind, program, evidence, preloads, tuple(warnings))


class _Examination(NamedTuple):
    """The result of examining a job's programs.

    `evidence` is None where none of them names an MPI. `has_asan`: the address sanitizer's check that it comes first
    must be disabled; `first`: a runtime without that flag, which goes before our libraries.
    """

    evidence: Evidence | None
    has_asan: bool = False
    first: tuple[Path, ...] = ()


def _preloads(abis: Sequence[Abi], variables: Mapping[str, str], libraries: Path) -> tuple[Path, ...]:
    """Return our libraries for these ABIs: those that record calls or count messages see the program's own first."""
    preloads = tuple(preload_library(abi, libraries) for abi in abis)
    records = any(variables.get(name) for name in RECORDED)
    recording = tuple(record_library(abi, libraries) for abi in abis) if records else ()
    return (*recording, *preloads)


def _elsewhere(preloads: Sequence[Path], libraries: Path) -> list[str]:
    """Warn of libraries whose links or copies lie where other hosts have other files."""
    local = [path for path in preloads if is_temporary(path)]
    if not local:
        return []
    return [
        f"{libraries} can't be preloaded from (palmette doctor says why); {local[0].parent} stands in, which other"
        " hosts may not have: install palmette in another folder"
    ]


def _launcher(word: str, environment: Mapping[str, str], warnings: list[str]) -> tuple[LauncherKind, Path] | None:
    """Return what launcher `word` is and where, or None for a program and for a launcher that palmette doesn't know.

    Raises RunError for a launcher that isn't there.
    """
    if not _LAUNCHER_NAME.match(Path(word).name):
        return None
    found = shutil.which(word, path=environment.get("PATH"))
    if found is None:
        raise RunError(
            f"{word}: no such launcher; install an MPI or correct PATH (`palmette doctor` lists what there is)"
        )
    path = Path(found).absolute()
    identified = identify(path)
    if identified is None:
        warnings.append(
            f"{path} is no launcher that palmette knows, by its `--version`: the preload goes through the environment, "
            "and ranks to which the launcher doesn't pass that run without palmette"
        )
        return None
    return identified.kind, path


def _line(kind: LauncherKind, words: Sequence[str], options: LauncherOptions, abi: Abi | None) -> CommandLine:
    """Read the command line; what can be read of it with --abi, and where the programs are listed in a file."""
    try:
        return read_command_line(kind, words, options)
    except MisplacedError:
        raise
    except ProgramsInFileError:
        return CommandLine(kind, tuple(words), ())
    except RunError:
        if abi is None:
            raise
        return CommandLine(kind, tuple(words), ())


def _warn_of_launcher_behind(words: Sequence[str], environment: Mapping[str, str], warnings: list[str]) -> None:
    """Warn of a launcher behind a wrapper (`timeout 60 mpiexec ...`): only its own options reach all hosts."""
    behind = next((word for word in words[1:] if _LAUNCHER_NAME.match(Path(word).name)), None)
    if behind is not None and shutil.which(behind, path=environment.get("PATH")) is not None:
        warnings.append(
            f"{behind} stands behind {words[0]}, so its ranks on other hosts may run without palmette; put "
            f"`palmette run` right before {behind}"
        )


def _examine(line: CommandLine, environment: Mapping[str, str], directory: Path, warnings: list[str]) -> _Examination:
    """Examine the job's programs. Raises RunError for those that can't be served, and for different MPIs in one job."""
    given = {assignment.name: assignment.value for assignment in line.assignments if assignment.value is not None}
    ranks = {**environment, **given}
    found: dict[Abi, Evidence] = {}
    runtimes: dict[Path, None] = {}
    for part in line.parts:
        where = directory / (part.directory or "")
        program = find_program(part.program, ranks, where, by_launcher=line.kind is not None)
        check_privileges(program)
        one = linked_itself(program, ranks)
        is_static = one.is_static
        if one.evidence is None:
            one = linked_behind(program, part.arguments, ranks, where) or one
        if one.evidence is not None and one.evidence.abi is not None:
            found.setdefault(one.evidence.abi, one.evidence)
        elif is_static:
            warnings.append(
                f"{program.executed} is linked statically: nothing can be preloaded into it, only into what it starts"
            )
        if one.asan is not None:
            runtimes[one.asan] = None
    if len(found) > 1:
        reasons = ", ".join(evidence.because for evidence in found.values())
        raise RunError(f"the programs of this job use different MPIs ({reasons}); build them with one")
    old = tuple(runtime for runtime in runtimes if not sanitizer.knows_flag(runtime))
    return _Examination(next(iter(found.values()), None), bool(runtimes), old)
