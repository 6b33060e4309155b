"""The lab, an emulated cluster: real MPI over real TCP between network namespaces, with shaped link rates.

    with Lab.up("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core") as lab:
        lab.run(["./app"], mpi="mpich", placement="random:1")

`docs/guide/lab.md` describes its construction and the validity of its times.
"""

from __future__ import annotations

from palmette_lab.lab.errors import LabError
from palmette_lab.lab.lab import Lab

__all__ = ["Lab", "LabError"]
