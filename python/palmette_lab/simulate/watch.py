"""Measures the load of each link of a simulated cluster by background traffic alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil

from palmette.bench.results import EdgeLoad
from palmette.topology.model import TreeNode
from palmette_lab.simulate import kept, simgrid
from palmette_lab.simulate.cluster import Cluster
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.job import Background
from palmette_lab.simulate.parameters import Parameters
from palmette_lab.simulate.platform import platform_xml
from palmette_lab.simulate.run import BASE_SELECTION, end_costs, events_of, started

_STEPS = 400
"""Exchanges of each process at least, in whole rounds; the time of a round is their mean."""


def watched(
    smpirun: str,
    cluster: Cluster,
    background: Background,
    parameters: Parameters,
    *,
    cpu_limit_s: int = 120,
    store: kept.SimulationCache | None = None,
) -> Background:
    """Return the background with the load of each link while it runs alone, as `palmette bench` measures it.

    Raises SimulateError where it can't run.
    """
    rounds = ceil(_STEPS / max(1, len(background.hosts) - 1))
    what = ["--alone-rounds", str(rounds), "--background-block", str(background.size_bytes)]
    asked = kept.SimulationKey(
        simgrid.version(smpirun),
        platform_xml(cluster.topology, parameters, cluster.mesh),
        "".join(f"{host}\n" for host in background.hosts),
        simgrid.configuration(parameters, BASE_SELECTION),
        ["--variant", "alone", *what, *end_costs(parameters)],
        "",
        "",
        {},
    )
    ended, _ = started(smpirun, asked, cpu_limit_s, store)
    events = [event for event in events_of(ended) if event["event"] == "background"]
    if not events:
        raise SimulateError(
            f"the background traffic alone didn't run: {ended.trouble or 'it printed nothing'}; choose fewer bytes, or"
            " a longer --cpu-limit"
        )
    round_s = events[0]["time_s"] / events[0]["rounds"]
    return replace(background, loads=tuple(_loads(cluster.topology.machine.tree, background, round_s)))


def _loads(tree: TreeNode, background: Background, round_s: float) -> list[EdgeLoad]:
    """The load of each link with a capacity by a round of the all-to-all, outermost first; equal in both directions."""
    processes = Counter(background.hosts)
    loads = []
    for group in list(tree.walk())[1:]:
        if not group.up_bytes_per_s:
            continue
        below = sum(processes[host.name] for host in group.hosts())
        crossing = below * (len(background.hosts) - below) * background.size_bytes
        share = crossing / (round_s * group.up_bytes_per_s) if crossing else 0.0
        loads.append(EdgeLoad(group.name, group.level or "", share, share, share, share))
    return loads
