"""The jobs of a benchmark: their order, and the cells that each has yet to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from palmette.bench.results import LOADED, Kind, Run
from palmette.bench.rivals import Rival
from palmette.bench.settings import Settings
from palmette.bench.variants import Variant
from palmette.measure.errors import BenchError
from palmette.mpi import install as mpi_install
from palmette.mpi.install import Installation

CellName = tuple[str, int]
"""Collective and size."""


@dataclass(frozen=True)
class BenchJob:
    """A job to run. `cells`: these only; None: all of the settings. `limit_s`: time limit of a cell."""

    mpi: Installation
    placement: str
    repeat: int
    kind: Kind
    rival: Rival | None = None
    loaded: bool = False
    cells: tuple[CellName, ...] | None = None
    limit_s: float | None = None
    variant: Variant | None = None

    @property
    def name(self) -> str:
        """The MPI's name, with the variant's behind it, or the rival's."""
        if self.variant:
            return f"{self.mpi.name}/{self.variant.name}"
        return self.rival.name if self.rival else self.mpi.name

    @property
    def where(self) -> str:
        """As Job.where."""
        return self.placement + (LOADED if self.loaded else "")

    @property
    def label(self) -> str:
        """A few words for the progress display."""
        what = f"{self.name} {self.where}" + (f" #{self.repeat + 1}" if self.repeat else "")
        kinds = {"floor": ", rates off", "pass_through": ", calls passed through", "measure": "", "rival": ""}
        return what + kinds[self.kind]


def plan_jobs(settings: Settings, brought: Installation | None = None) -> list[BenchJob]:
    """Return the jobs in order of execution: repetitions outermost, so that drift affects all MPIs alike; a loaded job
    follows its quiet one. `brought`: the MPI of the place, where others can't be chosen.

    Raises MpiNotFoundError, BenchError.
    """
    found = [brought or mpi_install.find(name) for name in settings.mpis]
    for rival in settings.rivals:
        if brought is not None and rival.mpi != brought.name:
            raise BenchError(f"the rival {rival.name} needs {rival.mpi}, and the launcher starts {brought.name}")
    rivals = [(rival, brought or mpi_install.find(rival.mpi)) for rival in settings.rivals]
    kinds: tuple[Kind, ...] = ("floor", "measure") if settings.floor else ("measure",)
    states = (False, True) if settings.traffic else (False,)
    jobs: list[BenchJob] = []
    for repeat in range(settings.repeat if settings.collectives else 0):
        for placement in settings.placements:
            for mpi in found:
                for kind in kinds if repeat == 0 else ("measure",):
                    loads = states if kind == "measure" else (False,)
                    jobs += [BenchJob(mpi, placement, repeat, kind, loaded=loaded) for loaded in loads]
                for variant in settings.variants:
                    cells = _cells_of(variant.collectives, settings)
                    if cells != ():
                        jobs += [
                            BenchJob(mpi, placement, repeat, "measure", None, loaded, cells, variant=variant)
                            for loaded in states
                        ]
            for rival, mpi in rivals:
                cells = _cells_of(rival.collectives, settings)
                if cells != ():
                    jobs += [BenchJob(mpi, placement, repeat, "rival", rival, loaded, cells) for loaded in states]
    if settings.pass_through:
        jobs += [BenchJob(mpi, settings.placements[0], 0, "pass_through") for mpi in found]
    return jobs


def _cells_of(collectives: Sequence[str], settings: Settings) -> tuple[CellName, ...] | None:
    """The cells of these collectives; None: all."""
    if not collectives:
        return None
    cells = tuple(cell for cell in settings.cells if cell[0] in collectives)
    return None if cells == settings.cells else cells


def without_done(jobs: Sequence[BenchJob], settings: Settings, done: Run) -> list[BenchJob]:
    """Return what is left of `jobs` when the cells of `done` are not measured again; cells with wrong results are."""
    there: dict[tuple[str, str, int, str], set[CellName]] = {}
    for job in done.jobs:
        right = {
            (cell.collective, cell.size_bytes) for cell in job.cells if not (cell.wrong_alone or cell.wrong_palmette)
        }
        there.setdefault((job.mpi, job.where, job.repeat, job.kind), set()).update(right)
    left = []
    for planned in jobs:
        key = (planned.name, planned.where, planned.repeat, planned.kind)
        if planned.kind == "pass_through":
            left += (
                []
                if any(job.kind == "pass_through" and job.mpi == planned.name and job.passes for job in done.jobs)
                else [planned]
            )
            continue
        wanted = settings.cells if planned.cells is None else planned.cells
        cells = tuple(cell for cell in wanted if cell not in there.get(key, set()))
        if cells:
            left.append(replace(planned, cells=cells) if len(cells) < len(wanted) else planned)
    return left
