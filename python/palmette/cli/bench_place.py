"""Where a measuring command runs: a lab, local ranks, or behind `--` the line that starts the user's jobs.

One form for all of them: the options of `place_options`, and the class `LineCommand` for the words behind `--`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from palmette.bench.sets import LAB, BenchSet
from palmette.bench.settings import split_placements
from palmette.cli.common import CliError, Whole, errors
from palmette.cli.duration import duration
from palmette.cli.lab_here import be_root, check_lab
from palmette.cli.level_names import note_levels
from palmette.lab import Lab, LabError
from palmette.lab import state as lab_state
from palmette.measure.lines import AS_LAUNCHED, LinePlace
from palmette.measure.places import LabPlace, LocalPlace, Place, free_lab_name
from palmette.mpi.abi import ABIS

DEFAULT_LAB = LAB
DEFAULT_LOCAL_RANKS = 4
EXAMPLE_LINE = "mpiexec -n 64"

_LINE = "palmette.line"


class LineCommand(click.Command):
    """A command whose words behind `--` are the line that starts the user's jobs, without a program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the line away before click looks for options in it. Raises CliError."""
        words = list(args)
        if "--" in words:
            at = words.index("--")
            ctx.meta[_LINE] = tuple(words[at + 1 :])
            if not ctx.meta[_LINE] and not ctx.resilient_parsing:
                raise CliError(f"nothing follows --; give the line that starts your jobs: -- {EXAMPLE_LINE}")
            words = words[:at]
        return super().parse_args(ctx, words)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show the line in the usage."""
        return [*filter(None, super().collect_usage_pieces(ctx)), "[-- LAUNCHER...]"]


@dataclass(frozen=True)
class Where:
    """What the command line says of the place. `topology` and `abi` belong to `line`."""

    lab_spec: str | None
    lab_name: str | None
    spine_delay_s: float | None
    local_ranks: int | None
    line: tuple[str, ...] = ()
    topology: Path | None = None
    abi: str | None = None

    @property
    def named(self) -> list[str]:
        """The places that are named, as options."""
        return [
            name
            for name, value in (
                ("--lab", self.lab_spec), ("--lab", self.lab_name), ("--local", self.local_ranks),
                (f"-- {' '.join(self.line)}", self.line or None),
            )
            if value is not None
        ]  # fmt: skip

    def completed(self, named_set: BenchSet | None) -> Where:
        """Return the place of a set where none is named. Raises CliError when more than one is."""
        named = self.named
        if len(named) > 1:
            raise CliError(f"{' and '.join(named)} name different places to run; give one of them")
        if not self.line and (self.topology is not None or self.abi is not None):
            option = "--topology" if self.topology is not None else "--abi"
            raise CliError(f"{option} belongs to a launcher line (-- {EXAMPLE_LINE}); a lab brings its own")
        if self.line and named_set is not None:
            raise CliError(f"--set {named_set.name} has a place of its own; leave out the set or the launcher line")
        if named or named_set is None:
            return self
        return Where(
            named_set.lab, None, named_set.spine_delay_s if self.spine_delay_s is None else self.spine_delay_s,
            named_set.local_ranks,
        )  # fmt: skip

    def refuse_with_line(self, options: Mapping[str, object]) -> None:
        """Raise CliError for an option that chooses what a launcher line has chosen already."""
        given = [name for name, value in options.items() if value is not None]
        if self.line and given:
            raise CliError(f"{given[0]} and a launcher line both say where to run; leave one of them out")

    def placements(self, text: str) -> tuple[str, ...]:
        """Return the placements of `text`, or that of a launcher line."""
        return (AS_LAUNCHED,) if self.line else split_placements(text)

    def is_local(self) -> bool:
        """Whether to run local ranks: asked for, or because no lab can be made and none is asked for."""
        if self.named:
            return self.local_ranks is not None
        try:
            check_lab()
        except LabError as error:
            errors.print(f"palmette bench: no lab ({error}); {DEFAULT_LOCAL_RANKS} local ranks", markup=False)
            return True
        return False

    @contextmanager
    def place(self, *, local: bool) -> Iterator[Place]:
        """Make the place, for as long as the context lasts. Raises LabError, BenchError, CliError."""
        if self.line:
            place = LinePlace(self.line, self.topology, self.abi)
            with errors.status(f"{place.line.text}: a first short job, to see where its ranks are"):
                place.hosts  # noqa: B018 - what hinders it is told before anything else
            yield place
        elif local:
            with tempfile.TemporaryDirectory(prefix="palmette-bench-") as folder:
                yield LocalPlace(self.local_ranks or DEFAULT_LOCAL_RANKS, Path(folder))
        elif self.lab_name is not None:
            if self.spine_delay_s is not None:
                raise CliError("--spine-delay is set when a lab is made; leave it out for one that is up")
            yield LabPlace(Lab.attach(self.lab_name))
        else:
            be_root()
            # A unique name: a lab of the default name may be up.
            name = free_lab_name("bench")
            note_levels(self.lab_spec or DEFAULT_LAB)
            with Lab.up(self.lab_spec or DEFAULT_LAB, name=name, spine_delay_s=self.spine_delay_s) as lab:
                yield LabPlace(lab)


def lab_or_spec(text: str) -> tuple[str | None, str | None]:
    """Return the SPEC or the name that `--lab` means: a lab of that name that is up goes first."""
    is_name = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", text) is not None
    if is_name:
        found = lab_state.read_state(lab_state.lab_directory(text))
        if (found is not None and found.is_alive()) or not (text[0].isdigit() or Path(text).exists()):
            return None, text
    return text, None


def place_options(
    *, spine_delay: bool = False, local: int | None = 1, topology: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options that name a place to a `LineCommand`, whose parameter `where` they become.

    `local`: the fewest local ranks, None for no such option; `topology`: --topology is that of a launcher line.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*arguments: Any, lab: str | None, lab_name: str | None, abi: str | None, **others: Any) -> Any:
            spec, named = lab_or_spec(lab) if lab is not None else (None, None)
            if lab is not None and lab_name is not None:
                raise CliError("--lab and --lab-name name different places to run; give one of them")
            where = Where(
                spec, named or lab_name, others.pop("spine_delay", None), others.pop("local_ranks", None),
                click.get_current_context().meta.get(_LINE, ()), others.pop("topology") if topology else None, abi,
            )  # fmt: skip
            return function(*arguments, where=where, **others)

        options = [
            click.option("--lab", metavar="NAME|SPEC", help="A lab that is up, or one that is made for this."),
            click.option("--lab-name", metavar="NAME", hidden=True),
        ]
        if spine_delay:
            what = "The made lab's top switch holds each frame: 5ms."
            options.append(click.option("--spine-delay", callback=duration, metavar="TIME", help=what))
        if local is not None:
            what = "No lab: this many local ranks."
            options.append(click.option("-n", "--local", "local_ranks", type=Whole(local), metavar="RANKS", help=what))
        if topology:
            path = click.Path(path_type=Path, dir_okay=False)
            what = "topology.json of a launcher's hosts."
            options.append(click.option("--topology", type=path, metavar="FILE", help=what))
        what = "ABI of a launcher's MPI, for srun."
        options.append(click.option("--abi", type=click.Choice(ABIS), help=what))
        for option in reversed(options):
            command = option(command)
        return command

    return add


def with_bare_line(where: Where, words: tuple[str, ...]) -> Where:
    """Return `where` with the line as earlier versions took it, without `--`. Raises CliError where both are given."""
    if words and where.line:
        raise CliError(f"{words[0]}: what stands before -- has no meaning here; give the launcher's line behind it")
    return replace(where, line=words) if words else where
