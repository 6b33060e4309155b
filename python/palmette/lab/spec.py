"""The machine that a lab emulates, from the synthetic form or from a topology.json."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette.lab.errors import LabError

PAYLOAD_SHARE = 1448 / 1514
"""TCP payload in a full Ethernet frame as tbf counts it: 1500 less 52 bytes of headers, of 1500 plus 14."""

_RATES = {"": 1e0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_DURATIONS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Group:
    """A switch or a host. `line_bits_per_s` is the rate of the link to the parent, frames counted; None: unlimited."""

    name: str
    level: str
    line_bits_per_s: float | None = None
    children: tuple[Group, ...] = ()
    inside: str | None = None
    slots: int = 1

    @property
    def is_host(self) -> bool:
        """Whether ranks run here."""
        return self.level == "node"

    def walk(self) -> Iterator[Group]:
        """Yield this group and everything below, in topology order."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Spec:
    """The whole machine. `levels` are names, outermost first; `insides` as in topology.json; `spine_delay_s` one way."""

    levels: tuple[str, ...]
    root: Group
    insides: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    spine_delay_s: float = 0.0

    @property
    def hosts(self) -> list[Group]:
        """The hosts in topology order."""
        return [group for group in self.root.walk() if group.is_host]


def read_spec(text: str) -> Spec:
    """Read a synthetic machine, or the topology.json (or file with a `machine`) at the path `text`. Raises LabError."""
    if text.endswith(".json") or Path(text).is_file():
        spec = _from_file(Path(text))
    else:
        spec = _Synthetic(text).spec
    repeated = [name for name, count in Counter(group.name for group in spec.root.walk()).items() if count > 1]
    if repeated:
        raise LabError(f"machine '{text}': two switches or hosts are called {repeated[0]}; give each its own name")
    if not 1 <= len(spec.hosts) <= 250:
        raise LabError(f"machine '{text}' has {len(spec.hosts)} hosts; a lab takes 1 to 250")
    return spec


