"""Tomography of a volume whose tiles are spread over ranks: SIRT or CGLS, with three ways to exchange.

Usage: mpiexec -n 4 python reconstruct.py [--object head] [--by allreduce,alltoallv,palmette] [--help]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from exchanges import Array, Dense, Exchange, Flat, Indices, Sparse
from mpi4py import MPI
from numpy.typing import NDArray
from objects import OBJECTS
from projector import Geometry, height_of_strips
from scipy.sparse import csr_array
from volumes import Volumes, ranks_a_host

from palmette import _core
from palmette.compose import ComposeError
from palmette.compose.factoring import Factoring
from palmette.compose.sparse import positions

WAYS = ("allreduce", "alltoallv", "palmette")
PLURAL = {"node": "hosts", "leaf": "leaves"}
ORDERS = ("auto", "hilbert", "strips")


@dataclass
class Problem:
    """One rank's part: its cells, its matrix, the measured rays that it keeps, the true values of its cells."""

    comm: MPI.Comm
    geometry: Geometry
    exchange: Exchange
    matrix: csr_array
    """Rows as the exchange has them."""
    transposed: csr_array
    parts: int
    """That slices are exchanged in."""
    seconds: dict[str, float] = field(default_factory=lambda: {"projecting": 0.0, "exchanging": 0.0})

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[what] += time.perf_counter() - began

    def part_of(self, array: Array, part: int) -> Array:
        width = array.shape[1] // self.parts
        return np.ascontiguousarray(array[:, part * width : (part + 1) * width])

    def forward(self, x: Array) -> Array:
        """Return the projections of all ranks' cells, of the rays that this rank keeps.

        While a part's rays travel, the next part is projected.
        """
        for part in range(self.parts):
            with self.timed("projecting"):
                partial = self.matrix @ self.part_of(x, part)
            with self.timed("exchanging"):
                for earlier in range(part):
                    self.exchange.progress(earlier)
                self.exchange.start_sum(part, partial)
        with self.timed("exchanging"):
            return np.concatenate([self.exchange.finish_sum(part) for part in range(self.parts)], axis=1)

    def back(self, y: Array) -> Array:
        """Return the adjoint, of this rank's cells; later parts travel while a part is projected back."""
        with self.timed("exchanging"):
            pieces = [self.part_of(y, part) for part in range(self.parts)]
            for part, piece in enumerate(pieces):
                self.exchange.start_spread(part, piece)
        out = []
        for part in range(self.parts):
            with self.timed("exchanging"):
                near = self.exchange.finish_spread(part)
                for later in range(part + 1, self.parts):
                    self.exchange.progress(later)
            with self.timed("projecting"):
                out.append(self.transposed @ near)
        return np.concatenate(out, axis=1)

    def dots_of_cells(self, a: Array, b: Array) -> NDArray[np.float64]:
        """Return the scalar product of each slice."""
        total: NDArray[np.float64] = self.comm.allreduce(np.einsum("ij,ij->j", a.astype("f8"), b))
        return total

    def dots_of_rays(self, a: Array, b: Array) -> NDArray[np.float64]:
        here: NDArray[np.float64] = np.einsum("ij,ij->j", a.astype("f8"), b)
        total: NDArray[np.float64] = here if self.exchange.replicated else self.comm.allreduce(here)
        return total

    def norm_of_cells(self, a: Array) -> float:
        return float(self.dots_of_cells(a, a).sum() ** 0.5)

    def norm_of_rays(self, a: Array) -> float:
        return float(self.dots_of_rays(a, a).sum() ** 0.5)


def sirt(problem: Problem, b: Array, cells: int, iterations: int) -> tuple[Array, list[float]]:
    """Return the cells' values by simultaneous iterative reconstruction, and the relative residuals."""
    width = b.shape[1]
    along = problem.forward(np.ones((cells, width), dtype=np.float32))
    across = problem.back(np.ones_like(b))
    rays, columns = (np.where(some > 1e-6, 1 / np.maximum(some, 1e-6), 0) for some in (along, across))
    x = np.zeros((cells, width), dtype=np.float32)
    norm, residuals = problem.norm_of_rays(b), []
    for _ in range(iterations):
        rest = b - problem.forward(x)
        residuals.append(problem.norm_of_rays(rest) / norm)
        x += columns * problem.back((rays * rest).astype(np.float32))
    return x, residuals


