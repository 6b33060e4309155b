"""Builds listings of ibnetdiscover for tests: devices, cables, and the noise that real files have."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from pathlib import Path

from palmette.discover.ib_source import discover_ibnetdiscover
from palmette.topology.found import SourceResult


@dataclass
class Listing:
    """Switches and adapters by a short key, and the cables between them; ports are counted up."""

    devices: dict[str, tuple[str, int, str, int | None]] = field(default_factory=dict)
    links: dict[str, list[tuple[int, str, int, str]]] = field(default_factory=dict)
    next_port: dict[str, int] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    """The devices' numbers in their GUIDs; empty: in the order in which they were added."""

    def add(self, kind: str, key: str, name: str, ports: int = 36, system: int | None = None) -> None:
        self.devices[key] = (kind, ports, name, system)
        self.links[key] = []

    def switch(self, key: str, name: str | None = None, ports: int = 36) -> None:
        self.add("Switch", key, f"MF0;{key}:MQM8700/U1" if name is None else name, ports)

    def host(self, key: str, *switches: str, name: str | None = None, rate: str = "4xEDR") -> None:
        """An adapter with one port at each of the switches."""
        self.add("Ca", key, f"{key} mlx5_0" if name is None else name, max(len(switches), 1))
        for switch in switches:
            self.cable(key, switch, rate)

    def port(self, key: str) -> int:
        self.next_port[key] = self.next_port.get(key, 0) + 1
        return self.next_port[key]

    def cable(self, a: str, b: str, rate: str = "4xEDR", count: int = 1) -> None:
        for _ in range(count):
            port_a, port_b = self.port(a), self.port(b)
            self.links[a].append((port_a, b, port_b, rate))
            self.links[b].append((port_b, a, port_a, rate))

    def guid(self, key: str) -> int:
        index = list(self.devices).index(key)
        return 0x0C42A10300000000 + 0x100 * ((self.numbers[index] if self.numbers else index) + 1)

    def renumber(self, generator: random.Random) -> None:
        """Give the devices GUIDs in another order."""
        self.numbers = generator.sample(range(10 * len(self.devices)), len(self.devices))

    def id(self, key: str) -> str:
        letter = {"Switch": "S", "Ca": "H", "Rt": "R"}[self.devices[key][0]]
        return f"{letter}-{self.guid(key):016x}"

    def record(self, key: str) -> str:
        kind, ports, name, system = self.devices[key]
        guid = self.guid(key)
        word = {"Switch": "switchguid", "Ca": "caguid", "Rt": "rtguid"}[kind]
        lines = ["vendid=0x2c9", "devid=0xd2f0"]
        if system is not None:
            lines.append(f"sysimgguid=0x{system:x}")
        lines.append(f"{word}=0x{guid:x}" + (f"({guid:x})" if kind == "Switch" else ""))
        tail = " enhanced port 0 lid 9 lmc 0" if kind == "Switch" else ""
        lines.append(f'{kind}\t{ports} "{self.id(key)}"\t\t# "{name}"{tail}')
        for port, peer, peer_port, rate in self.links[key]:
            peer_name = self.devices[peer][2]
            if kind == "Switch":
                extra = "" if self.devices[peer][0] == "Switch" else f"({self.guid(peer) + peer_port:x}) "
                lines.append(f'[{port}]\t"{self.id(peer)}"[{peer_port}]{extra}\t\t# "{peer_name}" lid 7 {rate}')
            else:
                lines.append(
                    f'[{port}]({guid + port:x}) \t"{self.id(peer)}"[{peer_port}]\t\t'
                    f'# lid 7 lmc 0 "{peer_name}" lid 9 {rate}'
                )
        return "\n".join(lines) + "\n"

    def text(self, seed: int | None = None) -> str:
        """The whole listing; with a seed, records and the ports in them in random order."""
        records = [self.record(key) for key in self.devices]
        if seed is not None:
            records = shuffled(records, seed)
        return "#\n# Topology file: made for a test\n#\n\n" + "\n".join(records)

    def ports(self, generator: random.Random) -> str:
        """The listing of `ibnetdiscover -p`: a line for each port, those of switches also where nothing is linked."""
        lines = []
        word = {"Switch": "SW", "Ca": "CA", "Rt": "RT"}
        for key, (kind, count, name, _) in self.devices.items():
            linked = {port for port, *_ in self.links[key]}
            for port in sorted(set(range(1, count + 1)) - linked) if kind == "Switch" else ():
                lines.append(f"SW {7:>5} {port:>2} 0x{self.guid(key):016x} 4x SDR '{name}'")
            for port, peer, peer_port, rate in self.links[key]:
                # An adapter's line has its port's GUID.
                mine = self.guid(key) + (port if kind == "Ca" else 0)
                peer_kind, _, peer_name, _ = self.devices[peer]
                theirs = self.guid(peer) + (peer_port if peer_kind == "Ca" else 0)
                width, speed = rate.split("x")
                lines.append(
                    f"{word[kind]} {7:>5} {port:>2} 0x{mine:016x} {width}x {speed} - {word[peer_kind]} {8:>5} "
                    f"{peer_port:>2} 0x{theirs:016x} ( '{name}' - '{peer_name}' )"
                )
        generator.shuffle(lines)
        return "\n".join(lines) + "\n"


