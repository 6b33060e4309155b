"""A note where the levels of a synthetic machine have names that nothing asks for.

Any name is allowed. But algorithms and rows of the table ask for levels by name, so that a slip (`2laef:4node`) changes
what is chosen, without an error.
"""

from __future__ import annotations

import re

import click

from palmette import _core
from palmette.cli.meant import close
from palmette.cli.printable import printable

KNOWN = (
    "dragonfly", "group", "pod", "block", "rack", "leaf", "chassis", "node", "board", "package", "socket", "numa",
    "die", "l3", "cluster", "l2", "core",
)  # fmt: skip
"""The names that discovery gives and algorithms accept (`level_names` in src/palmette/collectives/registry.cpp)."""
MOST_NOTES = 4
"""More slips in one machine are none."""
_FORM = re.compile(r"(?:^|:)[\d+\s]+([A-Za-z][A-Za-z_]*\d*)")


def levels_of(spec: str) -> list[str]:
    """Return the names of the levels of a synthetic form, outermost first; nothing where it isn't one."""
    return _FORM.findall(spec)


def level_notes(spec: str) -> list[str]:
    """Return what is odd about the names of the levels: a slip, or a switch level that no row of the table can mean."""
    try:
        _core.parse_synthetic(spec)
    except _core.Error:
        return []  # told where the machine is made
    names = levels_of(spec)
    unknown = [name for name in names if name not in KNOWN and not name.startswith("tier")]
    listed = ", ".join(names)
    hosts = names[-1] if names and "node" not in names else "node"
    slips = [(name, meant) for name in unknown if (meant := close(name, KNOWN)) is not None]
    if slips:
        return [f"levels are named {listed} (did you mean {meant} for {name}?)" for name, meant in slips]
    switches = names[: names.index("node")] if "node" in names else names[:-1]
    if unknown and "leaf" not in switches and set(unknown) & set(switches):
        return [f"levels are named {listed}; rows of the table for switches ask for leaf and can't mean {unknown[0]}"]
    if hosts not in ("node", "host"):
        return [f"levels are named {listed}; none is called node: each {hosts} is taken as a host"]
    return []


def note_levels(spec: str) -> None:
    """Print the notes to standard error, once for a command line."""
    context = click.get_current_context(silent=True)
    noted = context.meta.setdefault(__name__, set()) if context is not None else set()
    if spec in noted:
        return
    noted.add(spec)
    for note in level_notes(spec)[:MOST_NOTES]:
        click.echo(f"note: {printable(note)}", err=True)
