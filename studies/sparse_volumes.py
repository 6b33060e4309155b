"""Volumes of a tomographic projection's sums between hosts and leaves: counted from the geometry, nothing is run.

A parallel-beam projection of an image in parts, one a rank, in Hilbert order or in strips, rays owned in order of their
angles. Counts the partial sums of rays that cross between hosts (and leaves): flat, where each rank sends what it
touched to the owner, and with hosts, or leaves, that sum first.

Usage: sparse_volumes.py [OUTPUT.json]
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palmette import _core

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "tomography"))
from projector import hilbert, strips

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
    order: str
    tiles: int
    """Side of the sinogram's tiles that footprints are rounded up to; 1: exact."""
    flat_hosts: int
    summed_hosts: int
    flat_leaves: int | None
    summed_leaves: int | None

    def saved(self) -> float:
        """Return the share of the flat exchange's rays that hosts save by summing first."""
        return 1 - self.summed_hosts / self.flat_hosts


def parts_of(case: Case, order: str) -> NDArray[np.float64]:
    """Return top, bottom, left and right of each rank's part of the unit square: squares, or parts of strips."""
    if order == "strips":
        parts: NDArray[np.float64] = strips(case.ranks, round((case.ranks / len(set(case.hosts))) ** 0.5))
        return parts
    side = math.isqrt(case.ranks)
    if side * side != case.ranks or side & (side - 1):
        raise ValueError(f"{case.ranks} ranks: expected a power of four")
    column, row = hilbert(side).T
    return np.stack([row, row + 1, column, column + 1], axis=1) / side


def footprints(parts: NDArray[np.float64], image: int, angles: int) -> NDArray[np.bool_]:
    """Return whether a part touches ray (angle, bin), as an array of parts x angles x bins."""
    top, bottom, left, right = (parts * image).T[..., None]
    theta = np.arange(angles) * np.pi / angles
    cos, sin = np.cos(theta), np.sin(theta)
    middle = ((left + right - image) * cos + (top + bottom - image) * sin + image) / 2
    half = ((right - left) * abs(cos) + (bottom - top) * abs(sin)) / 2
    # Edges that fall on a bin's edge up to rounding touch no further bin.
    first, end = np.floor(middle - half + 1e-9), np.ceil(middle + half - 1e-9)
    bins = np.arange(image)
    touched: NDArray[np.bool_] = (bins >= first[..., None]) & (bins < end[..., None])
    return touched


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


def volume(case: Case, order: str, touched: NDArray[np.bool_], tiles: int) -> Volume:
    """Count one case with footprints in tiles."""
    rays = case.angles * case.image
    owner = np.arange(rays) * case.ranks // rays
    rounded = in_tiles(touched, tiles)
    between = crossing(rounded, owner, np.asarray(case.hosts))
    above = crossing(rounded, owner, np.asarray(case.leaves)) if case.leaves else (None, None)
    return Volume(case.name, order, tiles, *between, *above)


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
    heads = (
        ("order", 7),
        ("tiles", 5),
        ("hosts: flat", 12),
        ("summed", 10),
        ("", 6),
        ("leaves: flat", 13),
        ("summed", 9),
    )
    print(" " * 42, *(f"{head:>{width}}" for head, width in heads))
    for case in cases():
        for order in ("hilbert", "strips"):
            touched = footprints(parts_of(case, order), case.image, case.angles)
            for tiles in (1, 4, 8):
                one = volume(case, order, touched, tiles)
                volumes.append(one)
                leaves = "" if one.flat_leaves is None else f"{one.flat_leaves:13,} {one.summed_leaves:9,}"
                print(
                    f"{case.name:42} {order:7} {tiles:5} {one.flat_hosts:12,} {one.summed_hosts:10,} "
                    f"{-100 * one.saved():5.1f}% {leaves}"
                )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps([asdict(one) for one in volumes], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
