"""Parser of ibnetdiscover -p: one line per port, linked or not."""

from __future__ import annotations

import re

from palmette.discover.fabric import ADAPTER, ROUTER, SWITCH, Device, RawFabric
from palmette.discover.rates import speed_name

_PORT = re.compile(
    r"""(CA|SW|RT)\s+ (?:(\d+)\s+)?? (\d+)\s+ 0x([0-9a-fA-F]+)\s+ (\d+)x\s+ (\S+)
        (?: \s+-\s+ (CA|SW|RT)\s+ (?:(\d+)\s+)?? (\d+)\s+ 0x([0-9a-fA-F]+)\s+ \(\s*'(.*)'\s+-\s+'(.*)'\s*\)
          | \s+'(.*)' )? \s*$""",
    re.VERBOSE,
)
_KINDS = {"CA": ADAPTER, "SW": SWITCH, "RT": ROUTER}


def read_port_line(line: str, fabric: RawFabric) -> bool:
    """Parses one line of -p into `fabric`; False when it is none.

    The GUID of an adapter's line is the port's, so that a host with two ports appears as two adapters of one name.
    """
    if line[:2] not in _KINDS:
        return False
    port = _PORT.match(line)
    if port is None:
        return False
    device = _device(fabric, port[1], port[4], port[11] or port[13] or "")
    number = int(port[3])
    if number > device.highest_port:
        device.highest_port = number
    if port[7] is None:
        fabric.unlinked_ports.add((device.guid, number))
        return True
    peer = _device(fabric, port[7], port[10], "")
    peer.peer_name = peer.peer_name or port[12].strip()
    fabric.add_end(device, number, peer, int(port[9]), int(port[5]) or None, speed_name(port[6]))
    return True


def _device(fabric: RawFabric, kind: str, guid: str, name: str) -> Device:
    device = fabric.device(_KINDS[kind], int(guid, 16))
    if name and not device.name:
        device.name = name.strip()
    return device
