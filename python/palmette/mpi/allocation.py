"""The batch job that this process is in, by what its scheduler sets: Slurm, PBS, LSF, Flux and Cobalt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Allocation:
    """A job: its scheduler, its number, and the hosts with their places for ranks, in the scheduler's order.

    `slots` is empty where the environment tells how many hosts there are and not which. `problem`: why nothing of the
    hosts is known.
    """

    scheduler: str
    job: str
    slots: tuple[tuple[str, int], ...] = ()
    host_count: int = 0
    problem: str = ""

    @property
    def sentence(self) -> str:
        """The job in one sentence."""
        text = f"in job {self.job} of {self.scheduler}"
        if self.problem:
            return f"{text}: {self.problem}"
        if not self.host_count:
            return text
        text += f", {self.host_count} host{'s' if self.host_count != 1 else ''}"
        places = {count for _, count in self.slots}
        if len(places) == 1:
            return f"{text} of {places.pop()} ranks"
        return text + (f" of {min(places)} to {max(places)} ranks" if places else "")


def allocation(environment: Mapping[str, str]) -> Allocation | None:
    """Return the job that `environment` is of, by the variables that each scheduler's manual names; None: of none."""
    for name, variable, read in _SCHEDULERS:
        if job := environment.get(variable):
            try:
                slots, count = read(environment)
            except (OSError, ValueError) as error:
                return Allocation(name, job, problem=str(error))
            return Allocation(name, job, tuple(slots), count)
    return None


_Found = tuple[list[tuple[str, int]], int]


def _pbs(environment: Mapping[str, str]) -> _Found:
    """PBS_NODEFILE: a line a rank (PBS Professional, OpenPBS, Torque)."""
    return _counted(_lines("PBS_NODEFILE", environment.get("PBS_NODEFILE", "")))


def _lsf(environment: Mapping[str, str]) -> _Found:
    """LSB_MCPU_HOSTS: `host1 4 host2 4`; else LSB_DJOB_HOSTFILE: a line a slot."""
    words = environment.get("LSB_MCPU_HOSTS", "").split()
    if not words:
        return _counted(_lines("LSB_DJOB_HOSTFILE", environment.get("LSB_DJOB_HOSTFILE", "")))
    if len(words) % 2 or not all(word.isdigit() for word in words[1::2]):
        raise ValueError(f"LSB_MCPU_HOSTS has no number behind each host: {' '.join(words)[:60]}")
    slots = list(zip(words[::2], map(int, words[1::2]), strict=True))
    return slots, len(slots)


def _slurm(environment: Mapping[str, str]) -> _Found:
    """SLURM_JOB_NUM_NODES: the hosts themselves are in an abbreviated list, which `palmette discover` reads."""
    return [], _number(environment, "SLURM_JOB_NUM_NODES", "SLURM_NNODES")


def _flux(environment: Mapping[str, str]) -> _Found:
    """FLUX_JOB_NNODES: in tasks; the initial program of an instance asks `flux hostlist local`."""
    return [], _number(environment, "FLUX_JOB_NNODES")


def _cobalt(environment: Mapping[str, str]) -> _Found:
    """COBALT_NODEFILE: a line a host."""
    return _counted(_lines("COBALT_NODEFILE", environment.get("COBALT_NODEFILE", "")))


def _number(environment: Mapping[str, str], *names: str) -> int:
    text = next((environment[name] for name in names if environment.get(name)), "0")
    if not text.isdigit():
        raise ValueError(f"{names[0]}={text[:40]} is no number of hosts")
    return int(text)


def _lines(variable: str, path: str) -> list[str]:
    if not path:
        raise ValueError(f"{variable} isn't set, so that its hosts aren't known")
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ValueError(f"{variable}={path}: {error.strerror}") from None
    return [word for line in text.splitlines() if (word := line.strip())]


def _counted(hosts: list[str]) -> _Found:
    counts: dict[str, int] = {}
    for host in hosts:
        counts[host] = counts.get(host, 0) + 1
    return list(counts.items()), len(counts)


_SCHEDULERS = (
    ("Flux", "FLUX_JOB_ID", _flux),
    ("Slurm", "SLURM_JOB_ID", _slurm),
    ("PBS", "PBS_JOBID", _pbs),
    ("LSF", "LSB_JOBID", _lsf),
    ("Cobalt", "COBALT_JOBID", _cobalt),
)
"""Name, the variable that tells of it, and what reads its hosts; Flux first, which runs in others' jobs."""
