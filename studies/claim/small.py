"""Small allreduces: flat in the vector's length and in the number of nodes, and the five phases of many ranks a node.

Simulated: claims_tree.c in SMPI, a tree of switches with slots as SHARP's first mode has them, beside recursive
doubling among hosts. Model: the same in closed form. Both take hosts' costs from palmette's simulation parameters.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from palmette import _core
from palmette_lab.simulate import cluster, parameters, platform, simgrid
from palmette_lab.simulate.errors import SimulateError

from .form import (
    DIRECTION,
    MODEL,
    REFUTED,
    ROOT,
    SHOWN,
    SIMULATED,
    CannotRunError,
    Claim,
    ClaimOutcome,
    Options,
    Table,
    us,
)

COSTS = parameters.read()
SEND_S, RECEIVE_S = COSTS.send_between_message_s, COSTS.receive_between_message_s
WIRE_S = COSTS.node_latency_s - SEND_S - RECEIVE_S
"""Through a leaf switch, from one adapter to another; half of it to a switch, or from one to the next."""
SWITCH_S = 0.1e-6
"""Assumed: what a switch takes to combine a chunk. No figure of a vendor was found."""
RATE = 12.5e9
RADIX = 32
PAYLOAD, WINDOW = 1024, 8
"""Limits of the daemons' profile `quantum`: bytes of a slot, slots of a group (docs/guide/aggregator.md)."""
SIZES = (8, 64, 256, 512, 1024, 2048, 4096, 8192, 16384)
NODES = (16, 32, 64, 128, 256, 512, 1024)
MODELLED = (2048, 4096, 7861)
FLAT = 1.5
"""Nearly flat: not above this times the smallest."""


@cache
def program() -> Path:
    """Compile claims_tree.c for SMPI."""
    made = ROOT / "build" / "claims_tree.smpi"
    made.parent.mkdir(exist_ok=True)
    words = ["smpicc", "-O1", str(ROOT / "studies" / "claims_tree.c"), "-lm", "-o", str(made)]
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
        simgrid.find_smpirun()
    except FileNotFoundError:
        raise CannotRunError("SimGrid isn't here: `make simulate` installs it") from None
    except subprocess.CalledProcessError as error:
        raise CannotRunError(f"smpicc: {error.stderr.strip().splitlines()[-1]}") from None
    except SimulateError as error:
        raise CannotRunError(str(error)) from None
    return made


