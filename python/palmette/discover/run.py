"""Registry of topology sources by name, and the call that reads several and merges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from palmette.discover.cloud import discover_cloud
from palmette.discover.hwloc import discover_hwloc
from palmette.discover.ib_source import discover_ibnetdiscover
from palmette.discover.merge import merge
from palmette.discover.slurm import discover_slurm
from palmette.discover.slurm_env import discover_env
from palmette.topology.found import DiscoverError, SourceResult
from palmette.topology.model import Topology
from palmette.topology.synthetic import discover_synthetic


def _no_job(argument: str | None) -> SourceResult:
    """Measuring needs a job; its result is passed to `discover` as `ready`."""
    raise DiscoverError(
        "measurement takes no file but a job: give the line that starts yours, without a program, after all options"
        " (-- mpiexec -n 64)"
    )


KINDS: dict[str, tuple[Callable[[str | None], SourceResult], str]] = {
    "ibnetdiscover": (discover_ibnetdiscover, "FILE or -; without: runs the tool"),
    "slurm": (discover_slurm, "topology.conf or topology.yaml; without: this cluster's"),
    "env": (discover_env, "SLURM_TOPOLOGY_ADDR and _PATTERN, or a FILE of them"),
    "hwloc": (discover_hwloc, "this node, or an hwloc XML file"),
    "cloud": (discover_cloud, "JSON of AWS, Google or Oracle on instances"),
    "synthetic": (discover_synthetic, 'a form such as "2leaf:4node:2socket:4core"'),
    "measurement": (_no_job, "ping-pong on a job: LAUNCHER after all options"),
}
"""kind -> (reader, what its argument is)."""


def discover(
    sources: Sequence[tuple[str, str | None]], name: str | None = None, ready: Mapping[str, SourceResult] | None = None
) -> Topology:
    """The merged topology of the sources; each is (kind, argument or None). `ready` has results that exist already,
    by kind.

    Raises DiscoverError for an unknown kind, unreadable input, or when no source has a host.
    """
    if not sources:
        raise DiscoverError("no source; for instance --from ibnetdiscover FILE")
    if sum(argument == "-" for _, argument in sources) > 1:
        raise DiscoverError("standard input can be read by one source only; give files to the others")
    founds = []
    for kind, argument in sources:
        if kind not in KINDS:
            raise DiscoverError(f'"{kind}" is no kind of source; choose from {", ".join(KINDS)}')
        founds.append(ready[kind] if ready and kind in ready else KINDS[kind][0](argument))
    return merge(founds, name or _name(founds[0]))


def _name(found: SourceResult) -> str:
    path = found.source.path or ""
    last = path.rsplit("/", 1)[-1]
    stem = last.rsplit(".", 1)[0]
    return stem if found.source.kind in ("ibnetdiscover", "slurm") and stem and " " not in stem else found.source.kind
