"""`palmette discover`: how a cluster is wired, from files and tools, into topology.json."""

from __future__ import annotations

import io
import os
from typing import Any

import click

from palmette.cli.common import CliError, emit_json, json_option
from palmette.discover.found import DiscoverError
from palmette.discover.report import level_table, summary
from palmette.discover.run import KINDS, discover
from palmette.topology_model import Topology


class _FromCommand(click.Command):
    """Lets --from take one or two words, `--from KIND [ARGUMENT]`, which click's options can't.

    A word after KIND that is no option is its argument; both become `KIND:ARGUMENT`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        joined: list[str] = []
        while words:
            word = words.pop(0)
            if word == "--from" and words:
                word = f"--from={words.pop(0)}"
            if word.startswith("--from=") and ":" not in word and words and _is_value(words[0]):
                word = f"{word}:{words.pop(0)}"
            joined.append(word)
        return super().parse_args(ctx, joined)


def _is_value(word: str) -> bool:
    return word == "-" or not word.startswith("-")


_KINDS_HELP = "\n".join(f"  {kind:<14} {what}" for kind, (_, what) in KINDS.items())


@click.command(
    "discover",
    cls=_FromCommand,
    help=(
        "Find out how a cluster is wired and write it to topology.json.\n\n"
        "--from may be repeated: the fabric comes from one source, the inside of its nodes from another.\n\n"
        f"\b\nKinds of source:\n{_KINDS_HELP}"
    ),
    epilog="Example: palmette discover --from ibnetdiscover fabric.txt --from hwloc",
)
@click.option("--from", "sources", multiple=True, metavar="KIND [ARGUMENT]", help="A source, also as KIND:ARGUMENT.")
@click.option(
    "-o",
    "--output",
    default="topology.json",
    show_default=True,
    metavar="FILE",
    help="Where to write; - is the screen.",
)
@click.option("--name", default=None, help="Name of the cluster in the file.")
@json_option
def command(sources: tuple[str, ...], output: str, name: str | None, as_json: bool) -> None:
    """Discover, write the file, print the summary; the help text is above, because it lists the kinds."""
    if not sources:
        raise CliError("no source given; for instance: palmette discover --from ibnetdiscover FILE -o topology.json")
    if as_json and output == "-":
        raise CliError("--json and -o - both want the screen; leave one of them out")
    try:
        topology = discover([_split(source) for source in sources], name)
    except DiscoverError as error:
        raise CliError(str(error)) from None
    if output == "-":
        text = io.StringIO()
        topology.write(text)
        click.echo(text.getvalue(), nl=False)
        click.echo("\n".join(summary(topology, None)), err=True)
        return
    try:
        topology.save(output)
    except OSError as error:
        raise CliError(f"can't write {output}: {error.strerror}; choose another file with -o") from None
    if as_json:
        emit_json(_as_json(topology, output))
    else:
        click.echo("\n".join(summary(topology, output)))


def _split(source: str) -> tuple[str, str | None]:
    kind, colon, argument = source.partition(":")
    return kind, argument if colon else None


def _as_json(topology: Topology, output: str) -> dict[str, Any]:
    document = topology.to_json()
    return {
        "output": os.fspath(output),
        "name": topology.name,
        "hosts": sum(1 for _ in topology.machine.tree.hosts()),
        "levels": level_table(topology),
        "insides": document["machine"]["insides"],
        "unnamed_adapters": len(topology.fabric.unnamed_adapters) if topology.fabric else 0,
        "sources": document["sources"],
        "left_out": document["left_out"],
        "warnings": document["warnings"],
    }