def shuffled(records: list[str], seed: int) -> list[str]:
    generator = random.Random(seed)
    result = []
    for record in records:
        lines = record.rstrip("\n").split("\n")
        head = [line for line in lines if not line.startswith("[")]
        ports = [line for line in lines if line.startswith("[")]
        generator.shuffle(ports)
        result.append("\n".join(head + ports) + "\n")
    generator.shuffle(result)
    return result


def ibdiagnet(text: str) -> str:
    """Return the listing in the dialect of ibdiagnet, where a record that tells its system has it before the switch."""
    text = re.sub(r"sysimgguid=0x(\w+)\nswitchguid=0x\w+\((\w+)\)", r"sysimgguid=0x\1\nswitchguid=0x\1(\2)", text)
    text = re.sub(r"vendid=0x(\w+)", lambda m: f"vendid=0x{int(m[1], 16):08x}", text)
    text = re.sub(r"(sysimgguid|caguid|rtguid|switchguid)=0x(\w+)", lambda m: f"{m[1]}=0x{int(m[2], 16):016x}", text)
    text = re.sub(r'^\[(\d+)\]\t"', r'[\1](\1) "', text, flags=re.MULTILINE)
    text = text.replace("\n\n", "\n\n\n")
    return '# This database file was automatically generated by IBDIAG\n# Running version: "test"\n\n' + text


def two_leaves() -> Listing:
    """Two leaves with two hosts each, two spines, two cables from each leaf to each spine."""
    fabric = Listing()
    for switch in ("leaf1", "leaf2", "spine1", "spine2"):
        fabric.switch(switch)
    for number in range(1, 5):
        fabric.host(f"n{number}", "leaf1" if number < 3 else "leaf2")
    for leaf in ("leaf1", "leaf2"):
        for spine in ("spine1", "spine2"):
            fabric.cable(leaf, spine, "4xHDR", count=2)
    return fabric


def discover_text(folder: Path, text: str | bytes) -> SourceResult:
    path = folder / "fabric.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return discover_ibnetdiscover(str(path))


def tree_of(found: SourceResult) -> dict[str, list[str]]:
    """Children of every group by name."""
    assert found.machine is not None
    nodes = found.machine.tree.walk()
    return {node.name: [child.name for child in node.children] for node in nodes if node.children}


def left_out(found: SourceResult) -> dict[str, int]:
    return {item.what: item.count for item in found.left_out}


def up(found: SourceResult, name: str) -> float | None:
    assert found.machine is not None
    return next(node.up_bytes_per_s for node in found.machine.tree.walk() if node.name == name)
