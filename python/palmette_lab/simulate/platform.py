"""A SimGrid platform from a topology: hosts, switches, and shared links.

- A host's link and a switch's uplink carry their capacity in each direction (SPLITDUPLEX).
- An uplink of several cables also limits one message to one cable's rate (FATPIPE), where the fabric lists the cables.
- Intra-node messages share the host's memory (one SHARED link).
- Where ranks share memory, their copies are work of the host, whose speed is the rate of its memory; its properties are
  what src/palmette/runtime/transport/simulated_memory.hpp needs. A message is a single copy then, by one core.
- A level's latency is spread over the links that a message crosses, less the overheads of both ends.
- An aggregator is a host at its switch. Messages to it have the latency of those between the groups below the switch.

Switches are nested zones: one zone of hosts is a star around its router, the zones above are routed by Floyd. Where the
groups of a level are joined pairwise (`mesh`), as in a dragonfly, there is a link for each pair instead of uplinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import quoteattr

from palmette.topology.model import Fabric, Topology, TreeNode
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.parameters import Parameters

_HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""
_ROUTER_SUFFIX = "!router"
"""Suffix of routers. `!` marks zones, links and routers: no host name has one."""


def service_host(aggregator: str) -> str:
    """The host of an aggregator, whose messages keep no CPU busy there (src/programs/simbench/costs.cpp)."""
    return f"aggregator!{aggregator}"


def platform_xml(topology: Topology, parameters: Parameters, mesh: Mapping[str, float] | None = None) -> str:
    """Return the platform. `mesh`: capacity of the link between any two groups of a level, by the level's name.

    Raises SimulateError where the name of a host or aggregator can't be one in SimGrid.
    """
    return "".join(_Writer(topology, parameters, mesh or {}).platform())


class _Writer:
    def __init__(self, topology: Topology, parameters: Parameters, mesh: Mapping[str, float]) -> None:
        self.topology = topology
        self.mesh = mesh
        self.parameters = parameters
        self.cable_of_switch = _cables(topology.fabric) if topology.fabric else {}
        self.edge_latency_s = _edge_latencies(topology, parameters)
        self.groups = 0
        self.members: dict[str, list[str]] = {}

    def platform(self) -> Iterator[str]:
        tree = self.topology.machine.tree
        aggregators = [one.name for group in tree.walk() for one in group.aggregators]
        for kind, names in (("host", [host.name for host in tree.hosts()]), ("aggregator", aggregators)):
            for name in names:
                if not name or set(name) & set("!,: \t\n"):
                    raise SimulateError(f"{kind} '{name}' has a name that the simulator can't take; rename it")
        for name, count in Counter(aggregators).items():
            if count > 1:
                raise SimulateError(f"{count} aggregators are called '{name}'; rename them for the simulator")
        yield _HEAD
        yield from self.zone(tree, self.next_name())
        yield "</platform>\n"

    def next_name(self) -> str:
        self.groups += 1
        return f"switch!{self.groups}"

    def zone(self, group: TreeNode, name: str) -> Iterator[str]:
        """A group of hosts, of groups, or of both; its router is `<name>!router`."""
        hosts = self.places(group)
        groups = [child for child in group.children if child.level != "node"]
        if not groups:
            yield from self.star(hosts, name)
            return
        if not hosts and groups[0].level in self.mesh:
            yield from self.pairwise(groups, name)
            return
        yield f'<zone id="{name}" routing="Floyd">\n'
        links: list[str] = []
        routes: list[str] = []
        router = name + _ROUTER_SUFFIX
        for child in groups:
            inner = self.next_name()
            yield from self.zone(child, inner)
            cables = self.edge(child, inner, links)
            for source, target, way in ((inner, name, "UP"), (name, inner, "DOWN")):
                zones = [z if z == inner else f"{z}!core" for z in (source, target)]
                gates = [z + _ROUTER_SUFFIX for z in (source, target)]
                routes.append(
                    f'<zoneRoute src="{zones[0]}" dst="{zones[1]}" gw_src="{gates[0]}" gw_dst="{gates[1]}"'
                    f' symmetrical="NO"><link_ctn id="{inner}!up" direction="{way}"/>{cables}</zoneRoute>\n'
                )
        if hosts:
            # Hosts on a switch that also has switches below it: a star of their own at zero latency.
            inner = self.next_name()
            yield from self.star(hosts, inner)
            links.append(_link(f"{inner}!up", self.parameters.unknown_bytes_per_s, 0, "FATPIPE"))
            routes.append(
                f'<zoneRoute src="{inner}" dst="{name}!core" gw_src="{inner}{_ROUTER_SUFFIX}" gw_dst="{router}">'
                f'<link_ctn id="{inner}!up"/></zoneRoute>\n'
            )
        yield f'<zone id="{name}!core" routing="Full"><router id="{router}"/></zone>\n'
        yield from links
        yield from routes
        yield "</zone>\n"

    def pairwise(self, groups: list[TreeNode], name: str) -> Iterator[str]:
        """Groups with a link between any two; where a group is itself joined pairwise, each of its members has its
        share of the links to other groups (Kim et al., ISCA 2008). Routing is minimal.
        """
        yield f'<zone id="{name}" routing="Floyd">\n'
        level = groups[0].level or ""
        zones = []
        for group in groups:
            zones.append(self.next_name())
            yield from self.zone(group, zones[-1])
        routes: list[str] = []
        for i, source in enumerate(zones):
            for j, target in enumerate(zones[i + 1 :], i + 1):
                link = f"{source}!{target}"
                yield _link(link, self.mesh[level], 2 * self.edge_latency_s.get(level, 0.0), "SPLITDUPLEX")
                there = self.gate(source, (j - i - 1) % len(zones), len(zones) - 1)
                back = self.gate(target, (i - j - 1) % len(zones), len(zones) - 1)
                for ends, gates, way in (
                    ((source, target), (there, back), "UP"),
                    ((target, source), (back, there), "DOWN"),
                ):
                    routes.append(
                        f'<zoneRoute src="{ends[0]}" dst="{ends[1]}" gw_src="{gates[0]}" gw_dst="{gates[1]}"'
                        f' symmetrical="NO"><link_ctn id="{link}" direction="{way}"/></zoneRoute>\n'
                    )
        self.members[name] = zones
        yield from routes
        yield "</zone>\n"

    def gate(self, zone: str, link: int, links: int) -> str:
        """The router in a zone at which link number `link` of `links` ends."""
        members = self.members.get(zone)
        return (members[link * len(members) // links] if members else zone) + _ROUTER_SUFFIX

    def places(self, group: TreeNode) -> list[tuple[str, float, float]]:
        """The hosts and aggregators at a switch: name, capacity and latency of its link."""
        edges = self.edge_latency_s
        found = [(c.name, self.capacity(c), edges.get("node", 0.0)) for c in group.children if c.level == "node"]
        levels = list(edges)  # innermost first
        below_s = sum(edges[level] for level in levels[: levels.index(group.level) if group.level in edges else None])
        for one in group.aggregators:
            found.append((service_host(one.name), one.up_bytes_per_s or self.parameters.unknown_bytes_per_s, below_s))
        return found

    def star(self, hosts: list[tuple[str, float, float]], name: str) -> Iterator[str]:
        yield f'<zone id="{name}" routing="Cluster">\n'
        inside_s = max(self.parameters.inside_latency_s - self.parameters.ends_inside_s, 0.0)
        for host, capacity, latency_s in hosts:
            yield _host(host, self.parameters)
            yield _link(f"{host}!up", capacity, latency_s, "SPLITDUPLEX")
            yield _link(f"{host}!memory", self.parameters.memory_bytes_per_s, inside_s, "SHARED")
            if self.parameters.share_memory:
                yield _link(f"{host}!core", self.parameters.single_copy_bytes_per_s, 0, "FATPIPE")
        yield f'<router id="{name}{_ROUTER_SUFFIX}"/>\n'
        for host, *_ in hosts:
            up = quoteattr(f"{host}!up_UP"), quoteattr(f"{host}!up_DOWN")
            yield f"<host_link id={quoteattr(host)} up={up[0]} down={up[1]}/>\n"
        for host, *_ in hosts:
            links = [f"{host}!memory", *([f"{host}!core"] if self.parameters.share_memory else [])]
            path = "".join(f"<link_ctn id={quoteattr(link)}/>" for link in links)
            itself = quoteattr(host)
            yield f'<route src={itself} dst={itself} symmetrical="NO">{path}</route>\n'
        yield "</zone>\n"

    def edge(self, group: TreeNode, name: str, links: list[str]) -> str:
        """Add the links of a group's uplink; return the link that limits one message, for routes, or nothing."""
        latency_s = self.edge_latency_s.get(group.level or "", 0.0)
        capacity = self.capacity(group)
        links.append(_link(f"{name}!up", capacity, latency_s, "SPLITDUPLEX"))
        cable = max((self.cable_of_switch.get(switch, 0.0) for switch in group.switches), default=0.0)
        if not 0 < cable < capacity:
            return ""
        links.append(_link(f"{name}!cable", cable, 0, "FATPIPE"))
        return f'<link_ctn id="{name}!cable"/>'

    def capacity(self, node: TreeNode) -> float:
        return node.up_bytes_per_s or self.parameters.unknown_bytes_per_s


