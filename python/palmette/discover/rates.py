"""Effective data rates of InfiniBand links, after line encoding.

Source: InfiniBand Architecture Specification, volume 2: 8b/10b up to QDR, 64b/66b for FDR10 to EDR; from HDR
on the nominal rate already excludes forward error correction.
"""

from __future__ import annotations

# Gbit/s of one lane.
LANE_GBIT_PER_S: dict[str, float] = {
    "SDR": 2.5 * 8 / 10,
    "DDR": 5.0 * 8 / 10,
    "QDR": 10.0 * 8 / 10,
    "FDR10": 10.3125 * 64 / 66,
    "FDR": 14.0625 * 64 / 66,
    "EDR": 25.78125 * 64 / 66,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}

# Some releases print the signalling rate of a lane in place of its name.
_BY_SIGNALLING = {
    "2.5": "SDR",
    "5.0": "DDR",
    "10.0": "QDR",
    "10.3125": "FDR10",
    "14.0625": "FDR",
    "25.78125": "EDR",
    "53.125": "HDR",
    "106.25": "NDR",
    "212.5": "XDR",
}


def speed_name(text: str) -> str | None:
    """The name of a speed as ibnetdiscover prints it; None for `???` and unknown names."""
    name = text.strip().upper()
    if name in LANE_GBIT_PER_S:
        return name
    return _BY_SIGNALLING.get(name)


def link_bytes_per_s(width: int, speed: str) -> float:
    """Bytes per second and direction of one cable with `width` lanes; `speed` is a name of LANE_GBIT_PER_S."""
    return width * LANE_GBIT_PER_S[speed] * 1e9 / 8
