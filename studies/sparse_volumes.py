"""Volumes of a tomographic projection's sums between hosts and leaves: counted from the geometry, nothing is run.

A parallel-beam projection of an image in square tiles, a tile a rank in Hilbert order, rays owned in order of their
angles. Counts the partial sums of rays that cross between hosts (and leaves): flat, where each rank sends what it
touched to the owner, and with hosts, or leaves, that sum first.

Usage: sparse_volumes.py [OUTPUT.json]
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palmette import _core

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


@dataclass(frozen=True)
class Case:
    """Ranks on hosts and leaves of consecutive positions, and the problem's size."""

    name: str
    ranks: int
    image: int
    """Cells a side; also rays an angle."""
    angles: int
    hosts: tuple[int, ...]
    """Host of each rank."""
    leaves: tuple[int, ...] | None = None
    """Leaf of each rank."""


@dataclass(frozen=True)
class Volume:
    """Partial sums, in rays, that cross between groups."""

    case: str
    tiles: int
    """Side of the sinogram's tiles that footprints are rounded up to; 1: exact."""
    flat_hosts: int
    summed_hosts: int
    flat_leaves: int | None
    summed_leaves: int | None

    def saved(self) -> float:
        """Return the share of the flat exchange's rays that hosts save by summing first."""
        return 1 - self.summed_hosts / self.flat_hosts


def hilbert(side: int) -> NDArray[np.int64]:
    """Return the cells (x, y) of a square whose side is a power of two, in Hilbert order."""
    index = np.arange(side * side)
    x, y = np.zeros_like(index), np.zeros_like(index)
    step = 1
    while step < side:
        right = 1 & (index // 2)
        up = 1 & (index ^ right)
        flip = (up == 0) & (right == 1)
        x, y = np.where(flip, step - 1 - x, x), np.where(flip, step - 1 - y, y)
        x, y = np.where(up == 0, y, x), np.where(up == 0, x, y)
        x, y = x + step * right, y + step * up
        index = index // 4
        step *= 2
    return np.stack([x, y], axis=1)


def footprints(ranks: int, image: int, angles: int) -> NDArray[np.bool_]:
    """Return whether rank r's tile touches ray (angle, bin), as an array of ranks x angles x bins."""
    side = round(ranks**0.5)
    if side * side != ranks or side & (side - 1) or image % side:
        raise ValueError(f"{ranks} ranks: expected a power of four whose root divides the image")
    width = image / side
    centre = (hilbert(side) + 0.5) * width - image / 2
    theta = np.arange(angles) * np.pi / angles
    middle = centre[:, :1] * np.cos(theta) + centre[:, 1:] * np.sin(theta) + image / 2
    half = width / 2 * (abs(np.cos(theta)) + abs(np.sin(theta)))
    # Edges that fall on a bin's edge up to rounding touch no further bin.
    first, end = np.floor(middle - half + 1e-9), np.ceil(middle + half - 1e-9)
    bins = np.arange(image)
    return (bins >= first[..., None]) & (bins < end[..., None])


def in_tiles(touched: NDArray[np.bool_], tile: int) -> NDArray[np.bool_]:
    """Return footprints rounded up to square tiles of the sinogram."""
    ranks, angles, bins = touched.shape
    if tile == 1:
        return touched
    coarse = touched.reshape(ranks, angles // tile, tile, bins // tile, tile).any(axis=(2, 4))
    return np.repeat(np.repeat(coarse, tile, axis=1), tile, axis=2)


def crossing(touched: NDArray[np.bool_], owner: NDArray[np.int64], group: NDArray[np.int64]) -> tuple[int, int]:
    """Return the rays that cross between groups: from each rank, and where groups sum first."""
    flat = summed = 0
    owning = group[owner]
    for number in np.unique(group):
        members = touched[group == number].reshape(-1, owner.size)
        foreign = owning != number
        flat += int(np.count_nonzero(members & foreign))
        summed += int(np.count_nonzero(members.any(axis=0) & foreign))
    return flat, summed


def volume(case: Case, touched: NDArray[np.bool_], tiles: int) -> Volume:
    """Count one case with footprints in tiles."""
    rays = case.angles * case.image
    owner = np.arange(rays) * case.ranks // rays
    rounded = in_tiles(touched, tiles)
    between = crossing(rounded, owner, np.asarray(case.hosts))
    above = crossing(rounded, owner, np.asarray(case.leaves)) if case.leaves else (None, None)
    return Volume(case.name, tiles, *between, *above)


def on_lab(placement: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return host and leaf of each of the lab's 16 ranks."""
    job = _core.Job(_core.Machine.synthetic(LAB), placement)
    groups: dict[str, list[int]] = {}
    for level in job.levels:
        groups[level.name] = [level.group_of(job.position_of(rank)) for rank in range(job.size)]
    return tuple(groups["node"]), tuple(groups["leaf"])


def cases() -> list[Case]:
    """Return the cases of the table."""
    ordered, scattered = on_lab("block"), on_lab("random:1")

    def blocks(ranks: int, size: int) -> tuple[int, ...]:
        return tuple(rank // size for rank in range(ranks))

    return [
        Case("16 ranks, 2 a host (lab), topology order", 16, 256, 192, *ordered),
        Case("16 ranks, 2 a host (lab), random:1", 16, 256, 192, *scattered),
        Case("64 ranks, 8 a host", 64, 256, 192, blocks(64, 8), blocks(64, 16)),
        Case("256 ranks, 3 a host", 256, 512, 384, blocks(256, 3)),
        Case("256 ranks, 6 a host", 256, 512, 384, blocks(256, 6)),
        Case("256 ranks, 8 a host", 256, 512, 384, blocks(256, 8), blocks(256, 64)),
    ]


def main() -> None:
    """Count all cases, and print them."""
    volumes: list[Volume] = []
    print(f"{'':42} {'tiles':>5} {'hosts: flat':>12} {'summed':>10} {'':>5} {'leaves: flat':>13} {'summed':>10}")
    for case in cases():
        touched = footprints(case.ranks, case.image, case.angles)
        for tiles in (1, 4, 8):
            counted = volume(case, touched, tiles)
            volumes.append(counted)
            leaves = "" if counted.flat_leaves is None else f"{counted.flat_leaves:13,} {counted.summed_leaves:10,}"
            print(
                f"{case.name:42} {tiles:5} {counted.flat_hosts:12,} {counted.summed_hosts:10,} "
                f"{-100 * counted.saved():4.0f}% {leaves}"
            )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps([asdict(one) for one in volumes], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
