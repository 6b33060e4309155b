"""The simulator's parameters: read from one file, which gives the source of each."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from palmette.files import parse_json, read_text
from palmette_lab.simulate.errors import SimulateError

FORMAT = "palmette-simulation-parameters"
FILE = Path(__file__).with_name("parameters.json")
STORED = ("servers",)
"""Further files beside it, by name."""
_OPTIONAL = ("core_bytes_per_s", "flag_latency_s", "page_s")
"""Parameters that may be missing: without core_bytes_per_s ranks share no memory."""


PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class EndCost:
    """Overhead of one end of a message, per message and per byte."""

    message_s: float
    byte_s: float

    @property
    def text(self) -> str:
        """In the form of the benchmark program's option."""
        return f"{self.message_s!r},{self.byte_s!r}"


@dataclass(frozen=True, slots=True)
class Parameters:
    """Seconds, bytes and bytes per second; the file describes each."""

    node_latency_s: float
    tier_latency_s: float
    send_between_message_s: float
    send_between_byte_s: float
    receive_between_message_s: float
    receive_between_byte_s: float
    inside_latency_s: float
    send_inside_message_s: float
    send_inside_byte_s: float
    receive_inside_message_s: float
    receive_inside_byte_s: float
    memory_bytes_per_s: float
    eager_bytes: float
    unknown_bytes_per_s: float
    core_bytes_per_s: float = 0.0
    flag_latency_s: float = 0.0
    page_s: float = 0.0

    @property
    def share_memory(self) -> bool:
        """Whether the ranks of a host share memory that is simulated; otherwise they have messages only."""
        return self.core_bytes_per_s > 0

    @property
    def single_copy_bytes_per_s(self) -> float:
        """The rate at which a core copies out of another process, page by page."""
        return 1 / (1 / self.core_bytes_per_s + self.page_s / PAGE_BYTES)

    @property
    def ends(self) -> dict[str, EndCost]:
        """By the name of the benchmark program's option."""
        return {
            "send-inside": EndCost(self.send_inside_message_s, self.send_inside_byte_s),
            "receive-inside": EndCost(self.receive_inside_message_s, self.receive_inside_byte_s),
            "send-between": EndCost(self.send_between_message_s, self.send_between_byte_s),
            "receive-between": EndCost(self.receive_between_message_s, self.receive_between_byte_s),
        }

    @property
    def ends_between_s(self) -> float:
        """Both overheads of a tiny inter-node message, which are part of its latency."""
        return self.send_between_message_s + self.receive_between_message_s

    @property
    def ends_inside_s(self) -> float:
        """Both overheads of a tiny intra-node message, which are part of its latency."""
        return self.send_inside_message_s + self.receive_inside_message_s


def file_named(text: str) -> Path:
    """Return the file that `--parameters` names: one of STORED, else a path."""
    return FILE.with_name(f"{text}.json") if text in STORED else Path(text)


def read(path: Path = FILE) -> Parameters:
    """Return the parameters of a file in the form of parameters.json.

    Raises SimulateError naming the file and the parameter that is missing, unknown or no positive number.
    """
    try:
        document: Any = parse_json(read_text(path))
    except (OSError, ValueError) as error:
        raise SimulateError(f"{path}: can't be read as JSON ({error}); start from a copy of {FILE}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != 1:
        raise SimulateError(f'{path}: is not format "{FORMAT}", version 1; start from a copy of {FILE}')
    values = document.get("values")
    known = [field.name for field in fields(Parameters)]
    if not isinstance(values, dict):
        raise SimulateError(f"{path}: has no object `values`; start from a copy of {FILE}")
    unknown = [name for name in values if name not in known]
    if unknown:
        raise SimulateError(f"{path}: `{unknown[0]}` is no parameter; they are {', '.join(known)}")
    found: dict[str, float] = {}
    for name in known:
        if name in _OPTIONAL and name not in values:
            continue
        entry = values.get(name)
        value = entry.get("value") if isinstance(entry, dict) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
            raise SimulateError(f"{path}: `values.{name}.value` must be a number of at least 0")
        found[name] = float(value)
    for name in ("memory_bytes_per_s", "unknown_bytes_per_s"):
        if not found[name] > 0:
            raise SimulateError(f"{path}: `values.{name}.value` must be above 0")
    return Parameters(**found)
