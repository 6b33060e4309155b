"""How much was converted."""

from __future__ import annotations

from dataclasses import dataclass

from palmette.record.formats.selection import Call, Sum


@dataclass
class Counts:
    """What a converted file holds."""

    calls: int = 0
    requests: int = 0
    messages: int = 0
    seconds: float = 0.0
    """Seconds of all calls together."""

    def add(self, call: Call) -> None:
        """Count a call, or a request."""
        if call.is_request:
            self.requests += 1
        else:
            self.calls += 1
            self.seconds += (call.end_ns - call.begin_ns) * 1e-9

    def add_sum(self, one: Sum) -> None:
        """Count what a sum stands for."""
        if one.is_request:
            self.requests += one.calls
        else:
            self.calls += one.calls
            self.seconds += one.seconds
