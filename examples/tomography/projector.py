"""Parallel-beam projection of an image's tiles: who has which cells, and the matrix of one rank's tile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Indices = NDArray[np.int64]


class Geometry:
    """An image of cells x cells, seen from angles evenly over half a turn, on a detector of as many bins as cells.

    Rays are numbered by square tiles of the sinogram (angles x bins) of `tile` x `tile`, and angle by angle in a tile,
    so that tile * tile consecutive numbers are near each other.
    """

    def __init__(self, cells: int, angles: int, tile: int = 1) -> None:
        if cells % tile or angles % tile:
            raise ValueError(f"tile {tile}: it must divide {cells} cells and {angles} angles")
        self.cells, self.angles, self.tile = cells, angles, tile
        self.rays = angles * cells

    def ray(self, angle: Indices, bin_: Indices) -> Indices:
        """Return the numbers of rays."""
        side = self.tile
        where = angle // side * (self.cells // side) + bin_ // side
        return (where * side + angle % side) * side + bin_ % side

    def owned(self, rank: int, ranks: int) -> tuple[int, int]:
        """Return the rays that a rank owns, as whole tiles of the sinogram."""
        area = self.tile * self.tile
        tiles = self.rays // area
        return tiles * rank // ranks * area, tiles * (rank + 1) // ranks * area

    def cells_of(self, position: int, ranks: int) -> tuple[Indices, Indices]:
        """Return rows and columns of the cells of a position's part: runs of the cells in Hilbert order."""
        side = 1
        while side * side < 4 * ranks or side < 16:
            side *= 2
        while self.cells % side:
            side //= 2
        tiles = hilbert(side)
        mine = tiles[len(tiles) * position // ranks : len(tiles) * (position + 1) // ranks]
        width = self.cells // side
        inside = np.arange(width * width)
        row = mine[:, :1] * width + inside // width
        column = mine[:, 1:] * width + inside % width
        return row.ravel(), column.ravel()

    def matrix(self, row: Indices, column: Indices) -> tuple[Indices, csr_array]:
        """Return the rays that these cells touch, ascending, and their matrix: rays x cells.

        A cell's shadow is split linearly between the two bins next to its centre's.
        """
        theta = np.arange(self.angles) * np.pi / self.angles
        middle = (self.cells - 1) / 2
        at = np.outer(column - middle, np.cos(theta)) + np.outer(row - middle, np.sin(theta)) + middle
        low = np.floor(at).astype(np.int64)
        share = (at - low).astype(np.float32)
        cell = np.broadcast_to(np.arange(len(row))[:, None], at.shape)
        angle = np.broadcast_to(np.arange(self.angles), at.shape)
        bins = np.concatenate([low.ravel(), low.ravel() + 1])
        weight = np.concatenate([1 - share.ravel(), share.ravel()])
        seen = (bins >= 0) & (bins < self.cells) & (weight > 0)
        rays = self.ray(np.tile(angle.ravel(), 2)[seen], bins[seen])
        touched, index = np.unique(rays, return_inverse=True)
        entries = (weight[seen], (index, np.tile(cell.ravel(), 2)[seen]))
        return touched, csr_array(entries, shape=(len(touched), len(row)), dtype=np.float32)


def hilbert(side: int) -> Indices:
    """Return the cells of a square whose side is a power of two, in Hilbert order."""
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