def parse_rate(text: str) -> float:
    """Return bits a second for a rate like 100Mbit/s or 12.5MB/s. Raises LabError."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([kKMGT]?)(bit|B)/s\s*", text)
    if match is None or match[1].count(".") > 1 or float(match[1]) <= 0:
        raise LabError(f"'{text}' is not a rate: write it like 100Mbit/s or 12.5MB/s")
    return float(match[1]) * _RATES[match[2]] * (8 if match[3] == "B" else 1)


def parse_duration(text: str) -> float:
    """Return seconds for a duration like 5ms or 2us. Raises LabError."""
    match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*(s|ms|us|ns)\s*", text)
    if match is None:
        raise LabError(f"'{text}' is not a duration: write it like 5ms or 2us")
    return float(match[1]) * _DURATIONS[match[2]]


@dataclass(frozen=True)
class _Item:
    """One level of the synthetic form."""

    counts: tuple[int, ...]
    name: str
    line_bits_per_s: float | None
    latency_s: float | None


class _Synthetic:
    """Builds the tree of the synthetic form; lists of counts go round over the parents in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._items = [self._read_item(item.strip()) for item in text.split(":")]
        names = [item.name for item in self._items]
        for name in names:
            if names.count(name) > 1:
                raise LabError(f"machine '{text}': level '{name}' stands twice")
        if "node" not in names:
            last = self._items[-1]
            self._items[-1] = _Item(last.counts, "node", last.line_bits_per_s, last.latency_s)
        self._host_level = [item.name for item in self._items].index("node")
        for item in self._items[1:]:
            if item.latency_s is not None:
                raise LabError(f"machine '{text}': a lab can delay the top switch only; drop ~LATENCY at '{item.name}'")
        self._parents_seen = [0] * len(self._items)
        self._made = [0] * len(self._items)
        self._insides: dict[str, list[dict[str, Any]]] = {}
        root = Group("fabric", "fabric", children=self._groups(0))
        self.spec = Spec(tuple(item.name for item in self._items), root, self._insides, self._items[0].latency_s or 0.0)

    def _read_item(self, text: str) -> _Item:
        match = re.fullmatch(r"(\d+(?:\+\d+)*)([A-Za-z_]\w*)((?:[@~][^@~]*)*)", text)
        if match is None:
            raise LabError(f"machine '{self._text}': '{text}' is no level; write it like 4node or 3+3+2node@100Mbit/s")
        counts = tuple(int(count) for count in match[1].split("+"))
        if 0 in counts:
            raise LabError(f"machine '{self._text}': '{text}' must begin with a count of at least 1, like 4node")
        rate: float | None = None
        latency: float | None = None
        for mark, value in re.findall(r"([@~])([^@~]*)", match[3]):
            if mark == "@":
                rate = parse_rate(value)
            else:
                latency = parse_duration(value)
        return _Item(counts, match[2], rate, latency)

    def _next_count(self, level: int) -> int:
        counts = self._items[level].counts
        self._parents_seen[level] += 1
        return counts[(self._parents_seen[level] - 1) % len(counts)]

    def _groups(self, level: int) -> tuple[Group, ...]:
        item = self._items[level]
        groups = []
        for _ in range(self._next_count(level)):
            index = self._made[level]
            self._made[level] += 1
            if level < self._host_level:
                children = self._groups(level + 1)
                groups.append(Group(f"{item.name}{index}", item.name, item.line_bits_per_s, children))
            else:
                inside, slots = self._inside()
                groups.append(Group(f"h{index}", "node", item.line_bits_per_s, (), inside, slots))
        return tuple(groups)

    def _inside(self) -> tuple[str | None, int]:
        """Return the name of the next host's inside, shared with equal hosts, and its slots."""
        if self._host_level + 1 == len(self._items):
            return None, 1
        inside = self._fill(self._host_level + 1)
        for name, known in self._insides.items():
            if known == inside:
                return name, count_slots(inside)
        name = f"inside{len(self._insides)}"
        self._insides[name] = inside
        return name, count_slots(inside)

    def _fill(self, level: int) -> list[dict[str, Any]]:
        """Return the children of the next group as topology.json writes them, equal neighbours counted."""
        entries: list[dict[str, Any]] = []
        for _ in range(self._next_count(level)):
            entry: dict[str, Any] = {"level": self._items[level].name, "count": 1}
            if level + 1 < len(self._items):
                entry["children"] = self._fill(level + 1)
            if entries and entries[-1].get("children") == entry.get("children"):
                entries[-1]["count"] += 1
            else:
                entries.append(entry)
        return entries


def count_slots(children: list[dict[str, Any]]) -> int:
    """Return the places for ranks in a host's inside: its innermost groups."""
    return sum(
        int(child.get("count", 1)) * (count_slots(child["children"]) if child.get("children") else 1)
        for child in children
    )


def _from_file(path: Path) -> Spec:
    """Read the `machine` of a topology.json; its capacities are payload, so links get that much more."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        machine = document.get("machine", document)
        levels = machine["levels"]
        insides = machine.get("insides", {})
        names = tuple(str(level["name"]) for level in levels)
        delay = float(levels[0].get("latency_s", 0.0)) if levels else 0.0
        spec = Spec(names, _group(machine["tree"], "fabric", insides), insides, delay)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}; give a machine like 3leaf:4node:2core or a topology.json") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(
            f"{path}: not a topology.json with a machine ({error!r}); see docs/reference/topology-json.md"
        ) from error
    return spec


def _group(node: Mapping[str, Any], level: str, insides: Mapping[str, list[dict[str, Any]]]) -> Group:
    name = str(node["name"])
    payload = node.get("up_bytes_per_s")
    rate = float(payload) * 8 / PAYLOAD_SHARE if payload else None
    if level != "node":
        children = tuple(_group(child, str(child["level"]), insides) for child in node["children"])
        return Group(name, level, rate, children)
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?", name):
        raise LabError(f"'{name}' can't be a host name; use letters, digits, dots and hyphens, 63 at most")
    inside = node.get("inside")
    return Group(name, level, rate, (), inside, count_slots(insides[inside]) if inside else int(node.get("slots", 1)))
