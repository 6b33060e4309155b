"""Provenance and confidence of calibrated costs in topology.json, as `palmette calibrate` writes them.

Errors are relative: half of the 95 % confidence interval over the value. Rates are bytes per second and direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from palmette.topology.reader import Reader


@dataclass(slots=True)
class SharedFit:
    """How flows share one edge of a level.

    `flows` are (number of flows at once, bytes per second of all together). `bytes_per_s` is the capacity that fits
    them; when the flows could not saturate the edge (`filled` is false), the highest rate measured, a lower bound
    of the capacity. `both_ways_bytes_per_s` is the sum of both directions with flows in both.
    """

    edge: str
    bytes_per_s: float
    error: float | None
    filled: bool
    flows: list[tuple[int, float]] = field(default_factory=list)
    both_ways_bytes_per_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "edge": self.edge,
            "bytes_per_s": self.bytes_per_s,
            **({} if self.error is None else {"error": self.error}),
            "filled": self.filled,
            "flows": [list(point) for point in self.flows],
        }
        if self.both_ways_bytes_per_s is not None:
            document["both_ways_bytes_per_s"] = self.both_ways_bytes_per_s
        return document


@dataclass(slots=True)
class LevelFit:
    """Confidence of the costs of one level. `samples` counts round trips, `pairs` the pairs of ranks.

    overhead_s is derived from `send_overhead_s`, `receive_overhead_s` and `gap_s` (between back-to-back messages).
    """

    latency_error: float | None = None
    overhead_error: float | None = None
    stream_error: float | None = None
    samples: int = 0
    pairs: int = 0
    send_overhead_s: float | None = None
    receive_overhead_s: float | None = None
    gap_s: float | None = None
    shared: list[SharedFit] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            name: value
            for name in _NUMBERS
            if (value := getattr(self, name)) is not None
        }  # fmt: skip
        document |= {"samples": self.samples, "pairs": self.pairs}
        if self.shared:
            document["shared"] = [fit.to_json() for fit in self.shared]
        return document


_NUMBERS = (
    "latency_error", "overhead_error", "stream_error", "send_overhead_s", "receive_overhead_s", "gap_s",
)  # fmt: skip


@dataclass(slots=True)
class Calibration:
    """A whole calibration. `levels` by name; `same_host` is of ranks of one host that no level separates.

    `memory_shared`: the copy bandwidth of concurrent ranks of one host, its `edge`.
    """

    date: str
    mpi: str
    versions: dict[str, str]
    ranks: int
    hosts: int
    levels: dict[str, LevelFit] = field(default_factory=dict)
    same_host: LevelFit | None = None
    copy_error: float | None = None
    reduce_error: float | None = None
    memory_shared: SharedFit | None = None

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "date": self.date,
            "mpi": self.mpi,
            "versions": dict(self.versions),
            "ranks": self.ranks,
            "hosts": self.hosts,
            "levels": {name: fit.to_json() for name, fit in self.levels.items()},
        }
        if self.same_host is not None:
            document["same_host"] = self.same_host.to_json()
        for name in ("copy_error", "reduce_error"):
            if getattr(self, name) is not None:
                document[name] = getattr(self, name)
        if self.memory_shared is not None:
            document["memory_shared"] = self.memory_shared.to_json()
        return document


def read_calibration(reader: Reader, entry: dict[str, Any], path: str) -> Calibration:
    """Read `machine.calibration`. Raises TopologyError."""
    versions = reader.object(entry.get("versions", {}), f"{path}.versions")
    calibration = Calibration(
        date=reader.text(entry, "date", path),
        mpi=reader.text(entry, "mpi", path),
        versions={name: reader.text(versions, name, f"{path}.versions") for name in versions},
        ranks=reader.whole(entry, "ranks", path, 1) or 1,
        hosts=reader.whole(entry, "hosts", path, 1) or 1,
        copy_error=reader.share(entry, "copy_error", path),
        reduce_error=reader.share(entry, "reduce_error", path),
    )
    levels = reader.object(entry.get("levels", {}), f"{path}.levels")
    for name, value in levels.items():
        place = f"{path}.levels.{name}"
        calibration.levels[name] = _level(reader, reader.object(value, place), place)
    if entry.get("same_host") is not None:
        place = f"{path}.same_host"
        calibration.same_host = _level(reader, reader.object(entry["same_host"], place), place)
    if entry.get("memory_shared") is not None:
        calibration.memory_shared = _fit(reader, entry["memory_shared"], f"{path}.memory_shared")
    return calibration


def _level(reader: Reader, entry: dict[str, Any], path: str) -> LevelFit:
    return LevelFit(
        latency_error=reader.share(entry, "latency_error", path),
        overhead_error=reader.share(entry, "overhead_error", path),
        stream_error=reader.share(entry, "stream_error", path),
        samples=reader.whole(entry, "samples", path, 0) or 0,
        pairs=reader.whole(entry, "pairs", path, 0) or 0,
        send_overhead_s=reader.seconds(entry, "send_overhead_s", path),
        receive_overhead_s=reader.seconds(entry, "receive_overhead_s", path),
        gap_s=reader.seconds(entry, "gap_s", path),
        shared=list(_shared(reader, entry, path)),
    )


def _shared(reader: Reader, entry: dict[str, Any], path: str) -> Iterator[SharedFit]:
    for index, value in enumerate(reader.items(entry, "shared", path)):
        yield _fit(reader, value, f"{path}.shared[{index}]")


def _fit(reader: Reader, value: Any, place: str) -> SharedFit:
    fit = reader.object(value, place)
    rate = reader.rate(fit, "bytes_per_s", place)
    if rate is None:
        raise reader.error(f"{place}.bytes_per_s", "missing; expected a number above zero")
    flows = []
    for number, point in enumerate(reader.items(fit, "flows", place)):
        if not isinstance(point, list) or len(point) != 2 or not all(isinstance(one, (int, float)) for one in point):
            raise reader.error(f"{place}.flows[{number}]", "expected a number of flows and their bytes per second")
        flows.append((int(point[0]), float(point[1])))
    return SharedFit(
        edge=reader.text(fit, "edge", place),
        bytes_per_s=rate,
        error=reader.share(fit, "error", place),
        filled=reader.flag(fit, "filled", place),
        flows=flows,
        both_ways_bytes_per_s=reader.rate(fit, "both_ways_bytes_per_s", place),
    )
