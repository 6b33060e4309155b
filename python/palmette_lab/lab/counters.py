"""Bytes over each link of a lab, from interface counters."""

from __future__ import annotations

import json

from palmette_lab.lab.errors import LabError
from palmette_lab.lab.namespaces import Keeper
from palmette_lab.lab.network import Network


def read_link_bytes(network: Network, keeper: Keeper) -> dict[str, tuple[int, int]]:
    """Return, by child group, the bytes that have left the group over its link, and those that have entered.

    Of each link the end in the keeper's namespace is read, so that one command reads all. Raises LabError.
    """
    text = keeper.run(None, ["ip", "-s", "-j", "link", "show"])
    try:
        counters = {link["ifname"]: link["stats64"] for link in json.loads(text)}
        return {
            edge.child: (
                int(counters[edge.upper.interface]["rx"]["bytes"]),
                int(counters[edge.upper.interface]["tx"]["bytes"]),
            )
            for edge in network.edges
        }
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(
            f"`ip -s -j link` doesn't print the counters of the lab's links ({error}); update iproute2"
        ) from None
