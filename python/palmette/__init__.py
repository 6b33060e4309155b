"""Topology-aware collective communication under unmodified MPI programs.

The package holds the command line, discovery from files and tools, recordings and their analysis, and the benchmark;
what most scripts need has a name here: `palmette.Trace`, `palmette.region`, `palmette.SparseSum`,
`palmette.load_topology`. Plans, topologies and algorithms are in the C++ core, reached through `palmette._core`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palmette.analysis import Trace
    from palmette.compose.sparse import SparseSum
    from palmette.regions import region
    from palmette.topology.file import load as load_topology

__all__ = ["SparseSum", "Trace", "load_topology", "region"]

_NAMES = {
    "Trace": ("palmette.analysis", "Trace"),
    "SparseSum": ("palmette.compose.sparse", "SparseSum"),
    "load_topology": ("palmette.topology.file", "load"),
    "region": ("palmette.regions", "region"),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and no more: the command line starts programs in a few milliseconds."""
    if name == "__version__":
        from importlib.metadata import version

        return version("palmette")
    if name not in _NAMES:
        raise AttributeError(f"module 'palmette' has no attribute '{name}'")
    from importlib import import_module

    module, attribute = _NAMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
