"""A three-level fat tree as ibnetdiscover would list it: the input of studies/discover_10k.py and of tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

SPEED = "4xHDR"


def write_fat_tree(stream: TextIO, pods: int, leaves: int, uplinks: int, hosts: int, cores: int) -> int:
    """Writes the listing and returns the number of hosts.

    pods pods of `leaves` leaf switches with `hosts` hosts each; a pod has `uplinks` upper switches, each linked to
    every leaf of the pod; upper switch u is linked to the `cores` core switches of plane u.
    """
    stream.write("#\n# Topology file: made by a generator\n#\n")
    ports = max(hosts + uplinks, leaves + cores, pods)
    for pod in range(pods):
        for leaf in range(leaves):
            links = [
                (f'"H-{_host(pod, leaf, h, leaves, hosts):016x}"[1]({_host(pod, leaf, h, leaves, hosts):x})',
                 _host_name(pod, leaf, h, leaves, hosts) + " mlx5_0") for h in range(hosts)
            ]  # fmt: skip
            links += [
                (f'"S-{_upper(pod, u):016x}"[{leaf + 1}]', f"MF0;pod{pod}-agg{u}:MQM8700/U1") for u in range(uplinks)
            ]
            _switch(stream, _leaf(pod, leaf), f"MF0;pod{pod}-leaf{leaf}:MQM8700/U1", ports, links)
    for pod in range(pods):
        for upper in range(uplinks):
            links = [
                (f'"S-{_leaf(pod, leaf):016x}"[{hosts + upper + 1}]', f"MF0;pod{pod}-leaf{leaf}:MQM8700/U1")
                for leaf in range(leaves)
            ]
            links += [
                (f'"S-{_core(upper, c):016x}"[{pod + 1}]', f"MF0;core{upper}-{c}:MQM8700/U1") for c in range(cores)
            ]
            _switch(stream, _upper(pod, upper), f"MF0;pod{pod}-agg{upper}:MQM8700/U1", ports, links)
    for plane in range(uplinks):
        for core in range(cores):
            links = [
                (f'"S-{_upper(pod, plane):016x}"[{leaves + core + 1}]', f"MF0;pod{pod}-agg{plane}:MQM8700/U1")
                for pod in range(pods)
            ]
            _switch(stream, _core(plane, core), f"MF0;core{plane}-{core}:MQM8700/U1", ports, links)
    for pod, leaf, h in _all_hosts(pods, leaves, hosts):
        guid = _host(pod, leaf, h, leaves, hosts)
        stream.write(
            f"vendid=0x2c9\ndevid=0x101b\nsysimgguid=0x{guid:x}\ncaguid=0x{guid:x}\n"
            f'Ca\t1 "H-{guid:016x}"\t\t# "{_host_name(pod, leaf, h, leaves, hosts)} mlx5_0"\n'
            f'[1]({guid:x}) \t"S-{_leaf(pod, leaf):016x}"[{h + 1}]\t\t# lid {h + 1} lmc 0 '
            f'"MF0;pod{pod}-leaf{leaf}:MQM8700/U1" lid {leaf + 1} {SPEED}\n\n'
        )
    return pods * leaves * hosts


def _switch(stream: TextIO, guid: int, name: str, ports: int, links: list[tuple[str, str]]) -> None:
    stream.write(
        f"vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x{guid:x}\nswitchguid=0x{guid:x}({guid:x})\n"
        f'Switch\t{ports} "S-{guid:016x}"\t\t# "{name}" enhanced port 0 lid 1 lmc 0\n'
    )
    for port, (peer, peer_name) in enumerate(links, 1):
        stream.write(f'[{port}]\t{peer} \t\t# "{peer_name}" lid {port} {SPEED}\n')
    stream.write("\n")


def _all_hosts(pods: int, leaves: int, hosts: int) -> Iterator[tuple[int, int, int]]:
    return ((p, v, h) for p in range(pods) for v in range(leaves) for h in range(hosts))


def _host(pod: int, leaf: int, host: int, leaves: int, hosts: int) -> int:
    return 0x0C42A10300100000 + (pod * leaves + leaf) * hosts + host


def _host_name(pod: int, leaf: int, host: int, leaves: int, hosts: int) -> str:
    return f"n{(pod * leaves + leaf) * hosts + host:05d}"


def _leaf(pod: int, leaf: int) -> int:
    return 0x0C42A10300200000 + pod * 256 + leaf


def _upper(pod: int, upper: int) -> int:
    return 0x0C42A10300300000 + pod * 256 + upper


def _core(plane: int, core: int) -> int:
    return 0x0C42A10300400000 + plane * 256 + core
