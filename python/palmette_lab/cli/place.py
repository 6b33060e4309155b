"""The options that name a lab, and the lab as a place of palmette's measuring commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from palmette.cli.common import CliError, SectionedCommand, WholeNumber, errors
from palmette.cli.duration import duration
from palmette.cli.level_names import note_levels
from palmette.cli.place import ELSEWHERE, line_of
from palmette.measure.places import Place
from palmette.mpi import install as mpi_install
from palmette_lab.cli.here import be_root, check_lab
from palmette_lab.lab import Lab, LabError
from palmette_lab.lab import state as lab_state
from palmette_lab.place import LabPlace, free_lab_name
from palmette_lab.sets import LAB


@dataclass(frozen=True)
class LabOptions:
    """A lab that is up, by its name, or one to make of `spec`; and where ranks go on it."""

    spec: str | None = None
    name: str | None = None
    spine_delay_s: float | None = None
    placement: str | None = None
    ppn: int | None = None
    ranks: int | None = None
    mpi: str | None = None

    @property
    def option(self) -> str:
        """What named it."""
        return "--lab"

    @property
    def lasts(self) -> bool:
        """Whether it is up already."""
        return self.name is not None

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Bring it up, for as long as the context lasts. Raises LabError, CliError."""
        if self.name is not None:
            if self.spine_delay_s is not None:
                raise CliError("--spine-delay is set when a lab is made; leave it out for one that is up")
            yield LabPlace(Lab.attach(self.name))
            return
        be_root()
        spec = self.spec or LAB
        note_levels(spec)
        # A unique name: a lab of the default name may be up.
        with Lab.up(spec, name=free_lab_name("bench"), spine_delay_s=self.spine_delay_s) as lab:
            yield LabPlace(lab)


def lab_or_spec(text: str) -> tuple[str | None, str | None]:
    """Return the SPEC or the name that `--lab` means: a lab of that name that is up goes first."""
    is_name = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", text) is not None
    if is_name:
        found = lab_state.read_state(lab_state.lab_directory(text))
        if (found is not None and found.is_alive()) or not (text[0].isdigit() or Path(text).exists()):
            return None, text
    return text, None


def can_be_made() -> bool:
    """Whether a lab can be brought up here; where not, a line says that local ranks are taken."""
    try:
        check_lab()
    except LabError as error:
        path = click.get_current_context().command_path
        errors.print(f"{path}: no lab: {error}", markup=False)
        return False
    return True


def complete_labs(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the labs that are known, for completion."""
    return [name for name in lab_state.known_labs() if name.startswith(incomplete)]


LAB_PARAMETERS = ("lab", "spine_delay", "lab_mpi", "placement", "ppn", "ranks")
"""Parameters of the options of a lab, which have a section of their own in the help."""


def lab_options(*, placement: str | None = "block", mpi: bool = False) -> list[click.Option]:
    """Return the options of a lab; `placement`: the default of --placement, None for commands that place no ranks."""
    made = [
        click.Option(
            ["--lab"], metavar="NAME|SPEC", help="A lab that is up, or one that is made for this.",
            shell_complete=complete_labs,
        ),
        click.Option(
            ["--spine-delay"], callback=duration, metavar="TIME",
            help="The made lab's top switch holds each frame: 5ms.",
        ),
    ]  # fmt: skip
    if mpi:
        names = click.Choice(list(mpi_install.NAMES))
        made.append(click.Option(["--mpi", "lab_mpi"], type=names, help="Which MPI on the lab. [default: the first]"))
    if placement is not None:
        made += [
            click.Option(["--placement"], help=f"Placements, separated by commas. [default: {placement}]"),
            click.Option(["--ppn"], type=WholeNumber(1), help="Ranks a host. [default: the lab's slots]"),
            click.Option(["--ranks"], type=WholeNumber(1), help="Ranks of the job. [default: all slots]"),
        ]
    return made


def choose(values: dict[str, Any], *, makes_default: bool) -> None:
    """Take the options of a lab from a command's values, and tell its context which lab they mean. Raises CliError."""
    context = click.get_current_context()
    lab = values.pop("lab", None)
    delay, mpi = values.pop("spine_delay", None), values.pop("lab_mpi", None)
    on = {name: values.pop(name, None) for name in ("placement", "ppn", "ranks")}
    line, local = line_of(context), values.get("local_ranks")
    given = [f"--{name}" for name, value in on.items() if value is not None]
    if line and given:
        raise CliError(f"{given[0]} and a launcher line both say where to run; leave one of them out")
    if lab is None:
        if line or local is not None or not makes_default or not can_be_made():
            if given:
                raise CliError(
                    f"{given[0]} has no meaning for local ranks, which share one host; leave it out or give --lab"
                )
            return
        context.meta[ELSEWHERE] = LabOptions(None, None, delay, mpi=mpi, **on)
        return
    spec, name = lab_or_spec(lab)
    context.meta[ELSEWHERE] = LabOptions(spec, name, delay, mpi=mpi, **on)


def on_lab(
    command: click.Command, example: str, *, placement: str | None = "block", makes_default: bool = True,
    mpi: bool = False,
) -> click.Command:  # fmt: skip
    """Return a command of palmette's that takes a lab, too. `makes_default`: where nothing is named, it makes one."""
    callback = command.callback
    assert callback is not None

    def run(**values: Any) -> Any:
        choose(values, makes_default=makes_default)
        return callback(**values)

    assert isinstance(command, SectionedCommand)
    made: Callable[..., click.Command] = type(command)
    return made(
        command.name, callback=run, params=[*command.params, *lab_options(placement=placement, mpi=mpi)],
        sections={"On a lab": LAB_PARAMETERS, **command.sections}, help=command.help, epilog=f"Example: {example}",
        context_settings=command.context_settings,
    )  # fmt: skip
