"""Fabrics drawn at random, written in all dialects: the same tree comes from each of them, and it is the right one."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from palmette.discover.rates import link_bytes_per_s
from palmette.discover.slurm import discover_slurm
from palmette.topology.found import SourceResult
from palmette.topology.model import TreeNode

from .listing import Listing, discover_text, ibdiagnet

SPEEDS = ("EDR", "HDR", "NDR")


@dataclass
class RandomFabric:
    """A fabric, and what its tree has to be."""

    fabric: Listing
    leaves: list[list[str]]
    """Hosts of each leaf group."""
    pods: list[list[int]]
    """Leaf groups of each pod; one pod: no level of its own."""
    hosts_up: dict[str, float] = field(default_factory=dict)
    leaves_up: list[float] = field(default_factory=list)


def rate(speed: str) -> float:
    known = link_bytes_per_s(4, speed)
    assert known is not None
    return known


def draw(seed: int) -> RandomFabric:
    """Leaves of one or several rails, in one or several pods; perhaps storage, directors, mixed speeds."""
    generator = random.Random(seed)
    rails, pods = generator.choice((1, 1, 2, 4)), generator.choice((1, 1, 2, 3))
    per_pod, hosts = generator.randint(2, 4), generator.randint(3, 6)
    directors = generator.random() < 0.4
    fabric = Listing()
    drawn = RandomFabric(fabric, [], [])
    cores = [f"core{number}" for number in range(2)] if pods > 1 else []
    for key in cores:
        fabric.add("Switch", key, f"MF0;{key}:MQM8700/U1")
    for pod in range(pods):
        # A director's leaf and spine boards have its system GUID in common.
        system = 0xD000000 + pod if directors else None
        spines = [f"spine{pod}-{number}" for number in range(2)]
        for key in spines:
            fabric.add(
                "Switch",
                key,
                f"MF0;director{pod}:IS5300/S{key[-1]}/U1" if directors else f"MF0;{key}:MQM8700/U1",
                system=system,
            )
        drawn.pods.append([])
        for leaf in range(per_pod):
            speed = generator.choice(SPEEDS)
            keys = [f"leaf{pod}-{leaf}-{rail}" for rail in range(rails)]
            for rail, key in enumerate(keys):
                name = f"MF0;director{pod}:IS5300/L{leaf}-{rail}/U1" if directors else f"MF0;{key}:MQM8700/U1"
                fabric.add("Switch", key, name, system=system)
            names = [f"n{pod}{leaf}{number}" for number in range(hosts)]
            for name in names:
                for rail, key in enumerate(keys):
                    fabric.host(f"{name}-{rail}", key, name=f"{name} mlx5_{rail}", rate=f"4x{speed}")
                drawn.hosts_up[name] = rails * rate(speed)
            up = generator.choice(SPEEDS)
            for key in keys:
                for spine in spines:
                    fabric.cable(key, spine, f"4x{up}")
            drawn.pods[-1].append(len(drawn.leaves))
            drawn.leaves.append(names)
            drawn.leaves_up.append(rails * len(spines) * rate(up))
        for spine in spines:
            for core in cores:
                fabric.cable(spine, core, "4xNDR")
    if generator.random() < 0.5:
        _add_storage(fabric, drawn.leaves, generator)
    fabric.renumber(generator)
    return drawn


def _add_storage(fabric: Listing, leaves: list[list[str]], generator: random.Random) -> None:
    """A switch to which the hosts of several leaves are cabled as well."""
    fabric.switch("storage")
    served = generator.sample(leaves, generator.randint(2, len(leaves)))
    for name in (name for names in served for name in names):
        fabric.host(f"{name}-storage", "storage", name=f"{name} mlx5_9", rate="4xEDR")


def shape(node: TreeNode) -> object:
    """A tree by its hosts alone: whatever the groups are called and in which order they stand."""
    if node.level == "node":
        return node.name
    return frozenset(shape(child) for child in node.children)


def expected(drawn: RandomFabric) -> object:
    groups = [frozenset(names) for names in drawn.leaves]
    if len(drawn.pods) == 1:
        return frozenset(groups)
    return frozenset(frozenset(groups[leaf] for leaf in pod) for pod in drawn.pods)


def capacities(found: SourceResult) -> dict[object, float | None]:
    assert found.machine is not None
    return {shape(node): node.up_bytes_per_s for node in found.machine.tree.walk() if node.level in ("leaf", "node")}


def conf(drawn: RandomFabric, generator: random.Random) -> str:
    """The tree as Slurm's topology.conf."""
    lines = [f"SwitchName=leaf{number} Nodes={','.join(names)}" for number, names in enumerate(drawn.leaves)]
    for number, pod in enumerate(drawn.pods):
        lines.append(f"SwitchName=pod{number} Switches={','.join(f'leaf{leaf}' for leaf in pod)}")
    if len(drawn.pods) > 1:
        lines.append(f"SwitchName=top Switches=pod[0-{len(drawn.pods) - 1}]")
    generator.shuffle(lines)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(60))
def test_each_dialect_gives_the_tree_that_was_built(tmp_path: Path, seed: int) -> None:
    drawn = draw(seed)
    generator = random.Random(-seed)
    plain = drawn.fabric.text()
    texts = {
        "plain": plain,
        "shuffled": drawn.fabric.text(seed),
        "grouped": "Chassis 1 (guid 0x8f10400410015)\n\nSpine 1 Chip 1\n" + plain + "\nNon-Chassis Nodes\n",
        "ports": drawn.fabric.ports(generator),
        "ibdiagnet": ibdiagnet(drawn.fabric.text(seed + 1)),
    }
    wanted: dict[object, float | None] = {}
    for names, up in zip(drawn.leaves, drawn.leaves_up, strict=True):
        wanted[frozenset(names)] = pytest.approx(up)
        wanted |= {name: pytest.approx(drawn.hosts_up[name]) for name in names}
    for dialect, text in texts.items():
        found = discover_text(tmp_path, text)
        assert found.machine is not None
        assert shape(found.machine.tree) == expected(drawn), dialect
        assert capacities(found) == wanted, dialect
        assert all(len(note.message) < 400 for note in found.warnings), dialect
    (tmp_path / "topology.conf").write_text(conf(drawn, generator))
    told = discover_slurm(str(tmp_path / "topology.conf"))
    assert told.machine is not None
    assert shape(told.machine.tree) == expected(drawn), "Slurm"


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(1, 11))
def test_a_thousand_more(tmp_path: Path, hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        test_each_dialect_gives_the_tree_that_was_built(tmp_path, seed)
