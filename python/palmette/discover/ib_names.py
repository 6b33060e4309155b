"""Parsing InfiniBand node descriptions: the host of an adapter, the name of a switch, SHARP aggregation nodes."""

from __future__ import annotations

import re

# Descriptions that adapters have before (or without) a host name: part numbers, product names, drivers.
_NO_HOST = re.compile(
    r"""^(?: $
        | MT\d{3,} \b
        | (?:ConnectX | Connect-IB | InfiniHost | BlueField | Mellanox | NVIDIA | QLogic | Voltaire | Intel | Cornelis
           | PathScale | Topspin | SilverStorm | IBM) \b
        | (?:HCA-?|mlx\d_|mlx\d_bond_|qib|hfi1?_|ibp?|mthca|rocep|irdma|efa_)\d+
        | localhost \b | \(none\) | \(null\) | Infini[sS]cale | Quantum \b | SwitchX | SwitchIB | Spectrum \b
        )""",
    re.VERBOSE | re.IGNORECASE,
)
_AGGREGATION = re.compile(r"aggregation node", re.IGNORECASE)
_MANAGED_SWITCH = re.compile(r"^MF0;([^:;]+):([^/]*)/?(.*)$")


def host_of(description: str) -> str | None:
    """The host name in an adapter's description: its first word, or None when it has none."""
    text = description.strip().strip("'\"").strip()
    if _NO_HOST.match(text):
        return None
    return text.split(maxsplit=1)[0]


def is_aggregation_node(description: str) -> bool:
    """Whether a channel adapter is the reduction engine of a switch (SHARP) and not a host."""
    return _AGGREGATION.search(description) is not None


def switch_name(description: str) -> str:
    """A switch's name without the decoration of managed switches (`MF0;NAME:MODEL/U1`).

    Chips of one director switch share NAME; their unit is kept to distinguish them.
    """
    text = description.strip().strip("'\"").strip()
    managed = _MANAGED_SWITCH.match(text)
    if not managed:
        return text
    name, _, place = managed.groups()
    return name if place in ("", "U1") else f"{name}/{place}"
