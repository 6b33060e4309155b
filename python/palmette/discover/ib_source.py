"""The source `ibnetdiscover`: an InfiniBand fabric from a file, standard input, or the tool's output."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from typing import IO

from palmette.discover.clean import LOCALHOST, UNNAMED, CleanFabric, clean
from palmette.discover.fabric import Cable
from palmette.discover.ibnetdiscover import read_ibnetdiscover
from palmette.discover.text import open_text, standard_input
from palmette.discover.tree import build_tree
from palmette.topology.found import DiscoverError, SourceResult
from palmette.topology.model import Fabric, FabricHost, FabricLink, FabricSwitch, Source
from palmette.topology.names import natural_key

_EXTRA_PATHS = "/usr/sbin:/sbin:/opt/ofed/sbin"
TOOL = "ibnetdiscover"


def discover_ibnetdiscover(argument: str | None) -> SourceResult:
    """The fabric in a listing. argument: a path, `-` for standard input, None to run the tool.

    Raises DiscoverError when there is no listing or no fabric in it.
    """
    if argument == "-":
        found = SourceResult(Source("ibnetdiscover", "standard input"))
        return _found(standard_input(), found)
    if argument is not None:
        found = SourceResult(Source("ibnetdiscover", argument))
        with open_text(argument) as lines:
            return _found(lines, found)
    return _run_tool()


def _run_tool() -> SourceResult:
    tool = shutil.which(TOOL) or shutil.which(TOOL, path=_EXTRA_PATHS)
    if tool is None:
        raise DiscoverError(
            "ibnetdiscover is not installed on this machine; give a file that it wrote "
            "(--from ibnetdiscover FILE), or install infiniband-diags and run this as root on a linked node"
        )
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as messages:
        with subprocess.Popen(
            [tool], stdout=subprocess.PIPE, stderr=messages, encoding="utf-8", errors="replace"
        ) as process:
            assert process.stdout is not None
            found = SourceResult(Source("ibnetdiscover", f"output of {tool}"))
            try:
                _found(process.stdout, found)
                problem = None
            except DiscoverError as error:
                problem = error
        if process.returncode != 0:
            raise DiscoverError(
                f"ibnetdiscover ended with status {process.returncode}: {_last_line(messages)}; "
                "it needs root and a port that is up; else give a file: --from ibnetdiscover FILE"
            )
        if problem is not None:
            raise problem
        return found


def _last_line(messages: IO[str]) -> str:
    messages.seek(0)
    lines = [line.strip() for line in messages if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _found(lines: Iterable[str], found: SourceResult) -> SourceResult:
    fabric = clean(read_ibnetdiscover(lines, found), found)
    if not fabric.adapters:
        raise DiscoverError(
            f"no fabric in it: no adapter is linked to anything, {found.source.path}; "
            "make the file with `ibnetdiscover > FILE` as root on a linked node"
        )
    if not fabric.hosts:
        _name_by_guid(fabric, found)
    tree = build_tree(fabric, found)
    found.machine = tree.machine
    found.fabric = _fabric(fabric, tree.tier)
    return found


def _name_by_guid(fabric: CleanFabric, found: SourceResult) -> None:
    """Makes each card a host named by its GUID, where no adapter has a host name: the wiring is still useful."""
    for guid in fabric.unnamed:
        device = fabric.adapters[guid]
        card = f"H-{device.system_guid:016x}" if device.system_guid is not None else device.id
        fabric.hosts.setdefault(card, []).append(guid)
    found.left_out = [item for item in found.left_out if item.what not in (UNNAMED, LOCALHOST)]
    found.warn(
        f"none of {len(fabric.unnamed)} adapters has a host name; hosts are called by GUID and match no rank: set node "
        "descriptions (rdma-ndd) or pass --node-name-map to ibnetdiscover"
    )


def _fabric(clean_fabric: CleanFabric, tier: dict[int, int]) -> Fabric:
    switches = [
        FabricSwitch(device.id, clean_fabric.names[guid], device.ports, tier.get(guid), guid in clean_fabric.can_reduce)
        for guid, device in clean_fabric.switches.items()
    ]
    switches.sort(key=lambda switch: (switch.tier or 0, natural_key(switch.name)))
    hosts = []
    end_name = {guid: device.id for guid, device in clean_fabric.switches.items()}
    owned = {guid for adapters in clean_fabric.hosts.values() for guid in adapters}
    nameless = [guid for guid in clean_fabric.unnamed if guid not in owned]
    end_name |= {guid: clean_fabric.adapters[guid].id for guid in nameless}
    for name in sorted(clean_fabric.hosts, key=natural_key):
        adapters = clean_fabric.hosts[name]
        hosts.append(FabricHost(name, [clean_fabric.adapters[guid].id for guid in sorted(adapters)]))
        end_name |= dict.fromkeys(adapters, name)
    unnamed = [clean_fabric.adapters[guid].id for guid in clean_fabric.unnamed]
    return Fabric(switches, hosts, _links(clean_fabric, end_name), unnamed)


def _links(clean_fabric: CleanFabric, end_name: dict[int, str]) -> list[FabricLink]:
    """Aggregates parallel cables of one width and speed into one link, the switch before the host."""
    parallel: dict[tuple[str, str, int | None, str | None], list[Cable]] = defaultdict(list)
    for cable in clean_fabric.host_cables:
        parallel[(end_name[cable.b], end_name[cable.a], cable.width, cable.speed)].append(cable)
    for cable in [*clean_fabric.trunks, *clean_fabric.cabled_hosts]:
        a, b = sorted((end_name[cable.a], end_name[cable.b]))
        parallel[(a, b, cable.width, cable.speed)].append(cable)
    links = []
    for (a, b, width, speed), cables in parallel.items():
        rate = cables[0].bytes_per_s
        links.append(FabricLink(a, b, len(cables), width, speed, None if rate is None else rate * len(cables)))
    links.sort(key=lambda link: (link.a, natural_key(link.b), link.width or 0, link.speed or ""))
    return links
