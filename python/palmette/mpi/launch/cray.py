"""Cray's launchers: aprun of ALPS (aprun(1)), and mpiexec of PALS (HPE's mpiexec(1))."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palmette.mpi.launch.job import Job


class Cray:
    """Ranks in blocks of one size on a list of hosts; `-e` or `--env` sets variables in the ranks."""

    def __init__(self, kind: str) -> None:
        self._alps = kind == "aprun"

    def command(self, program: Path, job: Job) -> list[str]:
        """Return the command line. Raises LaunchError for an agent, and where hosts don't get equal blocks of ranks."""
        from palmette.mpi.launch.job import LaunchError

        if job.agent is not None:
            raise LaunchError(f"{program.name} starts its ranks by its own daemons and takes no replacement for ssh")
        each, left = divmod(len(job.hosts_of_ranks), len(job.hosts))
        if left or list(job.hosts_of_ranks) != [host for host in job.hosts for _ in range(each)]:
            raise LaunchError(
                f"{program.name} puts ranks in equal blocks on its hosts; ask for that placement, or give an order by "
                "MPICH_RANK_REORDER_METHOD=3 (palmette map writes the file)"
            )
        where = ["-N", str(each), "-L"] if self._alps else ["--ppn", str(each), "--hosts"]
        return [
            str(program), "-n", str(len(job.hosts_of_ranks)), *where, ",".join(job.hosts),
            *self.pass_environment(job.environment), *job.options, *job.argv,
        ]  # fmt: skip

    def environment(self, job: Job) -> dict[str, str]:
        """Return nothing: options say all."""
        return {}

    def pass_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Return an option and NAME=VALUE for each."""
        option = "-e" if self._alps else "--env"
        return [word for name, value in variables.items() for word in (option, f"{name}={value}")]
