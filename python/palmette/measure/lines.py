"""A launcher's line of the user's own, without a program: `mpiexec -n 64 -hosts ...`, `srun -N 8`.

What every measuring command does with the line behind its `--`: the MPI is found from the launcher, a program of
palmette's stands where the user's would, and ranks are where the launcher puts them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.measure.errors import BenchError
from palmette.measure.job_output import Output, error_line, read_into
from palmette.measure.running import TIMED_OUT, run_to_end
from palmette.measure.session import mpi_name
from palmette.mpi.abi import ABIS, SONAMES, STARTS_ALL, Abi, abi_of_launcher, measuring_program
from palmette.mpi.errors import RunError
from palmette.mpi.install import Installation, find_all
from palmette.mpi.launch import LauncherKind, identify, with_variables
from palmette.run.command_line import CommandLine, read_command_line
from palmette.run.launcher_options import LauncherOptions
from palmette.run.preload import NAME as LD_PRELOAD
from palmette.run.preload import with_preload
from palmette.run.rewrite import Amendments, rewrite
from palmette.units import plural

AS_LAUNCHED = "as launched"
"""The placement of ranks that a launcher's line has put somewhere."""
PROBE = "patternbench"
"""Program that tells where its ranks are, and ends, if it is given no pattern."""
PROBE_S = 300.0
"""Time limit of PROBE, which allows for a launcher that waits for nodes."""


@dataclass(frozen=True)
class Line:
    """The words of the line, what its launcher is and where, and the ABI of the programs that it starts."""

    words: tuple[str, ...]
    kind: LauncherKind
    launcher: Path
    abi: Abi

    @classmethod
    def read(cls, words: Sequence[str], abi: str | None = None) -> Line:
        """Return the line; `abi` where the launcher doesn't say it. Raises BenchError."""
        path = shutil.which(words[0])
        found = identify(Path(path)) if path is not None else None
        if path is None or found is None:
            raise BenchError(
                f"{words[0]}: {'no such program' if path is None else 'no launcher that palmette knows'}; give the line"
                " that starts your jobs, without the program: -- mpiexec -n 64"
            )
        chosen = next((known for known in ABIS if known == abi), None) or abi_of_launcher(found.kind)
        if chosen is None:
            raise BenchError(f"{words[0]} starts programs of any MPI; say which with --abi mpich, ompi or abi")
        line = cls(tuple(words), found.kind, Path(path), chosen)
        ours = "palmette"  # never started: its place in the line says whether a program stands there already
        read = line._read([ours])
        if len(read.parts) != 1 or read.parts[0].program != ours:
            raise BenchError(
                f"the line names the program {read.parts[0].program}; leave it out: a program of palmette's stands in"
                " its place"
            )
        return line

    def _read(self, argv: Sequence[str]) -> CommandLine:
        try:
            options = LauncherOptions(self.kind, self.launcher, os.environ)
            return read_command_line(self.kind, [*self.words, *argv], options)
        except RunError as error:
            raise BenchError(str(error)) from None

    @property
    def text(self) -> str:
        """The line as it was written."""
        return " ".join(self.words)

    def program(self, name: str) -> str:
        """Return palmette's program of that name for the line's MPI. Raises BenchError when it isn't built."""
        return str(measuring_program(name, self.abi, BenchError))

    def libraries(self) -> dict[str, str]:
        """Return LD_LIBRARY_PATH with the launcher's own MPI; empty where the loader finds it by itself.

        Users' programs find theirs by the RPATH that their compiler sets; palmette's have none.
        """
        known = [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))]
        prefix = self.launcher.resolve().parent.parent
        for folder in (prefix / "lib", prefix / "lib64"):
            if (folder / SONAMES[self.abi]).exists() and prefix != Path("/usr"):
                return {"LD_LIBRARY_PATH": ":".join(dict.fromkeys([str(folder), *known]))}
        if self.kind in STARTS_ALL:  # it brings none: that of a module comes first, then one that is installed
            places = [one.library_dir for one in find_all() if one.abi == self.abi and one.library_dir is not None]
            return {"LD_LIBRARY_PATH": ":".join([*known, str(places[0])])} if places else {}
        return {}

    def command(self, argv: Sequence[str], variables: Mapping[str, str] | None = None) -> list[str]:
        """Return the command line that runs `argv` with `variables` in the ranks; an LD_PRELOAD among these adds to
        what is preloaded already. Raises BenchError.
        """
        # What files say to every job isn't measured, as on other places.
        given = {"PALMETTE_SITE": "0", **self.libraries(), **(variables or {})}
        preloads = [Path(word) for word in given.pop(LD_PRELOAD, "").split(":") if word]
        amended: Amendments = {LD_PRELOAD: partial(with_preload, preloads)} if preloads else {}
        words, extra = rewrite(self._read(argv), given, amended, os.environ)
        return with_variables(extra, words) if extra else list(words)


