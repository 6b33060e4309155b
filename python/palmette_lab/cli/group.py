"""The group of all commands of `palmette-lab`, and their table."""

from __future__ import annotations

import click

from palmette.cli.group import SETTINGS, LazyGroup
from palmette.cli.table import Row, Table

TABLE = Table(
    {
        "Start": {
            "demo": Row("palmette_lab.cli.demo", "Run a demonstration on this machine."),
            "completion": Row("palmette.cli.completion", "Print the completion script of bash, zsh or fish."),
        },
        "Emulate a cluster on this machine": {
            "up": Row("palmette_lab.cli.lab", "Build a cluster.", "up"),
            "status": Row("palmette_lab.cli.status", "Show hosts, addresses, rates and uptime.", "status"),
            "run": Row("palmette_lab.cli.lab", "Run an MPI program on the cluster.", "run"),
            "exec": Row("palmette_lab.cli.lab", "Run a command on one host.", "execute"),
            "down": Row("palmette_lab.cli.lab", "Take the cluster down, with all that runs on it.", "down"),
        },
        "Measure on it": {
            "bench": Row("palmette_lab.cli.bench", "Measure collectives and programs, and other MPIs beside them."),
            "tune": Row("palmette_lab.cli.on_lab", "Find the fastest algorithms on a lab.", "tune"),
            "calibrate": Row("palmette_lab.cli.on_lab", "Measure what messages cost on a lab.", "calibrate"),
            "discover": Row("palmette_lab.cli.on_lab", "Find out how a lab is wired, by measurement.", "discover"),
        },
        "Simulate one": {
            "simulate": Row("palmette_lab.cli.simulate", "Run collectives on clusters that SimGrid simulates."),
        },
    }
)

BENCH = Table(
    {
        "Commands": {
            "collectives": Row("palmette_lab.cli.collectives", "Collectives; the default: `bench allgather` is short."),
            "app": Row("palmette_lab.cli.on_lab", "A whole program with and without palmette.", "app"),
            "pattern": Row("palmette_lab.cli.on_lab", "Patterns of messages between groups of ranks.", "pattern"),
            "compose": Row("palmette_lab.cli.on_lab", "Composed plans against the MPI's collectives.", "compose"),
            "report": Row("palmette_lab.cli.collectives", "A stored run as a page, with its targets.", "report"),
        }
    },
    default="collectives",
)


@click.group(
    "palmette-lab",
    cls=LazyGroup,
    table=TABLE,
    epilog="Example: palmette-lab run --lab 2leaf:2node:2core --mpi mpich -- ./app",
    context_settings=SETTINGS,
)
@click.version_option(package_name="palmette", prog_name="palmette-lab")
def cli() -> None:
    """Clusters that are emulated on this machine or simulated, to try palmette and other MPIs on.

    A lab is real MPI over real TCP at given link rates; hosts are namespaces, switches are bridges. One that outlives
    its command needs root.
    """
