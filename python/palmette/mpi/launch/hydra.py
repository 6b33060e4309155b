"""Hydra, the launcher of MPICH and MVAPICH."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palmette.mpi.launch.job import Job


class Hydra:
    """hydra: `-hosts` and `-rankmap` place the ranks, `-genv` sets a variable in all of them."""

    def command(self, program: Path, job: Job) -> list[str]:
        """Return the command line; -rankmap takes the index of each rank's host (MPICH 4.1 or newer)."""
        index = {host: i for i, host in enumerate(job.hosts)}
        agent = ["-launcher", "ssh", "-launcher-exec", str(job.agent)] if job.agent else []
        return [
            str(program),
            *agent,
            *("-hosts", ",".join(job.hosts)),
            *("-rankmap", ",".join(str(index[host]) for host in job.hosts_of_ranks)),
            *self.pass_environment(job.environment),
            *("-n", str(len(job.hosts_of_ranks))),
            *job.options,
            *job.argv,
        ]

    def environment(self, job: Job) -> dict[str, str]:
        """Return nothing: hydra needs no variables."""
        return {}

    def pass_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Return one -genv per variable."""
        return [word for name, value in variables.items() for word in ("-genv", name, value)]
