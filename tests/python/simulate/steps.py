"""Recordings of tests/mpi/steps.cpp in simulated time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from palmette import _core
from palmette.record.findings import trace_files
from palmette.record.reading import Job, read_job
from palmette.settings import force
from palmette_lab.simulate import cluster, simgrid
from palmette_lab.simulate.job import make_job
from palmette_lab.simulate.parameters import Parameters
from palmette_lab.simulate.platform import platform_xml
from palmette_lab.simulate.run import BASE_SELECTION
from planted import BUILD

from .conftest import VALUES

PROGRAM = BUILD / "tests" / "mpi" / "steps.smpi"


def record(
    smpirun: str,
    folder: Path,
    spec: str,
    ranks: int,
    placement: str,
    words: Sequence[str],
    values: Parameters = VALUES,
    **forced: str,
) -> Job:
    """Simulate the program with these words, palmette serving where an algorithm is forced, and return its trace."""
    bed = cluster.prepared(cluster.from_spec(spec), values, 1.0)
    assert PROGRAM.is_file(), f"{PROGRAM} isn't built: run `make simulate`"
    (folder / "calls").mkdir()
    for where in (folder, folder / "calls"):
        (where / "topology.json").write_text(json.dumps(bed.topology.to_json()), encoding="utf-8")
    (folder / "platform.xml").write_text(platform_xml(bed.topology, values, bed.mesh), encoding="utf-8")
    seats = make_job(bed, placement, ranks).seats
    (folder / "hosts").write_text("".join(f"{host}\n" for host in seats), encoding="utf-8")
    settings = {
        "PALMETTE_TRACE": str(folder / "calls"), "PALMETTE_SIMULATED_PROGRAM": str(PROGRAM),
        "PALMETTE_TOPOLOGY": "topology.json", "PALMETTE_SERVE_AFTER": "0",
        "PALMETTE_ENABLE": "1" if forced else "0",
        **force(**forced),
    }  # fmt: skip
    configuration = simgrid.configuration(values, BASE_SELECTION)
    ended = simgrid.start(smpirun, folder, ranks, PROGRAM, configuration, words, settings, cpu_limit_s=300)
    assert not ended.trouble, ended.errors
    return read_job(folder / "calls")


def time_of(job: Job) -> float:
    """Return the simulated time from MPI_Init to MPI_Finalize, which the replay must give again."""
    found = _core.causes_of(trace_files(job))
    assert found.measured.time_s == pytest.approx(found.measured.measured_s, rel=1e-3)
    return found.measured.measured_s
