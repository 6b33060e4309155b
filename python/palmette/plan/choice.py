"""Which algorithm a plan is made with: named, or chosen by the decision table."""

from __future__ import annotations

from dataclasses import dataclass

from palmette import _core
from palmette.settings_files import value_in_force


class NothingChosenError(ValueError):
    """The table leaves the call to the MPI, so there is no plan to show."""


@dataclass(frozen=True)
class AlgorithmChoice:
    """An algorithm as in docs/reference/algorithm-spec.md, and where it comes from."""

    algorithm: str
    reason: str


def choose(
    job: _core.Job,
    collective: str,
    algorithm: str | None,
    root: int,
    block_bytes: int,
    *,
    ordered: bool = False,
    shared_memory: bool = True,
) -> AlgorithmChoice:
    """Return the algorithm that was named, else the table's: PALMETTE_TABLE's where it is set, else the built-in one.

    Raises NothingChosenError, and _core.Error for a table that can't be read.
    """
    if algorithm is not None:
        return AlgorithmChoice(algorithm, "named on the command line")
    path = value_in_force("PALMETTE_TABLE")
    table = _core.Table.from_file(path) if path else _core.Table.built_in()
    whose = path or "built-in table"
    choice = table.choose(
        collective, job, root, block_bytes, ordered=ordered, shared_memory=shared_memory, compared=True
    )
    if choice.algorithm is None:
        raise NothingChosenError(
            f"the {whose} leaves this call to the MPI ({choice.reason}); name one with --algorithm, "
            f"`palmette plan {collective} --list` shows them"
        )
    return AlgorithmChoice(choice.algorithm, f"chosen by the {whose}, {choice.reason.removeprefix('table ')}")
