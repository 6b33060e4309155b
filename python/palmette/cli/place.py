"""Where a measuring command runs: local ranks, or behind `--` the line that starts the user's jobs.

One form for all of them: the options of `place_options`, and the class `LineCommand` for the words behind `--`. A
program that is built on these commands may bring a place of its own: a `HostPlace` in the context's `meta[ELSEWHERE]`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Protocol

import click

from palmette.bench.settings import split_placements
from palmette.cli.common import CliError, SectionedCommand, WholeNumber, errors
from palmette.measure.lines import AS_LAUNCHED, LinePlace
from palmette.measure.places import LocalPlace, Place
from palmette.mpi.abi import ABIS

DEFAULT_LOCAL_RANKS = 4
EXAMPLE_LINE = "mpiexec -n 64"
ELSEWHERE = "palmette.elsewhere"
"""Key of a context's `meta`: the place that another program's options name."""

_LINE = "palmette.line"


class HostPlace(Protocol):
    """A place with hosts to place ranks on, and what its options say of them."""

    option: str
    """What named it, for messages."""
    lasts: bool
    """Whether it was there before, so that its topology.json may be written."""
    placement: str | None
    ppn: int | None
    ranks: int | None
    mpi: str | None
    """For commands without --mpi."""

    def place(self) -> AbstractContextManager[Place]:
        """Make the place, for as long as the context lasts. Raises PlaceError, CliError."""
        ...


class LineCommand(SectionedCommand):
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


def line_of(context: click.Context) -> tuple[str, ...]:
    """Return the words behind `--`."""
    found: tuple[str, ...] = context.meta.get(_LINE, ())
    return found


@dataclass(frozen=True)
class PlaceOptions:
    """What the command line says of the place. `topology` and `abi` belong to `line`."""

    local_ranks: int | None = None
    line: tuple[str, ...] = ()
    topology: Path | None = None
    abi: str | None = None
    elsewhere: HostPlace | None = None

    @property
    def named(self) -> list[str]:
        """The places that are named, as options."""
        return [
            name
            for name, value in (
                (self.elsewhere.option if self.elsewhere else "", self.elsewhere), ("--local", self.local_ranks),
                (f"-- {' '.join(self.line)}", self.line or None),
            )
            if value is not None
        ]  # fmt: skip

    @property
    def ppn(self) -> int | None:
        """Ranks a host, where that is chosen."""
        return self.elsewhere.ppn if self.elsewhere else None

    @property
    def ranks(self) -> int | None:
        """Ranks of the job, where that is chosen."""
        return self.elsewhere.ranks if self.elsewhere else None

    def checked(self) -> PlaceOptions:
        """Return this. Raises CliError when more than one place is named, or an option of a line has none."""
        named = self.named
        if len(named) > 1:
            raise CliError(f"{' and '.join(named)} name different places to run; give one of them")
        if not self.line and (self.topology is not None or self.abi is not None):
            option = "--topology" if self.topology is not None else "--abi"
            whose = "a lab brings its own" if self.elsewhere else "local ranks need none"
            raise CliError(f"{option} belongs to a launcher line (-- {EXAMPLE_LINE}); {whose}")
        return self

    def refuse_with_line(self, options: Mapping[str, object]) -> None:
        """Raise CliError for an option that chooses what a launcher line has chosen already."""
        given = [name for name, value in options.items() if value is not None]
        if self.line and given:
            raise CliError(f"{given[0]} and a launcher line both say where to run; leave one of them out")

    def placements(self, default: str = "block") -> tuple[str, ...]:
        """Return the placements to measure; `default` names those of a place that has a choice."""
        if self.line:
            return (AS_LAUNCHED,)
        if self.elsewhere is None:
            return ("block",)
        return split_placements(self.elsewhere.placement or default)

    def is_local(self) -> bool:
        """Whether to run local ranks: asked for, or because nothing else is named."""
        return self.local_ranks is not None or not self.named

    @contextmanager
    def place(self, *, local: bool) -> Iterator[Place]:
        """Make the place, for as long as the context lasts. Raises PlaceError, BenchError, CliError."""
        if self.line:
            place = LinePlace(self.line, self.topology, self.abi)
            with errors.status(f"{place.line.text}: a first short job, to see where its ranks are"):
                place.hosts  # noqa: B018 - what hinders it is told before anything else
            yield place
        elif local or self.elsewhere is None:
            if self.local_ranks is None:
                path = click.get_current_context().command_path
                errors.print(f"{path}: {DEFAULT_LOCAL_RANKS} local ranks; a cluster: -- {EXAMPLE_LINE}", markup=False)
            with tempfile.TemporaryDirectory(prefix="palmette-bench-") as folder:
                yield LocalPlace(self.local_ranks or DEFAULT_LOCAL_RANKS, Path(folder))
        else:
            with self.elsewhere.place() as made:
                yield made


def where_of(
    context: click.Context, local_ranks: int | None = None, topology: Path | None = None, abi: str | None = None
) -> PlaceOptions:
    """Return the place that a command's options and its line name."""
    return PlaceOptions(local_ranks, line_of(context), topology, abi, context.meta.get(ELSEWHERE))


def place_options(
    *, local: int | None = 1, topology: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options that name a place to a `LineCommand`, whose parameter `where` they become.

    `local`: the fewest local ranks, None for no such option; `topology`: --topology is that of a launcher line.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*arguments: Any, abi: str | None, **others: Any) -> Any:
            context = click.get_current_context()
            file = others.pop("topology") if topology else None
            where = where_of(context, others.pop("local_ranks", None), file, abi)
            return function(*arguments, where=where, **others)

        options = []
        if local is not None:
            what = "This many local ranks."
            options.append(
                click.option("-n", "--local", "local_ranks", type=WholeNumber(local), metavar="RANKS", help=what)
            )
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


def with_bare_line(where: PlaceOptions, words: tuple[str, ...]) -> PlaceOptions:
    """Return `where` with the line as earlier versions took it, without `--`. Raises CliError where both are given."""
    if words and where.line:
        raise CliError(f"{words[0]}: what stands before -- has no meaning here; give the launcher's line behind it")
    return replace(where, line=words) if words else where
