"""A raw fabric as listed by ibnetdiscover: devices keyed by GUID and the ends of their cables, uncleaned."""

from __future__ import annotations

from dataclasses import dataclass, field

from palmette.discover.ib_names import host_of
from palmette.discover.rates import link_bytes_per_s

SWITCH, ADAPTER, ROUTER = "S", "H", "R"


@dataclass(slots=True)
class Device:
    """A switch, channel adapter or router: its own entry, or a mention as a peer."""

    kind: str
    guid: int
    name: str = ""
    peer_name: str = ""
    ports: int | None = None
    system_guid: int | None = None
    chassis: int | None = None
    """The number in the heading of `ibnetdiscover -g` above it."""
    highest_port: int = 0

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.guid:016x}"

    @property
    def description(self) -> str:
        """The device's own node description, unless only its peers have a host name for it.

        A node-name map renames switches and peers but never an adapter's own header, so that a map can name an
        adapter whose own description has no host name.
        """
        if self.kind == ADAPTER and host_of(self.name) is None and host_of(self.peer_name) is not None:
            return self.peer_name
        return self.name or self.peer_name


@dataclass(slots=True)
class Cable:
    """One cable between two ports; speed None: missing or unknown."""

    a: int
    b: int
    width: int | None = None
    speed: str | None = None

    @property
    def bytes_per_s(self) -> float | None:
        if self.width is None or self.speed is None:
            return None
        return link_bytes_per_s(self.width, self.speed)


@dataclass(slots=True)
class RawFabric:
    """All devices by GUID and all cable ends by (GUID, port)."""

    devices: dict[int, Device] = field(default_factory=dict)
    # (guid, port) -> (peer guid, peer port, width, speed)
    ends: dict[tuple[int, int], tuple[int, int, int | None, str | None]] = field(default_factory=dict)
    unlinked_ports: set[tuple[int, int]] = field(default_factory=set)

    def device(self, kind: str, guid: int) -> Device:
        """The device with this GUID, created at its first occurrence."""
        found = self.devices.get(guid)
        if found is None:
            found = self.devices[guid] = Device(kind, guid)
        return found

    def add_end(
        self, device: Device, port: int, peer: Device, peer_port: int, width: int | None, speed: str | None
    ) -> None:
        if port > device.highest_port:
            device.highest_port = port
        if peer_port > peer.highest_port:
            peer.highest_port = peer_port
        self.ends[(device.guid, port)] = (peer.guid, peer_port, width, speed)

    def cables(self) -> tuple[list[Cable], list[Cable]]:
        """Every cable once, and those whose two ends disagree on width or speed (the slower one is kept).

        A cable is identified by the pair of its ports, whichever of its ends was listed.
        """
        cables: list[Cable] = []
        disagreements: list[Cable] = []
        ends = self.ends
        for (guid, port), (peer, peer_port, width, speed) in ends.items():
            back = ends.get((peer, peer_port))
            mutual = back is not None and back[0] == guid and back[1] == port
            if mutual and (peer, peer_port) < (guid, port):
                continue
            cable = Cable(guid, peer, width, speed)
            if mutual and back is not None and (back[2], back[3]) != (width, speed):
                other = Cable(guid, peer, back[2], back[3])
                mine, theirs = cable.bytes_per_s, other.bytes_per_s
                if mine is None:
                    cable = other
                elif theirs is not None and theirs != mine:
                    cable = other if theirs < mine else cable
                    disagreements.append(cable)
            cables.append(cable)
        return cables, disagreements
