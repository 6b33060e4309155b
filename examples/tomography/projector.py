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

    def cells_of(self, position: int, ranks: int, high: int = 0) -> tuple[Indices, Indices]:
        """Return rows and columns of the cells of a position's part.

        Parts are those of `strips` that are `high` ranks high; with 0 runs of the cells in Hilbert order.
        """
        if high:
            top, bottom, left, right = np.rint(strips(ranks, high)[position] * self.cells).astype(np.int64)
            row, column = np.meshgrid(np.arange(top, bottom), np.arange(left, right), indexing="ij")
            return row.ravel(), column.ravel()
        side = 1
        while side * side < 4 * ranks or side < 16:
            side *= 2
        while self.cells % side:
            side //= 2
        tiles = hilbert(side)
        mine = tiles[len(tiles) * position // ranks : len(tiles) * (position + 1) // ranks]
        width = self.cells // side
        inside = np.arange(width * width)
        column = mine[:, :1] * width + inside % width
        row = mine[:, 1:] * width + inside // width
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
    """Return column and row of the cells of a square whose side is a power of two, in Hilbert order."""
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


def strips(ranks: int, high: int) -> NDArray[np.float64]:
    """Return top, bottom, left and right of each position's part of the unit square.

    Strips of some `high` parts are walked to and fro, and each of them column by column, down and up: consecutive
    positions touch, and runs of about high * high of them are nearly squares. Parts are of the same size.
    """
    out = np.empty((ranks, 4))
    number = max(1, round(ranks**0.5 / high))
    for strip in range(number):
        first, end = ranks * strip // number, ranks * (strip + 1) // number
        columns = -(-(end - first) // high)
        for column in range(columns):
            a, b = (first + (end - first) * at // columns for at in (column, column + 1))
            # Edges are the same numbers on both sides, so that they are rounded to the same cells.
            edges = np.linspace(first / ranks, end / ranks, b - a + 1)
            row = np.stack([edges[:-1], edges[1:]], axis=1)
            out[a:b, :2] = row if column % 2 == 0 else row[::-1]
            sides = (a - first) / (end - first), (b - first) / (end - first)
            out[a:b, 2:] = sides if strip % 2 == 0 else (1 - sides[1], 1 - sides[0])
    return out


def height_of_strips(ranks_a_host: int) -> int:
    """Return how high strips are so that a host's part is compact; 0 where Hilbert's order is better.

    Its runs of a power of two are compact already; of other lengths they are not.
    """
    return 0 if ranks_a_host & (ranks_a_host - 1) == 0 else round(ranks_a_host**0.5)
