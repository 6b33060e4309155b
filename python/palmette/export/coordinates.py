"""MPICH's coordinates file: the placement of each rank of MPI_COMM_WORLD, for its topology-aware trees."""

from __future__ import annotations

from palmette import _core


def coordinates_text(job: _core.Job, order: list[int] | None = None) -> str:
    """Return the file's text: a line that MPICH skips, then `rank: group switch port` for each rank.

    The switch is the innermost group of hosts (the leaf switch), the group its parent; where the job has fewer levels
    there is one group, or one switch, for all. The port numbers the ranks below their switch in topology order, so that
    ranks of a host are adjacent. `order[r]` is the place of rank r; None: as placed.
    """
    outer = job.levels[: next(i for i, level in enumerate(job.levels) if level.name == "node")]
    switch = outer[-1] if outer else None
    group = outer[-2] if len(outer) > 1 else None
    lines = ["# rank: group switch port, made by palmette for MPIR_CVAR_COORDINATES_FILE"]
    for rank, place in enumerate(order if order is not None else range(job.size)):
        position = job.position_of(place)
        s = switch.group_of(position) if switch is not None else 0
        g = group.group_of(position) if group is not None else 0
        port = position - (switch.first(s) if switch is not None else 0)
        lines.append(f"{rank}: {g} {s} {port}")
    return "\n".join(lines) + "\n"
