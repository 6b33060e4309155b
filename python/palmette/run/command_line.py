"""Parser of a launcher's command line: its programs, and the variables that it sets in the ranks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from palmette.files import read_text
from palmette.mpi.errors import RunError
from palmette.mpi.launch.flux import STARTS
from palmette.mpi.launch.identify import LauncherKind
from palmette.run.launcher_options import LauncherOptions
from palmette.run.options import DIRECTORIES, FILES, FLAGS, VALUES


class ProgramsInFileError(RunError):
    """The programs of a job are listed in a file that palmette doesn't read."""


class Assignment(NamedTuple):
    """A variable for the ranks that the command line sets: the words `first` to `last` (exclusive) do so.

    `value` is None where only the name is given, and the launcher takes the value from its own environment.
    """

    name: str
    value: str | None
    first: int
    last: int


class Part(NamedTuple):
    """One program of the command line; several are separated by `:`.

    `start` is the word at which the part's options begin; `program` and `arguments` are as typed.
    """

    start: int
    program: str
    arguments: tuple[str, ...]
    directory: str | None = None


class CommandLine(NamedTuple):
    """A launcher's command line, read. `words[0]` is the launcher; `kind` is None where it is the program itself."""

    kind: LauncherKind | None
    words: tuple[str, ...]
    parts: tuple[Part, ...]
    assignments: tuple[Assignment, ...] = ()


def read_command_line(kind: LauncherKind, words: Sequence[str], options: LauncherOptions | None = None) -> CommandLine:
    """Return what `words` say to a launcher of that kind, whose `options` are those of any such launcher by default.

    Raises RunError when no program is found, ProgramsInFileError when the programs are listed in a file that palmette
    doesn't read.
    """
    options = options or LauncherOptions(kind)
    parts: list[Part] = []
    assignments: list[Assignment] = []
    at = 1 if kind != "flux" else _behind_flux(words)
    while at < len(words):
        part, at = _read_part(options, words, at, assignments)
        parts.extend(part)
    if not parts or words[-1] == ":":
        raise RunError(
            f"no program in the command line of {Path(words[0]).name}, or none after its last `:`; add it after the"
            " options"
        )
    return CommandLine(kind, tuple(words), tuple(parts), tuple(assignments))


def _behind_flux(words: Sequence[str]) -> int:
    """Return the index behind `flux run`. Raises RunError for other commands of Flux."""
    at = 1
    while at < len(words) and words[at] in ("-v", "--verbose", "-V", "-p", "--parent"):
        at += 1
    if at < len(words) and words[at] in STARTS:
        return at + 1
    given = words[at] if at < len(words) else "nothing"
    raise RunError(
        f"flux {given} starts no tasks by itself: put `palmette run` before `flux run`, inside of what "
        f"`flux {given}` starts"
    )


def _read_part(
    options: LauncherOptions, words: Sequence[str], start: int, assignments: list[Assignment]
) -> tuple[list[Part], int]:
    """Read one program with the options before it; return it and the index behind the `:` that ends it."""
    kind = options.kind
    at = start
    directory = None
    multiple: str | None = None
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        if word == "--":
            at += 1
            break
        name, values, following = _read_option(options, words, at)
        if name in FILES[kind]:
            raise ProgramsInFileError(
                f"{word} {' '.join(values)}: palmette doesn't read programs from a file; put them on the command line"
            )
        if name in DIRECTORIES and values and (kind, name) != ("aprun", "D"):
            directory = values[0]
        if kind == "srun" and name == "multi-prog":
            multiple = word
        assignments.extend(_assignments(kind, name, values, at, following))
        at = following
    end = _end(words, at)
    if at >= end:
        if end < len(words) or at > start:
            raise RunError(f"no program after `{shlex.join(words[start:at])}`: add it")
        return [], len(words)
    if multiple is not None:
        return _multiple(words[at], start, directory), len(words)
    return [Part(start, words[at], tuple(words[at + 1 : end]), directory)], end + 1


