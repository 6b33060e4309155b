"""Flux's launcher, inside an instance of Flux: `flux run` (flux-core's flux-run(1))."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palmette.mpi.launch.job import Job

STARTS = ("run", "submit")
"""Flux's commands that start a program's tasks."""


class Flux:
    """flux run: `--taskmap=hostfile:` follows a file of hosts; `--env` sets variables in the tasks."""

    def command(self, program: Path, job: Job) -> list[str]:
        """Return the command line. Raises LaunchError for an agent: Flux starts tasks by its own brokers."""
        if job.agent is not None:
            from palmette.mpi.launch.job import LaunchError

            raise LaunchError("flux starts its tasks through its brokers and takes no replacement for ssh")
        return [
            str(program),
            "run",
            f"--nodes={len(job.hosts)}",
            f"--ntasks={len(job.hosts_of_ranks)}",
            f"--requires=hosts:{','.join(job.hosts)}",
            f"--taskmap=hostfile:{job.host_file()}",
            *self.pass_environment(job.environment),
            *job.options,
            *job.argv,
        ]

    def environment(self, job: Job) -> dict[str, str]:
        """Return nothing: options say all."""
        return {}

    def pass_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Return one --env for each; a `$` of a value begins a substitution there, unless it is doubled."""
        return [f"--env={name}={value.replace('$', '$$')}" for name, value in variables.items()]
