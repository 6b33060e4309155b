"""Open MPI's launcher: PRRTE since version 5."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palmette.mpi.launch.job import Job


class Prrte:
    """PRRTE: a host file read in sequence by `--map-by seq`; `-x` sets a variable in all ranks."""

    def command(self, program: Path, job: Job) -> list[str]:
        """Return the command line; writes the host file."""
        agent: list[str] = []
        if job.agent:
            # Daemons stay children of the agent, which controls them, and only the first one starts others.
            agent = ["--prtemca", "plm_ssh_agent", str(job.agent), "--prtemca", "plm_ssh_no_tree_spawn", "1"]
            agent += ["--leave-session-attached"]
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [
            str(program),
            *root,
            *agent,
            *("--hostfile", str(job.host_file()), "--map-by", "seq", "--bind-to", "none"),
            *self.pass_environment(job.environment),
            *("-n", str(len(job.hosts_of_ranks))),
            *job.options,
            *job.argv,
        ]

    def environment(self, job: Job) -> dict[str, str]:
        """Return nothing: PRRTE needs no variables."""
        return {}

    def pass_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Return one -x per variable."""
        return [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