def _host(name: str, parameters: Parameters) -> str:
    if not parameters.share_memory:
        return f'<host id={quoteattr(name)} speed="10Gf"/>\n'
    properties = {
        "flag_latency_s": parameters.flag_latency_s,
        "copy_bytes_per_s": parameters.core_bytes_per_s,
        "single_copy_bytes_per_s": parameters.single_copy_bytes_per_s,
    }
    listed = "".join(f'<prop id="{key}" value="{value:.9g}"/>' for key, value in properties.items())
    return f'<host id={quoteattr(name)} speed="{parameters.memory_bytes_per_s:.9g}f">{listed}</host>\n'


def _link(name: str, bytes_per_s: float, latency_s: float, sharing: str) -> str:
    return (
        f'<link id={quoteattr(name)} bandwidth="{bytes_per_s:.9g}Bps" latency="{latency_s:.9g}s"'
        f' sharing_policy="{sharing}"/>\n'
    )


def _edge_latencies(topology: Topology, parameters: Parameters) -> dict[str, float]:
    """Return the latency of an edge of each level, such that a message's whole path has the latency of its level."""
    found: dict[str, float] = {}
    below_s = parameters.ends_between_s
    names = [level.name for level in topology.machine.levels]
    for level in reversed(topology.machine.levels[: names.index("node") + 1 if "node" in names else None]):
        whole_s = level.latency_s if level.latency_s is not None else below_s
        found[level.name] = max(whole_s - below_s, 0.0) / 2
        below_s = max(whole_s, below_s)
    return found


def _cables(fabric: Fabric) -> dict[str, float]:
    """Return the rate of the fastest single cable between each switch and the switches above it."""
    tier = {switch.id: switch.tier for switch in fabric.switches}
    found: dict[str, float] = {}
    for link in fabric.links:
        for lower, upper in ((link.a, link.b), (link.b, link.a)):
            low, high = tier.get(lower), tier.get(upper)
            if low is not None and high is not None and low < high and link.bytes_per_s:
                found[lower] = max(found.get(lower, 0.0), link.bytes_per_s / max(link.count, 1))
    return found
