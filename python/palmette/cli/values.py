"""What the shell completes as the value of an option or argument, by the parameter's name or by its metavar.

click completes options, commands, choices and paths by their types. The rest is said here, once for all commands.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import partial

import click
from click.shell_completion import CompletionItem

from palmette.cli.run_mistakes import LAUNCHERS
from palmette.mpi.abi import ABIS
from palmette.mpi.install import NAMES as MPIS

Items = list[CompletionItem]
Completer = Callable[[click.Context, click.Parameter, str], Items]


def _paths(kind: str, _context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    return [CompletionItem(incomplete, type=kind)]


_files = partial(_paths, "file")
_folders = partial(_paths, "dir")


def _starting(names: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _one_of(*names: str) -> Completer:
    return lambda _context, _parameter, incomplete: _starting(names, incomplete)


def _collective_names() -> list[str]:
    from palmette import _core
    from palmette.cli.job_options import OTHER_FORMS

    return [*_core.collectives(), *OTHER_FORMS]


def _collective(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    return _starting(_collective_names(), incomplete)


def _listed(names: Iterable[str], incomplete: str) -> Items:
    """Complete the last of several names that commas separate."""
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{item.value}") for item in _starting(names, last)]


def _collectives(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    return _listed(("all", *_collective_names()), incomplete)


def _mpis(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    return _listed(("all", *MPIS), incomplete)


def _placements(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    return _listed(("block", "cyclic", "random:1"), incomplete)


def _compositions(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    from palmette import _core

    return [*_files(context, parameter, incomplete), *_listed((row[0] for row in _core.compositions()), incomplete)]


def _algorithms(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    from palmette import _core

    return _starting(dict.fromkeys(row.name for row in _core.algorithms()), incomplete)


def _forced(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    from palmette import _core

    return _starting((f"{row.collective}={row.name}" for row in _core.algorithms()), incomplete)


def _command_line(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """A launcher that is installed, or a file: programs and their input."""
    # Files first: in bash they are what is completed where no name begins so.
    begun = bool(context.params.get(parameter.name or ""))
    installed = () if begun else (name for name in LAUNCHERS if name.startswith(incomplete) and shutil.which(name))
    return [*_files(context, parameter, incomplete), *_starting(installed, incomplete)]


BY_NAME: dict[str, Completer] = {
    "abi": _one_of(*ABIS),
    "algorithms": _algorithms,
    "argv": _command_line,
    "collective": _collective,
    "collectives": _collectives,
    "command_line": _command_line,
    "compositions": _compositions,
    "file": _files,
    "force": _forced,
    "mpi": _mpis,
    "mpis": _mpis,
    "patterns": _one_of("rail", "fan", "dense", "self", "pair:", "matrix:"),
    "placement": _placements,
    "report": _command_line,
    "runs": _files,
    "what": _compositions,
    "words": _collectives,
}
BY_METAVAR: dict[str, Completer] = {"FILE": _files, "PATH": _files, "DIR": _folders, "FOLDER": _folders}


def add_values(command: click.Command) -> click.Command:
    """Return the command, whose parameters complete what these tables say where their types don't; subcommands, too."""
    for parameter in command.params:
        completer = BY_NAME.get(parameter.name or "") or BY_METAVAR.get(parameter.metavar or "")
        if completer is not None and not isinstance(parameter.type, click.Choice | click.Path):
            parameter.shell_complete = _bound(completer, parameter)  # type: ignore[assignment, method-assign]
    if not command.context_settings.get("allow_interspersed_args", True):
        command.shell_complete = _options_before_words(command)  # type: ignore[assignment, method-assign]
    for subcommand in command.commands.values() if isinstance(command, click.Group) else ():
        add_values(subcommand)
    return command


def _bound(completer: Completer, parameter: click.Parameter) -> Callable[[click.Context, str], Items]:
    return lambda context, incomplete: completer(context, parameter, incomplete)


def _options_before_words(command: click.Command) -> Callable[[click.Context, str], Items]:
    """Options behind the first word of another program's command line are that program's own."""
    arguments = [parameter.name for parameter in command.params if isinstance(parameter, click.Argument)]

    def complete(context: click.Context, incomplete: str) -> Items:
        begun = any(context.params.get(name or "") for name in arguments)
        return [] if begun else click.Command.shell_complete(command, context, incomplete)

    return complete
