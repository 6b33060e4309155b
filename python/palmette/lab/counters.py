"""How much went over each link of a lab, from the counters of its interfaces."""

from __future__ import annotations

import json

from palmette.lab.errors import LabError
from palmette.lab.namespaces import Keeper
from palmette.lab.network import Network


def read_link_bytes(network: Network, keeper: Keeper) -> dict[str, tuple[int, int]]:
    """Return, by child group, the bytes that left the group over its link so far, and those that came in.

    Of each cable the end in the keeper's namespace is read, so one look serves all. Raises LabError.
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
            f"`ip -s -j link` doesn't tell the counters of the lab's links ({error}); update iproute2"
        ) from None
