"""Cleaning a raw InfiniBand fabric: keeps switches, host adapters and their cables; reports what is left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from palmette.discover.fabric import ADAPTER, ROUTER, SWITCH, Cable, Device, RawFabric
from palmette.discover.ib_names import host_of, is_aggregation_node, switch_name
from palmette.topology.found import SourceResult, some_names

UNNAMED = "adapters without a host's name"
LOCALHOST = "adapters named localhost"


@dataclass(slots=True)
class CleanFabric:
    """Switches and adapters by GUID, the cables between switches (trunks) and those to adapters.

    An adapter cable has the adapter as `a`. `hosts` maps names to adapters; `unnamed` adapters have no host name, but
    their switches still count as serving hosts. `cabled_hosts` are pairs of adapters linked without a switch.
    """

    switches: dict[int, Device] = field(default_factory=dict)
    can_reduce: set[int] = field(default_factory=set)
    trunks: list[Cable] = field(default_factory=list)
    host_cables: list[Cable] = field(default_factory=list)
    cabled_hosts: list[Cable] = field(default_factory=list)
    hosts: dict[str, list[int]] = field(default_factory=dict)
    unnamed: list[int] = field(default_factory=list)
    adapters: dict[int, Device] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)


def clean(raw: RawFabric, found: SourceResult) -> CleanFabric:
    """Classifies the devices of `raw`; counts of what is left out, with reasons, go to `found`."""
    cables, disagreements = raw.cables()
    if disagreements:
        ends = (raw.devices[guid] for cable in disagreements for guid in (cable.a, cable.b))
        found.warn(
            f"{len(disagreements)} cable(s) whose two ends report different rates; the slower one is kept; at "
            f"{some_names(device.description or device.id for device in ends)}"
        )
    cables = _drop_self_loops(raw, cables, found)
    cables = _splice_extenders(raw, cables, found)
    result = CleanFabric()
    engines = {
        guid
        for guid, device in raw.devices.items()
        if device.kind == ADAPTER and is_aggregation_node(device.description)
    }
    linked: set[int] = set()
    for cable in cables:
        kinds = raw.devices[cable.a].kind + raw.devices[cable.b].kind
        if ROUTER in kinds:
            continue
        if kinds == ADAPTER + SWITCH or kinds == SWITCH + ADAPTER:
            adapter, switch = (cable.a, cable.b) if kinds[0] == ADAPTER else (cable.b, cable.a)
            if adapter in engines:
                result.can_reduce.add(switch)
                continue
            result.host_cables.append(Cable(adapter, switch, cable.width, cable.speed))
        elif kinds == SWITCH + SWITCH:
            result.trunks.append(cable)
        elif not engines & {cable.a, cable.b}:
            result.cabled_hosts.append(cable)
        linked.update((cable.a, cable.b))
    _sort_devices(raw, result, engines, linked, found)
    without_rate = sum(cable.bytes_per_s is None for cable in cables)
    found.leave_out(without_rate, "link rates", "the listing has no width or speed; their capacity stays unknown")
    return result


def _drop_self_loops(raw: RawFabric, cables: list[Cable], found: SourceResult) -> list[Cable]:
    kept = [cable for cable in cables if cable.a != cable.b]
    found.leave_out(len(cables) - len(kept), "self-loop cables", "both ends are on one device")
    found.leave_out(len(raw.unlinked_ports), "unlinked ports", "nothing is at their other end")
    return kept


def _is_extender(device: Device, cables: list[Cable], raw: RawFabric) -> bool:
    """A two-port device that reports itself as a switch: part of a cable, and no level of its own.

    -p has no number of ports; there both of its two ports must lead to switches.
    """
    if device.kind != SWITCH or len(cables) > 2:
        return False
    if device.ports is not None:
        return device.ports <= 2
    ends = {cable.a for cable in cables} | {cable.b for cable in cables}
    return device.highest_port == 2 and len(cables) == 2 and all(raw.devices[end].kind == SWITCH for end in ends)


def _splice_extenders(raw: RawFabric, cables: list[Cable], found: SourceResult) -> list[Cable]:
    at: dict[int, list[Cable]] = defaultdict(list)
    for cable in cables:
        at[cable.a].append(cable)
        at[cable.b].append(cable)
    extenders = [guid for guid, device in raw.devices.items() if _is_extender(device, at[guid], raw)]
    if not extenders:
        return cables
    alive = {id(cable): cable for cable in cables}
    for guid in sorted(extenders):
        ends = [cable for cable in at[guid] if id(cable) in alive]
        for cable in ends:
            del alive[id(cable)]
        if len(ends) == 2:
            far = [cable.b if cable.a == guid else cable.a for cable in ends]
            known = [cable for cable in ends if cable.bytes_per_s is not None]
            slow = min(known, key=lambda cable: cable.bytes_per_s or 0.0) if known else ends[0]
            spliced = Cable(far[0], far[1], slow.width, slow.speed)
            if far[0] != far[1]:
                alive[id(spliced)] = spliced
                at[far[0]].append(spliced)
                at[far[1]].append(spliced)
    for guid in extenders:
        raw.devices[guid].kind = "E"
    found.leave_out(len(extenders), "range extenders", "two ports: part of a cable, no switch")
    return list(alive.values())


def _sort_devices(
    raw: RawFabric, result: CleanFabric, engines: set[int], linked: set[int], found: SourceResult
) -> None:
    unlinked = 0
    routers = 0
    for guid, device in sorted(raw.devices.items()):
        if device.kind == SWITCH:
            result.switches[guid] = device
        elif device.kind == ROUTER:
            routers += 1
        elif device.kind == ADAPTER and guid not in engines:
            if guid in linked:
                result.adapters[guid] = device
            else:
                unlinked += 1
    found.leave_out(routers, "routers", "they join fabrics and hold no ranks")
    found.leave_out(unlinked, "adapters without a link", "nothing is at their other end")
    found.leave_out(len(engines), "aggregation nodes", "no hosts; their switches are marked as able to reduce")
    _name_hosts(result, found)
    counts = Counter(switch_name(device.description) for device in result.switches.values())
    for guid, device in result.switches.items():
        name = switch_name(device.description)
        result.names[guid] = name if name and counts[name] == 1 else device.id


def _name_hosts(result: CleanFabric, found: SourceResult) -> None:
    """Assigns adapters to hosts by name; an unnamed one to the only host of its card (system GUID)."""
    names = {guid: host_of(device.description) for guid, device in result.adapters.items()}
    by_card: dict[int, set[str]] = defaultdict(set)
    for guid, device in result.adapters.items():
        name = names[guid]
        if name is not None and device.system_guid is not None:
            by_card[device.system_guid].add(name)
    joined: set[str] = set()
    for guid, device in result.adapters.items():
        name = names[guid]
        if name is None and device.system_guid is not None and len(by_card[device.system_guid]) == 1:
            name = next(iter(by_card[device.system_guid]))
            joined.add(f"{name} ({device.id})")
        if name is None:
            result.unnamed.append(guid)
        else:
            result.hosts.setdefault(name, []).append(guid)
    if joined:
        found.warn(
            f"{len(joined)} adapter(s) without a host's name joined to the host of the same card: {some_names(joined)}"
        )
    localhost = sum(result.adapters[guid].description.lower().startswith("localhost") for guid in result.unnamed)
    found.leave_out(len(result.unnamed) - localhost, UNNAMED, "hosts that names can't distinguish hold no ranks")
    found.leave_out(localhost, LOCALHOST, "every host calls itself that until it has a name")