@cache
def simulated(mode: str, nodes: int, sizes: tuple[int, ...], window: int = WINDOW) -> dict[int, float]:
    """Return the simulated seconds by size. `network`: to switches and between them, else between adapters."""
    tree = program()
    leaves = -(-nodes // RADIX)
    ends = SEND_S + RECEIVE_S
    inner, outer = (WIRE_S / 2, WIRE_S / 2) if mode == "network" else (WIRE_S, WIRE_S + COSTS.tier_latency_s)
    node = f"{RADIX if leaves > 1 else nodes}node@{RATE / 1e9}GB/s~{1e6 * (ends + inner):.3f}us"
    leaf = f"{leaves}leaf@{RADIX * RATE / 1e9}GB/s~{1e6 * (ends + outer):.3f}us+aggregator:" if leaves > 1 else ""
    made = cluster.prepared(cluster.from_spec(f"aggregator:{leaf}{node}"), COSTS)
    root = made.topology.machine.tree
    hosts = [host.name for host in root.hosts()][:nodes]
    top, *rest = (platform.service_host(one.name) for group in root.walk() for one in group.aggregators)
    seats = [*hosts, *rest, top]
    words = [mode, str(nodes), str(RADIX), repr(SEND_S), repr(RECEIVE_S), repr(SWITCH_S), str(PAYLOAD), str(window)]
    with tempfile.TemporaryDirectory(prefix="palmette-claims-") as temporary:
        folder = Path(temporary)
        (folder / "platform.xml").write_text(platform.platform_xml(made.topology, COSTS), encoding="utf-8")
        (folder / "hosts").write_text("".join(f"{name}\n" for name in seats), encoding="utf-8")
        ended = simgrid.start(
            simgrid.find_smpirun(), folder, len(seats), tree,
            simgrid.configuration(COSTS, {"smpi/allreduce": "rdb"}), [*words, *map(str, sizes)], {}, 240,
        )  # fmt: skip
    if ended.trouble:
        raise CannotRunError(f"the simulation of {nodes} nodes: {ended.trouble}")
    lines = (line.split() for line in ended.output.splitlines() if line[:1].isdigit())
    return {int(size): float(seconds) for size, seconds in lines}


def network_s(nodes: int, size: int) -> float:
    """Return the closed form: the first chunk up and down the tree, then one for each turn of the bottleneck."""
    depth = max(1, math.ceil(math.log(nodes, RADIX) - 1e-9))
    chunks = max(1, -(-size // PAYLOAD))
    hops = depth * (WIRE_S + SWITCH_S) / 2
    wire_s = depth * min(size, PAYLOAD) / RATE
    first = SEND_S + RECEIVE_S + 2 * (hops + wire_s)
    return first + (chunks - 1) * max(SEND_S, RECEIVE_S, PAYLOAD / RATE, first / WINDOW)


def hosts_s(nodes: int, size: int) -> float:
    """Return recursive doubling in closed form: lg n exchanges, of which those inside a leaf cross one switch."""
    inside = math.ceil(math.log2(min(nodes, RADIX)))
    between = math.ceil(math.log2(nodes)) - inside
    tiers = max(1, math.ceil(math.log(nodes, RADIX) - 1e-9)) - 1
    each = SEND_S + RECEIVE_S + WIRE_S + size / RATE
    return (inside + between) * each + between * tiers * COSTS.tier_latency_s


def sizes(options: Options) -> ClaimOutcome:
    """Flat in the vector's length."""
    nodes = 64 if options.small else 1024
    asked = SIZES[:6:2] if options.small else SIZES
    # 2 KB, the end of what is claimed, belongs to both.
    asked = tuple(sorted({*asked, 2048}))
    network = simulated("network", nodes, asked)
    hosts = simulated("hosts", nodes, (1, *asked))
    agreement = hosts[1]
    rows = []
    for size in asked:
        both = network[size] + agreement
        rows.append(
            [_core.format_size(size), us(network[size]), f"{network[size] / network[asked[0]]:.2f}", us(both),
             f"{both / (network[asked[0]] + agreement):.2f}", us(hosts[size]), us(network_s(nodes, size))]
        )  # fmt: skip
    ratio = network[2048] / network[asked[0]]
    agreed = (network[2048] + agreement) / (network[asked[0]] + agreement)
    table = Table(
        f"{nodes:,} nodes of one rank each, two tiers of switches with {RADIX} below each, {RATE / 1e9} GB/s, "
        f"slots of {PAYLOAD} bytes, {WINDOW} of a group; simulated but for the last column.",
        ["vector", "switches", "of 8 B", "with an agreement", "of 8 B", "hosts", "switches, model"],
        rows,
    )
    at_1024 = network[1024] / network[asked[0]] if 1024 in network else None
    step = f"; one step of a slot at {PAYLOAD} bytes" if at_1024 else ""
    return ClaimOutcome(
        SHOWN if ratio <= FLAT else REFUTED,
        f"2K takes {ratio:.2f} times 8 B; with an agreement {agreed:.2f}",
        f"latency of the tree outweighs two slots{step}; beyond, each slot costs the ends' overheads",
        [table],
        {"nodes": nodes, "network_s": network, "hosts_s": hosts},
    )


def by_model(count: int) -> list[str]:
    """Return the last cells of a row: switches, with an agreement, hosts."""
    network = network_s(count, 16)
    return [us(network), us(network + hosts_s(count, 1)), us(hosts_s(count, 16))]


def nodes(options: Options) -> ClaimOutcome:
    """Flat in the number of nodes."""
    asked = NODES[:3] if options.small else NODES
    rows = []
    samples = {}
    for count in asked:
        network, hosts = simulated("network", count, (16,))[16], simulated("hosts", count, (1, 16))
        samples[count] = {"network_s": network, "hosts_s": hosts[16], "agreement_s": hosts[1]}
        rows.append([f"{count:,}", us(network), us(network + hosts[1]), us(hosts[16]), *by_model(count)])
    rows += [[f"{count:,}", "", "", "", *by_model(count)] for count in MODELLED]
    first, last = samples[asked[0]], samples[asked[-1]]
    ends = MODELLED[-1]
    grown = {name: last[name] / first[name] for name in first}
    agreed_model = (network_s(ends, 16) + hosts_s(ends, 1)) / (network_s(asked[0], 16) + hosts_s(asked[0], 1))
    modelled = network_s(ends, 16) / network_s(asked[0], 16)
    by_hosts = hosts_s(ends, 16) / hosts_s(asked[0], 16)
    agreed = (last["network_s"] + last["agreement_s"]) / (first["network_s"] + first["agreement_s"])
    table = Table(
        f"Vectors of 16 B, {RADIX} below each switch: two tiers from {2 * RADIX} nodes, three from "
        f"{RADIX * RADIX + 1:,}.",
        ["nodes", "switches", "with an agreement", "hosts", "switches, model", "with an agreement", "hosts, model"],
        rows,
    )
    return ClaimOutcome(
        SHOWN if modelled <= FLAT else DIRECTION if modelled < by_hosts else REFUTED,
        f"{asked[0]} to {asked[-1]:,} nodes {grown['network_s']:.2f} times, to {ends:,} {modelled:.2f} (model); "
        f"hosts {grown['hosts_s']:.2f} and {by_hosts:.2f}; with an agreement {agreed:.2f} and {agreed_model:.2f}",
        "a tier more each 32-fold, where hosts take a round more each doubling; an agreement of hosts after each call "
        "is such rounds itself, so that with it small vectors gain nothing",
        [table],
        samples,
    )


INSIDE = "leaders:leaders=1,inside=shared"
HOSTS = ("recursive_doubling", INSIDE, "node_aware")


def inside_s(ranks: int, size: int) -> float:
    """Return the predicted time until a leader has the sum of ranks that share memory, and they have its result."""
    job = _core.Job(_core.Machine.synthetic(f"1node:{ranks}core"), "block")
    return _core.predict_algorithm(
        job, "allreduce", INSIDE, _core.Costs.of(job), 0, size, shared_memory=True, element_bytes=8
    ).seconds


def hosts_best(nodes: int, size: int) -> tuple[float, str]:
    """Return the best of the hosts' plans for many ranks a node, predicted."""
    job = _core.Job(_core.Machine.synthetic(f"{nodes}node@{RATE / 1e9}GB/s~1.57us:2socket:8core"), "block")
    costs = _core.Costs.of(job)
    times = {
        one: _core.predict_algorithm(job, "allreduce", one, costs, 0, size, shared_memory=True, element_bytes=8).seconds
        for one in HOSTS
    }
    best = min(times, key=lambda name: times[name])
    return times[best], best


def phases(options: Options) -> ClaimOutcome:
    """Socket, node, network, node, socket, with 16 ranks a node."""
    rows = []
    five, hosts = {}, {}
    asked = [(64, 16)] if options.small else [(64, 16), (256, 16), (1024, 16), (1024, 2048)]
    for count, size in asked:
        socket, node, flat = inside_s(8, size), inside_s(2, size), inside_s(16, size)
        network = simulated("network", count, (size,))[size]
        five[count, size] = socket + node + network
        hosts[count, size], name = hosts_best(count, size)
        rows.append(
            [f"{count:,}", _core.format_size(size), us(socket), us(node), us(network), us(five[count, size]),
             us(flat + network), f"{us(hosts[count, size])} `{name}`"]
        )  # fmt: skip
    first, last = five[asked[0]], five[asked[-2 if len(asked) > 1 else 0]]
    grown = hosts[asked[-2 if len(asked) > 1 else 0]] / hosts[asked[0]]
    sockets = {size: (inside_s(8, size) + inside_s(2, size)) / inside_s(16, size) for size in (16, 2048)}
    table = Table(
        "16 ranks on the 2 sockets of a node, hosts' parts predicted with assumed costs of shared memory, the "
        "network simulated as above; the column `one level` has no phases between sockets.",
        ["nodes", "vector", "in sockets", "between sockets", "network", "five phases", "one level", "hosts, best"],
        rows,
    )
    return ClaimOutcome(
        DIRECTION if all(five[one] < hosts[one] for one in asked) else REFUTED,
        f"{asked[0][0]} to {asked[-1][0]:,} nodes {last / first:.2f} times, hosts {grown:.2f}; with phases between "
        f"sockets the part inside a node takes {sockets[16]:.2f} of the time without at 16 B, "
        f"{sockets[2048]:.2f} at 2K",
        "what is done inside a node doesn't depend on the number of nodes; two more phases cost their latencies, "
        "and pay where two leaders share the combining, or sockets' caches are slow to each other, which these "
        "costs don't have",
        [table],
        {
            "five_s": {f"{n}x{s}": t for (n, s), t in five.items()},
            "hosts_s": {f"{n}x{s}": t for (n, s), t in hosts.items()},
        },
    )


CLAIMS = (
    Claim("small-sizes", "Small vectors: close to a flat curve up to 2 KB", "nearly flat to 2K; no times", True,
          f"{SIMULATED}, {MODEL}", sizes),
    Claim("small-nodes", "Small vectors: flat with the number of nodes, to 7,861", "flat; no times", True,
          f"{SIMULATED} to 1,024, {MODEL} beyond", nodes),
    Claim("phases", "Many ranks a node: five phases (sockets, node, network and back), flat with nodes",
          "16 ranks, 1,024 nodes; no times", True, f"{MODEL}, {SIMULATED}", phases),
)  # fmt: skip
