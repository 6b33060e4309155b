"""Topology-aware collective communication under unmodified MPI programs.

The package holds the command line, discovery from files and tools, the emulated cluster, the benchmark and the report.
Plans, topologies and algorithms are in the C++ core, reached through `palmette._core`.
"""

from importlib.metadata import version

__version__: str = version("palmette")
