"""The emulated cluster: real MPI over real TCP between network namespaces, at given link rates.

    with Lab.up("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core") as lab:
        lab.run(["./app"], mpi="mpich", placement="random:1")

`docs/guide/lab.md` says how it is built and how far its times can be trusted.
"""

from __future__ import annotations

from palmette.lab.errors import LabError
from palmette.lab.lab import Lab

__all__ = ["Lab", "LabError"]
