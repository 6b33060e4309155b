"""Parser of ibnetdiscover listings: plain, -g, -s, -f, -p, and ibdiagnet's dialect of it.

Single pass over the lines; only the fabric is kept in memory. A record is a switch, channel adapter (Ca) or router (Rt)
with one line per linked port; -p has one line per port instead (ib_ports). Lines that match nothing cause a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from palmette.discover.fabric import ADAPTER, ROUTER, SWITCH, Device, RawFabric
from palmette.discover.ib_ports import read_port_line
from palmette.discover.rates import speed_name
from palmette.topology.found import DiscoverError, SourceResult
from palmette.units import plural

_LINK = re.compile(
    r"""\[(\d+)\] (?:\s*\[ext\s*\w+\])? (?:\s*\([0-9a-fA-Fx]*\))? \s*
        "([SHR])-(?:0x)?([0-9a-fA-F]+)" \s* \[(\d+)\] (?:\s*\[ext\s*\w+\])? (?:\s*\([0-9a-fA-Fx]*\))? \s*
        (?:\#(.*))?$""",
    re.VERBOSE,
)
_HEADER = re.compile(r'(Switch|Ca|Rt)\s+(\d+)\s+"([SHR])-(?:0x)?([0-9a-fA-F]+)"\s*(?:#\s*(.*))?$')
_QUOTED = re.compile(r'"(.*)"')
_RATE = re.compile(r"\b(\d+)x\s*([A-Z][A-Z0-9]*|\?+|\d+(?:\.\d+)?)")
_GUID_LINE = re.compile(r"(switchguid|caguid|rtguid)=(?:0x)?([0-9a-fA-F]+)(?:\((?:0x)?([0-9a-fA-F]+)\))?")
_ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid)\s*=\s*(\S*)")
# Group headings of -g and progress lines of -s.
_HEADING = re.compile(
    r"(Chassis \d|Non-Chassis Nodes|Spine \d|Line \d|DR path |Slot \d|.*-> (new|known) )", re.IGNORECASE
)
_CHASSIS = re.compile(r"Chassis (\d+)")
_LIST = re.compile(r"(Switch|Ca|Router)\s*:\s*0x[0-9a-fA-F]+ ports \d+")
_KINDS = {"Switch": SWITCH, "Ca": ADAPTER, "Rt": ROUTER, "switchguid": SWITCH, "caguid": ADAPTER, "rtguid": ROUTER}


def read_ibnetdiscover(lines: Iterable[str], found: SourceResult) -> RawFabric:
    """The fabric that `lines` list; warnings go to `found`, with their line numbers.

    Raises DiscoverError when there is no fabric in them.
    """
    parser = _Parser(found)
    for number, line in enumerate(lines, 1):
        parser.line(number, line)
    return parser.finish()