class LinePlace:
    """Ranks where a launcher's line puts them: a place of `palmette bench` on a real cluster."""

    links = None

    def __init__(self, words: Sequence[str], topology: Path | None = None, abi: str | None = None) -> None:
        self.line = Line.read(words, abi)
        self._said_abi = abi
        self.topology_path = topology.absolute() if topology is not None else None
        self._topology_as_given = topology

    @cached_property
    def _found(self) -> Output:
        """Where the ranks of a first job are, and its MPI."""
        with tempfile.TemporaryDirectory(prefix="palmette-place-", dir=self.folder) as folder:
            path = Path(folder) / "job.jsonl"
            command = self.line.command([self.line.program(PROBE), "--output", str(path)])
            done = run_to_end(command, timeout_s=PROBE_S, capture=True)
            output = read_into(Output(), path, PROBE, BenchError)
        if done.returncode == TIMED_OUT:
            raise BenchError(f"{self.line.text}: no end of a first short job within {PROBE_S:.0f} s; try it by hand")
        if done.returncode != 0 or not output.hosts:
            raise BenchError(
                f"{self.line.text}: a first short job ended with status {done.returncode}: {error_line(done)}"
            )
        return output

    @cached_property
    def hosts(self) -> list[str]:
        """The host of each rank, by the topology's name where there is one."""
        hosts = self._found.hosts
        if self.topology_path is None:
            return hosts
        return list(_core.Job.on_hosts(_core.Machine.from_file(self.topology_path), hosts).hosts)

    @cached_property
    def mpi(self) -> Installation:
        """The MPI that the line starts, by what its ranks say."""
        words = mpi_name(self._found.mpi_version)
        by_abi = {"ompi": "openmpi"}.get(self.line.abi, "mpich")
        name = next((one for sign, one in _NAMES if words.startswith(sign)), by_abi)
        prefix = self.line.launcher.resolve().parent.parent
        version = words.rpartition(" ")[2]
        return Installation(name, prefix, self.line.launcher, None, version, stated_abi=self.line.abi)

    @property
    def folder(self) -> Path:
        """Real clusters see the working directory on all hosts, or at least on that of rank 0."""
        return Path.cwd()

    @property
    def clock(self) -> str:
        """Ranks of several hosts have no common clock."""
        return "shared" if len(set(self.hosts)) == 1 else "barrier"

    @property
    def spins(self) -> bool:
        """Whether there is a core for each rank; jobs on several hosts are taken to have them."""
        return len(set(self.hosts)) > 1 or len(self.hosts) <= len(os.sched_getaffinity(0))

    @property
    def description(self) -> str:
        """The line, and what it has started."""
        return f"{self.line.text}: {plural(len(self.hosts), 'rank')} on {plural(len(set(self.hosts)), 'host')}"

    @property
    def options(self) -> list[str]:
        """Options that name the place; the line comes last."""
        given = ["--topology", str(self._topology_as_given)] if self._topology_as_given is not None else []
        return [*given, *(["--abi", self._said_abi] if self._said_abi else []), "--", *self.line.words]

    def place(self, placement: str, ppn: int | None, ranks: int | None) -> list[str]:
        """Return the host of each rank, as the launcher has chosen them. Raises BenchError."""
        return self.hosts

    def command(
        self, mpi: Installation, hosts: Sequence[str], argv: Sequence[str], env: Mapping[str, str]
    ) -> list[str]:
        """Return the command line that runs `argv` under the line. Raises BenchError."""
        return self.line.command(argv, env)

    def run(
        self, mpi: Installation, hosts: Sequence[str], argv: Sequence[str], env: Mapping[str, str], timeout_s: float,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run `argv` under the line. Raises BenchError."""
        return run_to_end(self.line.command(argv, env), timeout_s=timeout_s, capture=True, stdin=stdin)

    def unlimited(self) -> Any:
        """Raise BenchError: nobody takes the rates off a real network."""
        raise BenchError("--floor needs a lab, whose link rates can be taken off; leave it out behind a launcher")


_NAMES = (("Intel", "impi"), ("Open MPI", "openmpi"), ("MPICH", "mpich"))
