"""Slurm's launcher, inside an allocation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palmette.mpi.launch.job import Job


class Srun:
    """srun: `--distribution=arbitrary` follows SLURM_HOSTFILE; `--export` sets variables in the tasks."""

    def command(self, program: Path, job: Job) -> list[str]:
        """Return the command line. Raises LaunchError for an agent: srun starts its tasks by itself."""
        if job.agent is not None:
            from palmette.mpi.launch.job import LaunchError

            raise LaunchError("srun starts its tasks through Slurm's daemons and takes no replacement for ssh")
        return [
            str(program),
            "--distribution=arbitrary",
            f"--nodes={len(job.hosts)}",
            f"--ntasks={len(job.hosts_of_ranks)}",
            *self.pass_environment(job.environment),
            *job.options,
            *job.argv,
        ]

    def environment(self, job: Job) -> dict[str, str]:
        """Write the host file and return the variable that names it."""
        return {"SLURM_HOSTFILE": str(job.host_file())}

    def pass_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Return one --export. Raises LaunchError for a value with a comma, at which srun starts the next variable."""
        for name, value in variables.items():
            if "," in value:
                from palmette.mpi.launch.job import LaunchError

                raise LaunchError(f"srun can't pass {name}={value}, because of the comma; export it before the call")
        if not variables:
            return []
        return ["--export=ALL," + ",".join(f"{name}={value}" for name, value in variables.items())]
