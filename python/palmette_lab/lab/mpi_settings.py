"""Settings of each MPI on a lab: the network to use, and yielding while it waits.

A lab is oversubscribed: many ranks on few cores. With an MPI that polls without yielding, times are those of the
scheduler and not of the network: a barrier of 16 ranks on 2 cores takes 10 to 200 times longer. The user's settings
have precedence over all of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from palmette.mpi.install import Installation
from palmette_lab.lab.helpers import helper
from palmette_lab.lab.network import NETWORK


@dataclass(frozen=True)
class MpiSettings:
    """Variables of the ranks, variables of the launcher, and options of the launcher."""

    ranks: dict[str, str]
    launcher: dict[str, str]
    options: list[str]


def lab_settings(mpi: Installation, user: Mapping[str, str]) -> MpiSettings:
    """Return the settings for `mpi`; the user's variables for the ranks override them."""
    libraries = mpi.environment()
    ranks = {**libraries, **_RANKS[mpi.name], **user}
    if mpi.name == "openmpi":
        # The user's preloads come first, so that their symbols keep precedence.
        preloads = [*filter(None, user.get("LD_PRELOAD", "").split(":")), str(helper("libpalmette_yield_sleep.so"))]
        ranks["LD_PRELOAD"] = ":".join(preloads)
    return MpiSettings(ranks, {**libraries, **_LAUNCHER[mpi.name]}, _OPTIONS[mpi.name])


_POSIX_COLLECTIVES = ("BARRIER", "BCAST", "REDUCE", "ALLREDUCE")

_RANKS: dict[str, dict[str, str]] = {
    "mpich": {
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "eth0",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
        "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
        # Collectives in shared memory spin without yielding.
        **{f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "mpir" for name in _POSIX_COLLECTIVES},
    },
    "impi": {
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "eth0",
        "I_MPI_FABRICS": "shm:ofi",
        "I_MPI_PIN": "0",
        "I_MPI_WAIT_MODE": "1",
    },
    "openmpi": {
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "self,sm,tcp",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
    },
}

_LAUNCHER: dict[str, dict[str, str]] = {
    "mpich": {},
    "impi": {"I_MPI_HYDRA_BRANCH_COUNT": "-1", "I_MPI_PIN": "0"},
    "openmpi": {},
}

_OPTIONS: dict[str, list[str]] = {
    "mpich": [],
    "impi": [],
    # PRRTE sets the variable of mpi_yield_when_idle itself, by the number of cores that it detects; the option wins.
    "openmpi": ["--mca", "mpi_yield_when_idle", "1", "--prtemca", "prte_if_include", NETWORK],
}