class _Parser:
    def __init__(self, found: SourceResult) -> None:
        self.found = found
        self.fabric = RawFabric()
        self.current: Device | None = None
        self.system_guid: int | None = None
        self.chassis: int | None = None
        self.announced: tuple[str, int] | None = None
        self.started = False
        self.before: list[tuple[int, str]] = []
        self.dialect = ""
        self.count = 0

    def line(self, number: int, raw: str) -> None:
        self.count = number
        line = raw.strip().lstrip("\ufeff")
        if not line:
            return
        first = line[0]
        if first == "[":
            link = _LINK.match(line)
            if link is not None:
                self._link(number, link)
                return
        elif first == "#":
            # ibdiagnet names itself in its first line; otherwise the records show the dialect.
            self.dialect = self.dialect or ("ibdiagnet" if "IBDIAG" in line else "")
            return
        elif first in "SCR":
            if read_port_line(line, self.fabric):
                self.started, self.dialect = True, self.dialect or "ports (-p)"
                return
            header = _HEADER.match(line)
            if header is not None:
                self._header(header)
                return
            if _LIST.match(line):
                raise DiscoverError(
                    f"{self.found.source.path}:{number}: a list of nodes, which has no links; "
                    "run ibnetdiscover without -l, -H, -S or -R"
                )
        elif self._attribute(line):
            return
        if _HEADING.match(line):
            if line.startswith(("Chassis", "Non-Chassis")):
                self.dialect = self.dialect or "grouped (-g)"
                numbered = _CHASSIS.match(line)
                self.chassis = int(numbered[1]) if numbered is not None else None
            return
        self._unreadable(number, line)

    def _attribute(self, line: str) -> bool:
        """vendid, devid and the GUID lines, which precede a record's header."""
        guid = _GUID_LINE.match(line)
        if guid is not None:
            # The record's owner, if its header is damaged. ibdiagnet has the system GUID here, which the boards of a
            # director share, and the switch's in brackets; ibnetdiscover the switch's, and that of its port 0.
            own = guid[3] if guid[3] is not None and self.dialect == "ibdiagnet" else guid[2]
            if own != guid[2] and self.system_guid is None:
                self.system_guid = int(guid[2], 16)
            self.announced = (_KINDS[guid[1]], int(own, 16))
            self.current, self.started = None, True
            return True
        attribute = _ATTRIBUTE.match(line)
        if attribute is None:
            return False
        if attribute[1] == "vendid":
            self.current, self.system_guid, self.announced = None, None, None
            if attribute[2].startswith("0x0000"):
                self.dialect = self.dialect or "ibdiagnet"
        elif attribute[1] == "sysimgguid":
            self.current = None
            try:
                self.system_guid = int(attribute[2], 16)
            except ValueError:
                self.system_guid = None
        self.started = True
        return True

    def _owner(self) -> Device | None:
        """The device of the current record."""
        if self.current is None and self.announced is not None:
            self.current = self.fabric.device(*self.announced)
            self.current.system_guid = self.system_guid or self.current.system_guid
            self.announced = None
        return self.current

    def _header(self, header: re.Match[str]) -> None:
        self.announced = None
        device = self.fabric.device(_KINDS[header[1]], int(header[4], 16))
        device.ports = int(header[2]) or None
        device.chassis = self.chassis
        if self.system_guid is not None:
            device.system_guid = self.system_guid
        quoted = _QUOTED.search(header[5] or "")
        if quoted is not None:
            device.name = quoted[1].strip()
        self.current, self.started = device, True
        self.dialect = self.dialect or "plain"

    def _link(self, number: int, link: re.Match[str]) -> None:
        owner = self._owner()
        if owner is None:
            self.found.warn("a port before any switch or adapter; skipped", number)
            return
        port, kind, guid, peer_port, comment = link.groups()
        peer = self.fabric.device(kind, int(guid, 16))
        width, speed = None, None
        if comment:
            name_end = comment.rfind('"')
            if name_end > 0 and not peer.peer_name:
                peer.peer_name = comment[comment.find('"') + 1 : name_end].strip()
            rate = _RATE.search(comment, name_end + 1)
            if rate is not None:
                width, speed = int(rate[1]) or None, speed_name(rate[2])
        self.fabric.add_end(owner, int(port), peer, int(peer_port), width, speed)

    def _unreadable(self, number: int, line: str) -> None:
        if not self.started:
            self.before.append((number, line))
            return
        owner = self._owner() if line.startswith(("Switch", "Ca", "Rt")) else None
        if owner is not None and not owner.name:
            self.found.warn("a damaged header; its ports are kept under the GUID of the line before", number)
        else:
            self.found.warn(f"not understood and skipped: {_shorten(line)}", number)

    def finish(self) -> RawFabric:
        found, fabric = self.found, self.fabric
        name = found.source.path or "ibnetdiscover"
        if not fabric.ends:
            if fabric.devices:
                what = f"{len(fabric.devices)} device(s) and no link between any two"
            elif self.count == 0:
                what = "an empty input"
            else:
                what = f"none of its {self.count} lines belongs to a listing of ibnetdiscover"
            raise DiscoverError(
                f"no fabric in it: {what}, {name}; make the file with `ibnetdiscover > FILE` as root on a linked node"
            )
        if self.before:
            number, line = self.before[0]
            found.warn(f"{len(self.before)} line(s) before the listing skipped, the first: {_shorten(line)}", number)
        if found.hidden_warnings:
            found.warn(f"{found.hidden_warnings} more lines not understood")
        switches = sum(device.kind == SWITCH for device in fabric.devices.values())
        found.source.detail = f"{self.dialect or 'plain'}, {plural(switches, 'switch')}, {plural(self.count, 'line')}"
        return fabric


def _shorten(line: str) -> str:
    text = "".join(char if char.isprintable() else " " for char in line)
    return text if len(text) <= 40 else text[:37] + "..."