def cgls(problem: Problem, b: Array, cells: int, iterations: int) -> tuple[Array, list[float]]:
    """Return the cells' values by conjugate gradients on the normal equations, and the relative residuals.

    Each slice has its own steps, and slopes are made orthogonal to all earlier ones: rounding, which differs between
    the ways to exchange, would lead them apart after few iterations otherwise.
    """
    x = np.zeros((cells, b.shape[1]), dtype=np.float32)
    rest, norm = b.copy(), problem.norm_of_rays(b)
    step = slope = problem.back(rest)
    length, residuals = problem.dots_of_cells(slope, slope), []
    earlier: list[Array] = []
    for _ in range(iterations):
        residuals.append(problem.norm_of_rays(rest) / norm)
        earlier.append((slope / length**0.5).astype(np.float32))
        seen = problem.forward(step)
        by = (length / problem.dots_of_rays(seen, seen)).astype(np.float32)
        x += by * step
        rest -= by * seen
        slope = problem.back(rest)
        for one in earlier:
            slope -= problem.dots_of_cells(one, slope).astype(np.float32) * one
        before, length = length, problem.dots_of_cells(slope, slope)
        step = slope + (length / before).astype(np.float32) * step
    return x, residuals


SOLVERS = {"sirt": sirt, "cgls": cgls}


def arguments() -> argparse.Namespace:
    """Return the command line's."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--object", choices=sorted(OBJECTS), default="shepp-logan")
    parser.add_argument("--cells", type=int, default=64, help="cells a side of a slice, and bins of the detector")
    parser.add_argument("--angles", type=int, default=96)
    parser.add_argument("--slices", type=int, default=16)
    parser.add_argument("--parts", type=int, default=1, help="of the slices: one travels while the next is projected")
    parser.add_argument("--method", choices=sorted(SOLVERS), default="cgls")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--by", default=",".join(WAYS), help="ways to exchange, in this order")
    parser.add_argument(
        "--tile", type=int, default=1, help="side of the sinogram's tiles; palmette's blocks are made of"
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default="auto",
        help="of the volume's tiles; auto: Hilbert's where hosts have a power of two of ranks, else strips",
    )
    parser.add_argument("--factoring", help="palmette's, such as 'method=ring,direct,direct pipeline=4'")
    parser.add_argument("--measure", type=int, default=0, help="rounds of exchanges alone, the ways in turns")
    parser.add_argument("--picture", type=Path, help="PNG of four slices: truth, reconstruction (needs Pillow)")
    parser.add_argument("--json", type=Path, help="write figures here")
    asked = parser.parse_args()
    for name in ("cells", "angles", "slices", "iterations"):
        if getattr(asked, name) < 1:
            parser.error(f"--{name} {getattr(asked, name)}: it must be 1 or more")
    for way in asked.by.split(","):
        if way not in WAYS:
            parser.error(f"--by {way}: expected some of {', '.join(WAYS)}")
    for file in (asked.picture, asked.json):
        if file and not file.absolute().parent.is_dir():
            parser.error(f"{file}: the folder {file.absolute().parent} isn't there")
    if asked.picture and find_spec("PIL") is None:
        parser.error("--picture needs Pillow: pip install pillow")
    if asked.parts < 1 or asked.slices % asked.parts:
        parser.error(f"--parts {asked.parts}: it must divide the {asked.slices} slices")
    if asked.tile < 1 or asked.cells % asked.tile or asked.angles % asked.tile:
        parser.error(f"--tile {asked.tile}: it must divide {asked.cells} cells and {asked.angles} angles")
    return asked


def job_of(comm: MPI.Comm) -> _core.Job:
    """Return the ranks on hosts as the MPI names them, and on leaves where PALMETTE_TOPOLOGY tells of these hosts.

    PALMETTE_FAKE_HOSTS pretends hosts here as it does for palmette. Collective.
    """
    pretended = os.environ.get("PALMETTE_FAKE_HOSTS", "").split(",")
    name = pretended[comm.rank % len(pretended)] or MPI.Get_processor_name()
    hosts = comm.allgather(f"h{name}" if name.isdecimal() else name)
    if file := os.environ.get("PALMETTE_TOPOLOGY"):
        return _core.Job.on_hosts(_core.Machine.from_file(file), hosts)
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    return _core.Job.from_groups(["node"], [[numbers[host]] for host in hosts])


def tile_order(order: str, ranks: int) -> tuple[str, int]:
    """Return the order for so many ranks a host, and how many ranks strips are high; 0: Hilbert's order."""
    high = height_of_strips(ranks)
    if order == "auto":
        return ("strips" if high else "hilbert"), high
    return order, 0 if order == "hilbert" else high or max(1, round(ranks**0.5))