def _end(words: Sequence[str], at: int) -> int:
    for index in range(at, len(words)):
        if words[index] == ":":
            return index
    return len(words)


def _read_option(options: LauncherOptions, words: Sequence[str], at: int) -> tuple[str, tuple[str, ...], int]:
    """Return the option's name without dashes, its values, and the index of the word after them."""
    word = words[at]
    body = word.lstrip("-")
    name, equals, attached = body.partition("=")
    if options.kind in ("srun", "flux") and not word.startswith("--"):
        return _read_letters(options, words, at, body)
    # `-n64`, where it is no option of several letters such as `-cc` and `-hosts`.
    whole = {**VALUES[options.kind], **dict.fromkeys(FLAGS[options.kind], 0)}
    if options.kind in ("aprun", "pals") and word[1] != "-" and name not in whole and VALUES[options.kind].get(body[0]):
        return body[0], (body[1:].removeprefix("="),), at + 1
    if equals:
        options.check_own(word.partition("=")[0], name)
        return name, (attached,), at + 1
    count = options.count(word, name)
    # hydra takes `-genv NAME VALUE` and `-genv NAME=VALUE`.
    if name in ("env", "genv") and at + 1 < len(words) and "=" in words[at + 1]:
        count = 1
    if at + count >= len(words):
        raise RunError(f"{word} at the end of the command line lacks its value or the program: add it")
    return name, tuple(words[at + 1 : at + 1 + count]), at + 1 + count


def _read_letters(
    options: LauncherOptions, words: Sequence[str], at: int, body: str
) -> tuple[str, tuple[str, ...], int]:
    """Read srun's short options: `-n4`, `-n 4`, `-ln4`."""
    for index, letter in enumerate(body):
        if letter.isalpha() and options.count(f"-{letter}", letter):
            if body[index + 1 :]:
                return letter, (body[index + 1 :],), at + 1
            if at + 1 >= len(words):
                raise RunError(f"-{letter} at the end of the command line lacks its value: add it")
            return letter, (words[at + 1],), at + 2
        if letter in "IKk":  # their value is optional and follows without a blank
            break
    return body, (), at + 1


_SETS: dict[LauncherKind, tuple[str, ...]] = {
    "prrte": ("x", "set-env"),
    "flux": ("env",),
    "aprun": ("e", "environment-override"),
    "pals": ("env", "genv"),
}
"""Options with NAME=VALUE."""


def _assignments(kind: LauncherKind, name: str, values: tuple[str, ...], first: int, last: int) -> list[Assignment]:
    if kind == "srun":
        if name != "export" or not values:
            return []
        pairs = [entry.partition("=") for entry in values[0].split(",")]
        return [Assignment(key, value if equals else None, first, last) for key, equals, value in pairs]
    if kind in _SETS:
        # Flux's rules without a value say what is taken over, and which file has further ones.
        if name not in _SETS[kind] or not values or (kind == "flux" and "=" not in values[0]):
            return []
        key, equals, value = values[0].partition("=")
        return [Assignment(key, value if equals else None, first, last)]
    if name not in ("env", "genv"):
        return []
    key, value = values if len(values) == 2 else values[0].split("=", 1)
    return [Assignment(key, value, first, last)]


def _multiple(path: str, start: int, directory: str | None) -> list[Part]:
    """Read srun's --multi-prog file: lines of a list of ranks, a program and its arguments."""
    try:
        lines = read_text(path).replace("\\\n", " ").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"--multi-prog {path} can't be read: {error}; correct the name, or say --abi") from None
    parts = []
    for number, line in enumerate(lines, 1):
        try:
            entry = shlex.split(line, comments=True)
        except ValueError as error:
            raise RunError(f"{path}:{number}: {error}; correct the line") from None
        if len(entry) > 1:
            parts.append(Part(start, entry[1], tuple(entry[2:]), directory))
    return parts
