"""The deciding term of a physical bound, as a phrase."""

from __future__ import annotations

from palmette import _core
from palmette.units import rate_text


def reason(bound: _core.Bound) -> str:
    """`1048576 bytes out of leaf0 at 6.25 MB/s`, `latency of level leaf`; empty where nothing bounds."""
    rate = rate_text(bound.capacity_bytes_per_s) if bound.capacity_bytes_per_s > 0 else ""
    if bound.kind == "latency":
        return f"latency of level {bound.level}"
    if bound.kind == "rounds":
        return "rounds of dependent messages until all ranks are informed"
    if bound.kind == "copy":
        return f"{bound.bytes} bytes that a rank copies at {rate}"
    if bound.kind == "reduce":
        return f"{bound.bytes} bytes that each rank combines at {rate}"
    if bound.kind == "links":
        return f"{bound.bytes} bytes over all links of level {bound.level}, {rate} together"
    if bound.kind == "aggregators":
        return f"{bound.bytes} bytes over links of level {bound.level} and aggregators, {rate} together"
    if bound.kind == "link":
        way = "out of" if bound.outwards else "into"
        return f"{bound.bytes} bytes {way} {bound.group_name or f'{bound.level} {bound.group}'} at {rate}"
    return ""
