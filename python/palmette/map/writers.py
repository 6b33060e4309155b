"""A rank order in the forms that launchers read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from palmette import _core
from palmette.export.coordinates import coordinates_text
from palmette.files import read_text
from palmette.map.errors import MapError


@dataclass(frozen=True)
class Writer:
    """A form of file."""

    sentence: str
    usage: str
    """How the file is used; {file} stands for its name, {ranks} for the number of ranks."""
    text: Callable[[_core.Job, list[int]], str]
    first: str
    """What the first line looks like, as a regular expression: a file of another form is no earlier order."""


def hosts_in_order(job: _core.Job, order: Sequence[int]) -> list[str]:
    """Return the host of each rank."""
    return [job.host_of(place) for place in order]


def _host_list(job: _core.Job, order: list[int]) -> str:
    return "".join(f"{host}\n" for host in hosts_in_order(job, order))


def _hydra(job: _core.Job, order: list[int]) -> str:
    """Return options, for hydra's host file can't give a host ranks that aren't neighbours."""
    hosts = hosts_in_order(job, order)
    index = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    return f"-hosts {','.join(index)} -rankmap {','.join(str(index[host]) for host in hosts)}\n"


_A_HOST = r"\S+$"


def _rankfile(job: _core.Job, order: list[int]) -> str:
    """Return `rank R=HOST slot=S`; S counts the places of a host in topology order."""
    nodes = job.level("node")
    assert nodes is not None
    lines = []
    for rank, place in enumerate(order):
        position = job.position_of(place)
        slot = position - nodes.first(nodes.group_of(position))
        lines.append(f"rank {rank}={job.host_of(place)} slot={slot}\n")
    return "".join(lines)


WRITERS = {
    "hydra": Writer("MPICH's hydra: hosts and rank map", "mpiexec $(cat {file}) -n {ranks} ./app", _hydra, "-hosts "),
    "intel": Writer(
        "Intel MPI's hydra: machine file", "mpiexec -machinefile {file} -n {ranks} ./app", _host_list, _A_HOST
    ),
    "rankfile": Writer(
        "Open MPI, PRRTE: a host and a core for each rank",
        "mpirun --map-by rankfile:file={file} -n {ranks} ./app",
        _rankfile,
        r"rank \d+=",
    ),
    "seq": Writer(
        "Open MPI, PRRTE: a host for each rank, no core",
        "mpirun --hostfile {file} --map-by seq -n {ranks} ./app",
        _host_list,
        _A_HOST,
    ),
    "slurm": Writer(
        "Slurm: host file of the arbitrary distribution",
        "SLURM_HOSTFILE={file} srun --distribution=arbitrary -n {ranks} ./app",
        _host_list,
        _A_HOST,
    ),
    "coordinates": Writer(
        "MPICH's topology-aware trees, with the new order",
        # MPICH identifies ranks by number here: they must be placed in this order, and its trees be enabled.
        "palmette map ... --write hydra=HOSTS --write coordinates={file}\n"
        "  mpiexec $(cat HOSTS) -genv MPIR_CVAR_COORDINATES_FILE {file} -n {ranks} ./app\n"
        "  (and the MPIR_CVAR_ variables of MPICH's trees, which `palmette export --format mpich-coordinates` lists)",
        coordinates_text,
        "# rank: group switch port",
    ),
}
"""Name -> form."""


def check_replaces(kind: str, path: str | Path) -> None:
    """Raise MapError where a file is there that isn't one of this kind, which writing would replace."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError):  # none, or whoever writes it says what hinders
        return
    first = next((line.strip() for line in lines if line.strip()), "")
    if first and not re.match(WRITERS[kind].first, first):
        raise MapError(
            f"--write {kind}={path}: that file is there, and is none of this kind ('{first[:40]}'); give another name"
        )
