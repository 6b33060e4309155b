"""Rivals: an MPI with settings of its own, measured alongside the others in jobs without palmette."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from palmette import _core
from palmette.export.coordinates import coordinates_text
from palmette.export.mpich_coordinates import TREES, trees
from palmette.measure.errors import BenchError
from palmette.mpi import install as mpi_install


@dataclass(frozen=True)
class Rival:
    """`env` is set in the ranks. `coordinates`: they also get MPICH's coordinates file of their placement.
    `collectives`: those that differ from the MPI's own; empty: all.
    """

    name: str
    mpi: str
    env: dict[str, str] = field(default_factory=dict)
    coordinates: bool = False
    collectives: tuple[str, ...] = ()

    def environment(self, topology: Path | None, hosts: Sequence[str], folder: Path) -> dict[str, str]:
        """Return the variables of a job with ranks on `hosts`; files are written to `folder`.

        Raises BenchError where coordinates are wanted and there is no topology, and _core.Error.
        """
        if not self.coordinates:
            return dict(self.env)
        if topology is None:
            raise BenchError(f"the rival {self.name} needs a topology; give --lab, or leave the rival out")
        job = _core.Job.on_hosts(_core.Machine.from_file(topology), list(hosts))
        path = folder / "coordinates.txt"
        path.write_text(coordinates_text(job), encoding="utf-8")
        return {**self.env, "MPIR_CVAR_COORDINATES_FILE": str(path)}


PRESETS = {
    rival.name: rival
    for rival in (
        # The only MPI with switch-aware trees, which need the coordinates of ranks. Sums commute.
        Rival("mpich-topology", "mpich", trees(commutative=True), coordinates=True, collectives=tuple(TREES)),
    )
}


def parse_rival(text: str) -> Rival:
    """Return a rival: the name of a preset, or `NAME:MPI[:K=V,...]`. Raises BenchError."""
    if text in PRESETS:
        return PRESETS[text]
    name, colon, rest = text.partition(":")
    mpi, _, settings = rest.partition(":")
    if not name or not colon or mpi not in mpi_install.NAMES:
        raise BenchError(
            f"rival '{text}' is neither {', '.join(PRESETS)} nor NAME:MPI[:K=V,...] with an MPI of"
            f" {', '.join(mpi_install.NAMES)}"
        )
    if name in mpi_install.NAMES:
        raise BenchError(f"a rival can't be called '{name}', which is an MPI; choose another name")
    env = {}
    for word in filter(None, settings.split(",")):
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise BenchError(f"rival '{text}': '{word}' is not K=V")
        env[key] = value
    return Rival(name, mpi, env)
