"""`palmette convert`: a recording in another tool's format."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from palmette.cli.common import CliError, emit_json, json_option
from palmette.cli.duration import duration
from palmette.cli.progress import Bar
from palmette.present.words import wrapped
from palmette.record.formats.convert import FORMATS, Conversion, convert
from palmette.record.reading import RecordError, read_job

EXAMPLE = "palmette convert calls --to perfetto -o calls.pftrace"
NAMES = tuple(FORMATS)
SLOW_CALLS = 3_000_000
"""Calls: from here on converting takes a minute or more."""


@click.command("convert", context_settings={"max_content_width": 80}, epilog=f"Example: {EXAMPLE}")
@click.argument("folder", metavar="RECORDING", type=click.Path(path_type=Path))
@click.option("--to", "name", type=click.Choice(NAMES), metavar="FORMAT", required=True, help=f"{', '.join(NAMES)}.")
@click.option("-o", "--output", "target", metavar="PATH", required=True, help="Write there; OTF2 is a folder.")
@click.option("--from", "from_s", metavar="TIME", callback=duration, help="Calls from then on: 1.2s, 350ms.")
@click.option("--until", "until_s", metavar="TIME", callback=duration, help="Calls before then.")
@click.option("--ranks", metavar="LIST", help="Only these: 0-3,8.")
@json_option
def command(
    folder: Path,
    name: str,
    target: str,
    from_s: float | None,
    until_s: float | None,
    ranks: str | None,
    as_json: bool,
) -> None:
    """Write a recording in the format of another tool.

    RECORDING is the folder that `palmette run --trace` or `--profile` got; of a profile, formats that need no single
    calls: folded, pprof, cali, csv, speedscope, sqlite. Times count from the job's first call; a call belongs to the
    window when a part of it does.
    """
    chosen = _ranks(ranks) if ranks is not None else None
    if not target:
        raise CliError("-o: the output has no name")
    output = Path(target)
    try:
        with _Progress() as progress:
            done = convert(
                read_job(folder), name, output, ranks=chosen, from_s=from_s, until_s=until_s, progress=progress.told
            )
    except RecordError as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"can't write {output}: {error.strerror or error}; choose another place with -o") from None
    if as_json:
        emit_json(_document(name, output, done))
    else:
        click.echo("\n".join(_lines(output, done)), err=str(output) == "/dev/stdout")


class _Progress(ExitStack):
    """Shows the progress of a long conversion, and says what makes it shorter."""

    _bar: Bar | None = None

    def told(self, done: int, total: int) -> None:
        """Show how many of the calls were read."""
        if total < SLOW_CALLS:
            return
        if self._bar is None:
            advice = "--from, --until and --ranks take some of them"
            click.echo(f"palmette convert: {total:,} calls to read; {advice}", err=True)
            self._bar = self.enter_context(Bar("{task.completed:,} of {task.total:,} calls", total, "converting"))
        self._bar.move(done)


def _ranks(text: str) -> list[int]:
    """Return the ranks of 0-3,8. Raises CliError."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise CliError(f"--ranks {text}: '{part}' names no ranks; write them like 0-3,8")
        if int(last or first) >= 1 << 24:
            raise CliError(f"--ranks {text}: '{part}' is more ranks than a recording can have")
        found |= set(range(int(first), int(last or first) + 1))
    return sorted(found)


def _lines(output: Path, done: Conversion) -> list[str]:
    counts = done.counts
    parts = [f"{counts.calls:,} calls"]
    parts += [f"{counts.requests:,} requests"] if counts.requests else []
    parts += [f"{counts.messages:,} messages"] if counts.messages else []
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    lines = [f"{listed} of {done.ranks:,} rank{'s' if done.ranks != 1 else ''}: {output}"]
    for note in done.notes:
        lines += wrapped(f"note: {note}", whole_words=False)
    return lines


def _document(name: str, output: Path, done: Conversion) -> dict[str, object]:
    counts = done.counts
    return {
        "format": name, "output": str(output), "ranks": done.ranks, "calls": counts.calls,
        "requests": counts.requests, "messages": counts.messages, "in_mpi_s": counts.seconds, "notes": done.notes,
    }  # fmt: skip