def exchange_by(way: str, comm: MPI.Comm, geometry: Geometry, touched: Indices, asked: argparse.Namespace) -> Exchange:
    """Make one of the three."""
    width = asked.slices // asked.parts
    bounds = np.array([geometry.owned(rank, comm.size)[0] for rank in range(comm.size)] + [geometry.rays])
    if way == "allreduce":
        return Dense(comm, touched, geometry.rays, width, asked.parts)
    if way == "alltoallv":
        return Flat(comm, touched, bounds, width, asked.parts)
    factoring = Factoring.parse(asked.factoring) if asked.factoring else None
    return Sparse(comm, touched, bounds, width, asked.parts, geometry.tile**2, factoring)


def crossing(way: str, volumes: Volumes) -> str:
    """Return the line about bytes between hosts and the like."""
    least = "at least " if way == "allreduce" else ""
    parts = (
        f"{one['sum'] / 1e6:.3f} + {one['spread'] / 1e6:.3f} MB between {PLURAL.get(level, level)}"
        for level, one in volumes.items()
    )
    return f"{'':10} sum + spread: {least}{', '.join(parts)}" if volumes else f"{'':10} one host: nothing leaves it"


def in_rows_of(exchange: Exchange, touched: Indices, matrix: csr_array) -> csr_array:
    """Return the matrix with its rows as the exchange has them; rays that only others touch are empty rows."""
    at = np.searchsorted(touched, exchange.rows)
    known = (at < len(touched)) & (touched[np.minimum(at, len(touched) - 1)] == exchange.rows)
    entries = np.ones(np.count_nonzero(known), dtype=np.float32)
    choose = csr_array((entries, (np.flatnonzero(known), at[known])), shape=(len(at), len(touched)))
    return csr_array(choose @ matrix)


