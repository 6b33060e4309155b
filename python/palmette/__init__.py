"""Topology-aware collective communication under unmodified MPI programs.

The package holds the command line, discovery from files and tools, the emulated cluster, the benchmark and the report.
Plans, topologies and algorithms are in the C++ core, reached through `palmette._core`.
"""

from __future__ import annotations


def __getattr__(name: str) -> str:
    """Return `__version__`, which few ask for: looking it up takes longer than starting a program under palmette."""
    if name != "__version__":
        raise AttributeError(f"module 'palmette' has no attribute '{name}'")
    from importlib.metadata import version

    return version("palmette")
