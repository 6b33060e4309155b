"""The plan of a lab's network: bridges, veth pairs, addresses, and the `ip` batch lines. Nothing is executed here.

Every group above the hosts is a bridge in the keeper's network namespace, every edge of the tree a veth pair. Its two
ends are shaped, each in the direction that it sends to. An aggregator is one more host, with interface `a0` at its
switch:

    host h0            keeper (login host)
    eth0 ------------ p0 [b1] u1 ----------- d1 [b0]      b0: root of the tree, holds the login host's address
    up                down    up             down
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from palmette.topology.model import TreeNode
from palmette_lab.lab.spec import Spec

LOGIN = "login"
LOGIN_ADDRESS = "10.77.255.254"
NETWORK = "10.77.0.0/16"
ROOT_BRIDGE = "b0"
AGGREGATOR = "aggregator"
"""The level of aggregators' links."""


@dataclass(frozen=True)
class Port:
    """One end of a veth pair. `host` is None in the keeper's namespace."""

    host: str | None
    interface: str


@dataclass(frozen=True)
class Edge:
    """The link between a group and its parent. `bridge` is the parent's, or None where the delay switch replaces it."""

    child: str
    level: str
    lower: Port
    upper: Port
    bridge: str | None
    line_bits_per_s: float | None


@dataclass(frozen=True)
class Network:
    """Bridges by the group that they represent, edges in topology order, addresses by host; aggregators come last."""

    bridges: dict[str, str]
    edges: list[Edge]
    addresses: dict[str, str]
    spine_delay_s: float

    @property
    def delayed_ports(self) -> list[str]:
        """Interfaces that the delay switch connects in place of the root's bridge."""
        return [edge.upper.interface for edge in self.edges if edge.bridge is None]


def plan_network(spec: Spec) -> Network:
    """Return the network of `spec`: a pure function."""
    root = spec.machine.tree
    bridges = {root.name: ROOT_BRIDGE}
    edges: list[Edge] = []
    addresses: dict[str, str] = {}

    def bridge_of(parent: TreeNode) -> str | None:
        return None if parent is root and spec.spine_delay_s > 0 else bridges[parent.name]

    for parent, child in _edges(root):
        if child.level == "node":
            lower, upper = Port(child.name, "eth0"), Port(None, f"p{len(addresses)}")
            addresses[child.name] = _address(len(addresses))
        else:
            number = len(bridges)
            bridges[child.name] = f"b{number}"
            lower, upper = Port(None, f"u{number}"), Port(None, f"d{number}")
        rate = spec.line_bits_per_s[child.name]
        edges.append(Edge(child.name, child.level or "", lower, upper, bridge_of(parent), rate))
    for number, (switch, one) in enumerate(spec.aggregators):
        addresses[one.name] = _address(len(addresses))
        lower, upper = Port(one.name, "eth0"), Port(None, f"a{number}")
        edges.append(Edge(one.name, AGGREGATOR, lower, upper, bridge_of(switch), spec.line_bits_per_s[one.name]))
    return Network(bridges, edges, addresses, spec.spine_delay_s)


def _address(number: int) -> str:
    return f"10.77.{number // 250}.{number % 250 + 1}"


def _edges(parent: TreeNode) -> Iterator[tuple[TreeNode, TreeNode]]:
    for child in parent.children:
        yield parent, child
        yield from _edges(child)


def link_commands(network: Network, congestion_control: str) -> list[str]:
    """Return the `ip` batch lines for the keeper's namespace: bridges, links between them, the login host's address."""
    lines = ["link set lo up"]
    for bridge in network.bridges.values():
        lines += [f"link add {bridge} type bridge stp_state 0 mcast_snooping 0", f"link set {bridge} up"]
    lines += [f"addr add {LOGIN_ADDRESS}/16 dev {ROOT_BRIDGE}", _route(ROOT_BRIDGE, LOGIN_ADDRESS, congestion_control)]
    for edge in network.edges:
        if edge.lower.host is None:
            lines.append(f"link add {edge.lower.interface} type veth peer name {edge.upper.interface}")
            lines.append(f"link set {edge.lower.interface} master {network.bridges[edge.child]} up")
            lines.append(_attach(edge))
    if network.delayed_ports:
        # The login host is connected to the delay switch by an additional port.
        lines += ["link add loginport type veth peer name delayport", f"link set loginport master {ROOT_BRIDGE} up"]
        lines.append("link set delayport up")
    return lines


def host_link_command(edge: Edge, pid: int) -> list[str]:
    """Return the `ip` batch lines that create the link of the host with init `pid` (in the keeper's PID namespace)."""
    return [f"link add {edge.upper.interface} type veth peer name {edge.lower.interface} netns {pid}", _attach(edge)]


def host_commands(address: str, congestion_control: str) -> list[str]:
    """Return the `ip` batch lines inside a host."""
    return [
        "link set lo up",
        "link set eth0 up",
        f"addr add {address}/16 dev eth0",
        _route("eth0", address, congestion_control),
    ]


def _route(interface: str, address: str, congestion_control: str) -> str:
    """Return the line that sets the TCP parameters of the lab's route.

    Large initial windows avoid slow start for short messages: a cluster's connections are warm. The congestion control
    is set by route, because by sysctl a namespace can choose only among those that the machine has allowed.
    """
    tcp = f"initcwnd 64 initrwnd 64 congctl {congestion_control}"
    return f"route change {NETWORK} dev {interface} src {address} {tcp}"


def _attach(edge: Edge) -> str:
    master = f"master {edge.bridge} " if edge.bridge else ""
    return f"link set {edge.upper.interface} {master}up"
