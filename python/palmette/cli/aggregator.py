"""The program `palmette-aggregator`: reductions on the way, by a daemon in the network."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from palmette.aggregator import status as daemon_status
from palmette.aggregator import token as tokens
from palmette.cli.common import CliError, WholeNumber, emit_json, json_option
from palmette.cli.completion import command as completion
from palmette.cli.duration import duration
from palmette.cli.group import SETTINGS, run_group
from palmette.cli.program import run_program
from palmette.mpi.abi import LIBRARIES
from palmette.mpi.errors import RunError
from palmette.mpi.helpers import helper

SERVE_OPTIONS = {
    "config": ("FILE", "JSON object of these options by name, and of limits."),
    "listen": ("HOST:PORT", "Where members connect.  [default: 127.0.0.1:7117]"),
    "key": ("FILE", "The site's key, with mode 0600."),
    "parent": ("HOST:PORT", "The daemon above, with the same key."),
    "profile": ("NAME", "Limits: open, quantum, switch-ib2 or slingshot."),
    "name": ("NAME", "Its name in the status."),
    "status": ("PATH", "Unix socket for `palmette-aggregator status`."),
    "user": ("NAME", "Keep only this user's rights when started as root."),
}


@click.group("palmette-aggregator", epilog="Example: palmette-aggregator status", context_settings=SETTINGS)
@click.version_option(package_name="palmette", prog_name="palmette-aggregator")
def command() -> None:
    """Reduce on the way: a daemon beside a switch, on a DPU or a spare host.

    It combines what the leaders of a job's nodes send, and sends back the result.
    """


@command.command(epilog="Example: palmette-aggregator serve --key site.key --listen 10.0.0.9:7117 --user palmette")
def serve(**options: str | None) -> None:
    """Run the daemon until it is stopped (SIGTERM, Ctrl-C)."""
    _start([word for name, value in options.items() if value is not None for word in (f"--{name}", value)])


def _start(words: list[str]) -> None:
    """Become the daemon's program: signals and the exit status are its own."""
    try:
        program = helper("palmette-aggregator")
    except RunError as error:
        raise CliError(str(error)) from None
    os.execv(program, [str(program), *words])  # noqa: S606


for _name, (_metavar, _help) in reversed(SERVE_OPTIONS.items()):
    serve = click.option(f"--{_name}", metavar=_metavar, help=_help)(serve)


@command.command(epilog="Example: palmette-aggregator token --key site.key --uid 1000 -o ~alice/palmette.token")
@click.option("--new-key", metavar="FILE", help="Make a site's key, for its daemons and tokens, and do nothing else.")
@click.option("--key", metavar="FILE", help="The site's key.")
@click.option("--uid", type=WholeNumber(0), help="Whose quota its groups count for.  [default: who calls]")
@click.option(
    "--expires", callback=duration, metavar="TIME", default="720h", show_default=True, help="How long it is good for."
)
@click.option("--groups", type=WholeNumber(1), default=16, show_default=True, help="At the same time in each daemon.")
@click.option("-o", "--output", metavar="FILE", help="A new file with mode 0600, not standard output.")
def token(
    new_key: str | None, key: str | None, uid: int | None, expires: float, groups: int, output: str | None
) -> None:
    """Make a token, which lets its holder make groups."""
    if new_key is not None:
        _write(new_key, tokens.new_key(), "--new-key")
        click.echo(f"wrote {new_key}; give it to each daemon of the site, and to nobody else")
        return
    if key is None:
        raise CliError("--key FILE is missing; --new-key FILE makes one")
    try:
        site_key = tokens.read_key(key)
    except tokens.TokenError as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"can't read {key}: {error.strerror}; name the site's key with --key") from None
    text = tokens.make_token(site_key, os.getuid() if uid is None else uid, int(time.time() + expires), groups)
    if output is None:
        click.echo(text)
    else:
        _write(output, text, "-o")
        click.echo(f"wrote {output}")


@command.command("try", epilog="Example: palmette-aggregator try 10.0.0.9:7117 --token ~/palmette.token")
@click.argument("address", metavar="HOST:PORT")
@click.option("--token", "token_file", metavar="FILE", required=True, help="What `palmette-aggregator token` made.")
@click.option(
    "--members", type=WholeNumber(1, max=1024), default=2, show_default=True, help="All of them in this process."
)
@click.option(
    "--bytes", "size", type=WholeNumber(0, max=1 << 30), default=1 << 20, show_default=True, help="Of each member."
)
@click.option("--chunk", type=WholeNumber(32, max=1 << 24), default=16384, show_default=True, help="Bytes of a frame.")
def trial(address: str, token_file: str, members: int, size: int, chunk: int) -> None:
    """Try a daemon: make a group, sum numbers, compare the result."""
    numbers = {"members": members, "bytes": size, "chunk": chunk}
    words = [word for name, number in numbers.items() for word in (f"--{name}", str(number))]
    _start(["--try", address, "--token", token_file, *words])


@command.command(epilog="Example: export PALMETTE_SHARP=$(palmette-aggregator twin)")
def twin() -> None:
    """Print the path of the software twin of libsharp_coll.

    It has the interface of NVIDIA's library, and a daemon in the place of its switches.
    """
    path = LIBRARIES / "sharp" / "libsharp_coll.so.5"
    if not path.is_file():
        raise CliError(f"{path} isn't built; `make build` in a checkout, or install the package again")
    click.echo(path)


def _write(path: str, text: str, option: str) -> None:
    try:
        tokens.write_secret(Path(path), text)
    except OSError as error:
        raise CliError(f"can't write {path}: {error.strerror}; name a new file with {option}") from None


@command.command(epilog="Example: palmette-aggregator status --metrics > /var/lib/node_exporter/palmette.prom")
@click.argument("path", default=daemon_status.DEFAULT_PATH)
@click.option("--metrics", "as_metrics", is_flag=True, help="Print Prometheus' text format.")
@json_option
def status(path: str, as_metrics: bool, as_json: bool) -> None:
    """Show a daemon's groups, users, limits and refusals.

    PATH is the socket of its --status, /run/palmette-aggregator/status.sock by default.
    """
    try:
        told = daemon_status.read(path)
    except daemon_status.StatusError as error:
        raise CliError(str(error)) from None
    except OSError as error:
        reason = error.strerror or "no answer"
        raise CliError(f"{path}: {reason}; name the socket of a daemon's --status") from None
    if as_json:
        emit_json(told)
    else:
        click.echo("\n".join((daemon_status.metrics if as_metrics else daemon_status.lines)(told)))


command.add_command(completion)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status (program.run_program)."""
    return run_program("palmette-aggregator", arguments, lambda words: run_group(command, words), lambda: command)


if __name__ == "__main__":
    sys.exit(main())
