"""Intel MPI's launcher: a hydra with other ways to place ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palmette.mpi.launch.job import Job


class IntelHydra:
    """Intel's hydra: a machine file with one line per rank; `-genv` as in MPICH's."""

    def command(self, program: Path, job: Job) -> list[str]:
        """Return the command line; writes the machine file."""
        agent = ["-bootstrap", "ssh", "-bootstrap-exec", str(job.agent)] if job.agent else []
        return [
            str(program),
            *agent,
            *("-machinefile", str(job.host_file())),
            *self.pass_environment(job.environment),
            *("-n", str(len(job.hosts_of_ranks))),
            *job.options,
            *job.argv,
        ]

    def environment(self, job: Job) -> dict[str, str]:
        """Return the setting that keeps hydra on the machine file inside a batch job."""
        return {"I_MPI_HYDRA_RMK": "user"} if job.agent else {}

    def pass_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Return one -genv per variable."""
        return [word for name, value in variables.items() for word in ("-genv", name, value)]