def measured(problems: dict[str, Problem], rounds: int, width: int) -> dict[str, dict[str, list[float]]]:
    """Return seconds of each round's sum and spread of all parts, on the slowest rank, the ways in turns after a
    barrier.
    """
    out: dict[str, dict[str, list[float]]] = {way: {"sum": [], "spread": []} for way in problems}
    for number in range(rounds + 1):
        for way, problem in problems.items():
            exchange, comm, parts = problem.exchange, problem.comm, range(problem.parts)
            for what, start, finish, rows in (
                ("sum", exchange.start_sum, exchange.finish_sum, exchange.rows),
                ("spread", exchange.start_spread, exchange.finish_spread, exchange.kept),
            ):
                given = np.ones((len(rows), width // problem.parts), dtype=np.float32)
                comm.Barrier()
                began = time.perf_counter()
                for part in parts:
                    start(part, given)
                for part in parts:
                    finish(part)
                spent = comm.allreduce(time.perf_counter() - began, MPI.MAX)
                if number:
                    out[way][what].append(spent)
    return out


def adjoint_error(problem: Problem, cells: int, width: int) -> float:
    """Return |<Ax, y> - <x, A'y>| / |<Ax, y>| for random x and y."""
    random = np.random.default_rng(problem.comm.rank)
    x = random.random((cells, width), dtype=np.float32)
    everywhere = np.random.default_rng(0).random((problem.geometry.rays, 1), dtype=np.float32)
    y = np.repeat(everywhere[problem.exchange.kept], width, axis=1)
    forth = problem.dots_of_rays(problem.forward(x), y).sum()
    return float(abs(forth - problem.dots_of_cells(x, problem.back(y)).sum()) / abs(forth))


def picture(file: Path, truth: Array, found: Array) -> None:
    """Write up to four slices, evenly through the volume: the truth above its reconstruction."""
    from PIL import Image

    slices = truth.shape[2]
    shown = ((np.arange(min(4, slices)) + 0.5) / min(4, slices) * slices).astype(int)
    rows = [np.concatenate([volume[:, :, number] for number in shown], axis=1) for volume in (truth, found)]
    grey = (np.clip(np.concatenate(rows) / truth.max(), 0, 1) * 255).astype(np.uint8)
    Image.fromarray(grey).save(file, format="png", optimize=True)


def main() -> int:
    """Reconstruct by each way, compare, tell."""
    asked = arguments()
    comm = MPI.COMM_WORLD
    geometry = Geometry(asked.cells, asked.angles, asked.tile)
    job = job_of(comm)
    order, high = tile_order(asked.order, ranks_a_host(job))
    row, column = geometry.cells_of(positions(comm)[comm.rank], comm.size, high)
    touched, matrix = geometry.matrix(row, column)
    truth = OBJECTS[asked.object](asked.cells, asked.slices)
    mine = truth[row, column]
    problems: dict[str, Problem] = {}
    figures: dict[str, Any] = {
        "ranks": comm.size,
        "order": order,
        **{k: v for k, v in vars(asked).items() if k in NUMBERS},
    }
    results: dict[str, Array] = {}
    for way in asked.by.split(","):
        began = time.perf_counter()
        exchange = exchange_by(way, comm, geometry, touched, asked)
        own = in_rows_of(exchange, touched, matrix)
        problem = problems[way] = Problem(comm, geometry, exchange, own, csr_array(own.T), asked.parts)
        planned = comm.allreduce(time.perf_counter() - began, MPI.MAX)
        # What is measured is the projection itself: no noise, and the same matrix.
        b = problem.forward(mine)
        wrong = adjoint_error(problem, len(row), asked.slices)
        problem.seconds.update(projecting=0.0, exchanging=0.0)
        found, residuals = SOLVERS[asked.method](problem, b, len(row), asked.iterations)
        results[way] = found
        error = problem.norm_of_cells(found - mine) / problem.norm_of_cells(mine)
        seconds = {what: comm.allreduce(value, MPI.MAX) for what, value in problem.seconds.items()}
        volumes = exchange.volumes(job)
        figures[way] = {"residuals": residuals, "error": error, "adjoint": wrong, "planned_s": planned, **seconds}
        figures[way]["volumes"] = volumes
        if comm.rank == 0:
            spent = ", ".join(f"{what} {value:.2f} s" for what, value in {"planned in": planned, **seconds}.items())
            print(
                f"{way:10} residual {residuals[-1]:.2e}, error {error:.2e}, adjoint to {wrong:.0e}; {spent}", flush=True
            )
            print(crossing(way, volumes or {}), flush=True)
    first = next(iter(results.values()))
    apart = max(problem.norm_of_cells(found - first) for found in results.values()) / problem.norm_of_cells(first)
    figures["apart"] = apart
    if comm.rank == 0 and len(results) > 1:
        print(f"the ways differ by {apart:.1e} of the volume's norm")
    if asked.measure:
        figures["measured"] = measured(problems, asked.measure, asked.slices)
        if comm.rank == 0:
            for way, times in figures["measured"].items():
                print(f"{way:10} " + ", ".join(f"{what} {np.median(s) * 1e3:.1f} ms" for what, s in times.items()))
    gathered = comm.gather((row, column, found))
    if comm.rank == 0:
        if asked.picture:
            whole = np.zeros_like(truth)
            for rows, columns, values in gathered or ():
                whole[rows, columns] = values
            picture(asked.picture, truth, whole)
        if asked.json:
            asked.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0 if apart < 1e-5 else 1


NUMBERS = ("object", "cells", "angles", "slices", "parts", "method", "iterations", "tile", "factoring")

if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ComposeError, _core.Error) as error:
        sys.exit(f"reconstruct.py: {error}")
