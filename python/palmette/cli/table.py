"""Tables of commands: what each program and each group of commands has, loaded when it is called.

Data alone: help and completion import no command for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Row(NamedTuple):
    """A command: the module that has it, its name there, and one line of help."""

    module: str
    help: str
    attribute: str = "command"

    def load(self) -> Any:
        """Import the module and return the command."""
        return getattr(import_module(self.module), self.attribute)


class Table(NamedTuple):
    """The commands of a program or a group, below headings; `default` is the one that needn't be named.

    `moved`: what an earlier version called differently: the words that stand for it now, with `{}` for what followed.
    """

    headings: dict[str, dict[str, Row]]
    default: str = ""
    moved: Mapping[str, str] = {}

    @property
    def rows(self) -> dict[str, Row]:
        """All commands by name, in the order of the help."""
        return {name: row for rows in self.headings.values() for name, row in rows.items()}


def complete_variable(program: str) -> str:
    """Return the environment variable through which a completion script asks what may follow; the name is click's."""
    return f"_{program.replace('-', '_').upper()}_COMPLETE"


PALMETTE = Table(
    {
        "Start": {
            "demo": Row("palmette.cli.demo", "Run a demonstration on this machine."),
            "doctor": Row("palmette.cli.doctor", "Say what palmette finds on this machine."),
            "settings": Row("palmette.cli.settings", "List the PALMETTE_ variables and their values."),
            "completion": Row("palmette.cli.completion", "Print the completion script of bash, zsh or fish."),
        },
        "The cluster": {
            "discover": Row("palmette.cli.discover", "Find out how a cluster is wired; write topology.json."),
            "calibrate": Row("palmette.cli.calibrate", "Measure what messages cost on each level of a machine."),
            "show": Row("palmette.cli.show", "Show a topology as a tree, a picture or JSON."),
        },
        "Run programs": {
            "run": Row("palmette.cli.run", "Run an MPI program with faster collectives."),
            "tune": Row("palmette.cli.tune", "Find the fastest algorithms here; write a decision table."),
            "explain": Row("palmette.cli.explain", "Explain which algorithm a call gets, why, and the alternatives."),
            "export": Row("palmette.cli.export", "Write tuning files for MPI libraries without palmette."),
            "map": Row("palmette.cli.map", "Find a rank order for a pattern of messages."),
            "bench": Row("palmette.cli.bench", "Measure collectives and programs with and without palmette."),
        },
        "Where a program's time goes": {
            "top": Row("palmette.cli.top", "Show which MPI calls a recorded job is in, and who waits for whom."),
            "report": Row("palmette.cli.report", "Say where a recorded job's time went; write a page of it."),
            "what-if": Row("palmette.cli.what_if", "Estimate a recorded job with other algorithms, orders, networks."),
            "convert": Row("palmette.cli.convert", "Write a recording in another tool's format."),
            "runs": Row("palmette.cli.runs", "Keep many runs in an archive; compare them, find what got slower."),
        },
        "Plans": {
            "plan": Row("palmette.cli.plan", "Plan a collective: its messages, time, links and lower bound."),
            "compose": Row("palmette.cli.compose", "Factor communication made of multicasts and reductions."),
        },
    },
    moved={
        "predict": "palmette plan {} --predict",
        "bound": "palmette plan {} --bound",
        "flow": "palmette plan {} --flow",
        "version": "palmette --version",
        "aggregator": "palmette-aggregator {}",
        "lab": "palmette-lab {}",
        "simulate": "palmette-lab simulate {}",
    },
)

BENCH = Table(
    {
        "Commands": {
            "collectives": Row(
                "palmette.cli.bench_collectives", "Collectives; the default: `bench allgather` is short."
            ),
            "app": Row("palmette.cli.bench_app", "A whole program with and without palmette."),
            "pattern": Row("palmette.cli.bench_pattern", "Patterns of messages between groups of ranks."),
            "compose": Row("palmette.cli.bench_compose", "Composed plans against the MPI's collectives."),
            "report": Row("palmette.cli.bench_report", "A stored run as a page, or compared with another."),
        }
    },
    default="collectives",
)
