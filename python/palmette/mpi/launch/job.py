"""A job to launch, and the interface of launchers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class LaunchError(ValueError):
    """A launcher can't express what a job asks for; the message says what and why."""


def with_variables(variables: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """Return a command line that runs `command` with `variables`, by env(1). Raises LaunchError where there is none."""
    # PATH may name nothing but what somebody needs; the system's folders have it all the same.
    program = shutil.which("env", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin")
    if program is None:
        raise LaunchError("no program `env` in PATH or /usr/bin, by which variables are set; correct PATH")
    return [program, *(f"{name}={value}" for name, value in variables.items()), *command]


@dataclass(frozen=True)
class Job:
    """A program and where its ranks go.

    `hosts_of_ranks` names the host of rank 0, 1, ...; `environment` is for the ranks alone; `agent` is a program to use
    in place of ssh; `options` are passed to the launcher as they are; host files are written to `directory`.
    """

    argv: Sequence[str]
    hosts_of_ranks: Sequence[str]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    agent: Path | None = None
    options: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.argv:
            raise LaunchError("no program to run")
        if not self.hosts_of_ranks:
            raise LaunchError("a job needs at least one rank")

    @property
    def hosts(self) -> list[str]:
        """The hosts in order of their first rank."""
        return list(dict.fromkeys(self.hosts_of_ranks))

    def host_file(self) -> Path:
        """Write a file with the host of each rank, one a line, and return its path.

        The name is a hash of the contents, so that equal jobs share a file and concurrent ones don't collide.
        """
        # Starting a user's own command line needs none of them.
        import hashlib
        import tempfile

        text = "".join(f"{host}\n" for host in self.hosts_of_ranks)
        path = self.directory / f"hosts-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self.directory.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.directory)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
        return path


class Launcher(Protocol):
    """One kind of launcher."""

    def command(self, program: Path, job: Job) -> list[str]:
        """Return the command line that starts `job` by the launcher at `program`."""
        ...

    def environment(self, job: Job) -> dict[str, str]:
        """Return the variables that the launcher itself needs for `job`."""
        ...

    def pass_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Return options that set `variables` in the ranks, but not in the launcher or its daemons.

        They go right after the launcher's name. Raises LaunchError for a value that the launcher can't carry.
        """
        ...
