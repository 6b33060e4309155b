"""Setting variables in the ranks of a job, but not in its launcher, through the launcher's own options."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from palmette.mpi.launch import launcher
from palmette.run.command_line import Assignment, CommandLine, Part
from palmette.run.options import BY_PART
from palmette.run.preload import NAME as LD_PRELOAD

CommandRewrite = tuple[tuple[str, ...], dict[str, str]]
"""A command line, and variables to set in the launcher's environment."""

Amendments = dict[str, Callable[[str | None], str]]
"""Variables that are extended, mainly LD_PRELOAD: name -> function from the present value (or None) to the new one."""


def rewrite(
    line: CommandLine, variables: Mapping[str, str], amended: Amendments, environment: Mapping[str, str]
) -> CommandRewrite:
    """Return the command line that gives `variables` and those of `amended` to the ranks.

    What the user's own words set stays as it is, only the `amended` ones get our part added to it.
    """
    if line.kind == "srun":
        return _srun(line, variables, amended, environment)
    assert line.kind is not None, "only a launcher's line can be rewritten"
    words = list(line.words)
    theirs = {assignment.name for assignment in line.assignments}
    for assignment in line.assignments:
        if assignment.name in amended:
            present = assignment.value if assignment.value is not None else environment.get(assignment.name)
            value = amended[assignment.name](present)
            words[assignment.first : assignment.last] = _same_length(line, assignment, value)
    ours = {name: value for name, value in variables.items() if name not in theirs}
    ours |= {name: amend(environment.get(name)) for name, amend in amended.items()}
    # Open MPI's -x belongs to one part of the command line, hydra's -genv to all of it.
    places = [_place(line, part) for part in line.parts] if line.kind in BY_PART else [1]
    for place in reversed(places or [1]):
        taken = _set_by_user(line, place)
        words[place:place] = launcher(line.kind).pass_environment(
            {name: value for name, value in ours.items() if name not in taken}
        )
    return tuple(words), {}


def _place(line: CommandLine, part: Part) -> int:
    """Return where options of ours stand: before the user's, but behind Flux's, of which one may clear what was set."""
    if line.kind != "flux":
        return part.start
    program = len(line.words) - len(part.arguments) - 1
    return program - 1 if line.words[program - 1] == "--" else program


def _set_by_user(line: CommandLine, place: int) -> set[str]:
    """Return the variables that the user sets at the place of ours, so that ours would conflict.

    PRRTE keeps the first of two -x of a name in a part, hydra the last -genv; a local -env goes before any -genv.
    """
    if line.kind == "flux":
        return {a.name for a in line.assignments}
    if line.kind in BY_PART:
        end = min((part.start for part in line.parts if part.start > place), default=len(line.words))
        return {a.name for a in line.assignments if place <= a.first < end}
    return {a.name for a in line.assignments if line.words[a.first].lstrip("-").startswith("genv")}


def _same_length(line: CommandLine, assignment: Assignment, value: str) -> list[str]:
    """Return the words of the assignment with another value; as many as before, so that indices stay valid."""
    words = list(line.words[assignment.first : assignment.last])
    if line.kind in BY_PART or len(words) < 3:  # else hydra's -genv NAME VALUE, whose value may hold a `=`
        joined = f"{assignment.name}={value}"
        if len(words) == 1:  # --x=NAME=VALUE
            return [f"{words[0].partition('=')[0]}={joined}"]
        return [words[0], joined]
    return [*words[:-1], value]


def _srun(
    line: CommandLine, variables: Mapping[str, str], amended: Amendments, environment: Mapping[str, str]
) -> CommandRewrite:
    """srun: everything but LD_PRELOAD goes into its environment, which is harmless and allows commas.

    --export then names the variables, for an --export of the user's may leave the environment out.
    """
    changed = {name: amend(environment.get(name)) for name, amend in amended.items()}
    preload = changed.pop(LD_PRELOAD, None)
    ours_in_words = [f"{LD_PRELOAD}={preload}"] if preload is not None else []
    exports = {(a.first, a.last) for a in line.assignments}
    theirs = {a.name for a in line.assignments}
    ours = {name: text for name, text in {**variables, **changed}.items() if name not in theirs or name in changed}
    words = list(line.words)
    if not exports:
        for place in reversed([part.start for part in line.parts] or [1]):
            words.insert(place, ",".join(["--export=ALL", *ours_in_words]))
        return tuple(words), ours
    for first, last in sorted(exports, reverse=True):
        entries = []
        for a in line.assignments:
            if (a.first, a.last) != (first, last) or a.name in ("NONE", "NIL"):
                continue
            if a.name == LD_PRELOAD and LD_PRELOAD in amended:
                present = a.value if a.value is not None else environment.get(LD_PRELOAD)
                ours_in_words = [f"{LD_PRELOAD}={amended[LD_PRELOAD](present)}"]
            elif a.name in changed:
                # Named below, with the value from srun's environment.
                if a.value is not None:
                    ours[a.name] = amended[a.name](a.value)
            else:
                entries.append(a.name if a.value is None else f"{a.name}={a.value}")
        named = [] if "ALL" in entries else list(ours)
        words[first:last] = ["--export=" + ",".join([*entries, *named, *ours_in_words])]
    return tuple(words), ours
