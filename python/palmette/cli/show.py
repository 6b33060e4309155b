"""`palmette show`: a topology as a tree, a picture or JSON."""

from __future__ import annotations

import click

from palmette.cli.common import CliError, emit_json, json_option, write_file
from palmette.discover.report import level_table
from palmette.show.fold import Folder
from palmette.show.svg import svg
from palmette.show.text import MAX_CHILDREN, tree_text
from palmette.topology.file import TopologyError, load


@click.command("show", epilog="Example: palmette show topology.json --svg topology.svg")
@click.argument("file", default="topology.json")
@click.option("--svg", "picture", metavar="FILE", help="Write a picture of switches, hosts and link capacities.")
@click.option("--all", "everything", is_flag=True, help="One line for each group and host, nothing folded.")
@json_option
def command(file: str, picture: str | None, everything: bool, as_json: bool) -> None:
    """Show a topology as a tree, a picture or JSON.

    FILE is what `palmette discover` wrote, topology.json by default. Equal groups are shown once, with their number.
    """
    try:
        topology = load(file)
    except TopologyError as error:
        raise CliError(str(error)) from None
    if picture is not None:
        write_file(picture, svg(topology), "--svg")
    if as_json:
        folder = Folder(topology.machine.tree)
        emit_json(
            {
                "name": topology.name,
                "hosts": folder.hosts(topology.machine.tree),
                "levels": level_table(topology),
                "tree": folder.fold(by_level_above=None if everything else MAX_CHILDREN).to_json(),
                "svg": picture,
            }
        )
        return
    click.echo("\n".join(tree_text(topology, everything)))
    if picture is not None:
        click.echo(f"\nwrote {picture}")
