"""Replays of simulated jobs against the simulator: with its own costs, and with those of a free network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from palmette import _core
from palmette.record.findings import trace_files
from palmette.record.reading import Job
from palmette_lab.simulate.parameters import Parameters

from .conftest import VALUES
from .steps import record

FREE_S = 1e-12
FREE = replace(
    VALUES,
    **{name: FREE_S for name in VALUES.__slots__ if name.endswith(("_message_s", "latency_s"))},
    **{name: 1e-21 for name in VALUES.__slots__ if name.endswith("_byte_s")},
    memory_bytes_per_s=1e18,
    unknown_bytes_per_s=1e18,
)
SIZES = [
    (16, "2leaf@{rate}:4node@{rate}:2core"),
    pytest.param(1024, "8leaf@{rate}:16node@{rate}:8core", marks=pytest.mark.long),
]
"""Ranks, and their cluster at a rate."""
LINKS, NO_LIMIT = "100Mbit/s", "1000000TB/s"
CASES = {
    "halo": ("none", 0, 200),  # waits for neighbours that compute longer
    "halos that fill links": ("none", 0, 20000),
    "allreduce": ("allreduce", 64, 0),
    "all of it": ("bcast", 4096, 2000),
}


@pytest.mark.parametrize(("ranks", "spec"), SIZES)
@pytest.mark.parametrize("case", CASES)
def test_replays_give_the_simulators_time(smpirun: str, tmp_path: Path, ranks: int, spec: str, case: str) -> None:
    def simulated(rate: str, values: Parameters) -> Job:
        (tmp_path / rate.replace("/", "")).mkdir()
        words = [*map(str, CASES[case]), "4"]
        return record(smpirun, tmp_path / rate.replace("/", ""), spec.format(rate=rate), ranks, "block", words, values)

    job = simulated(LINKS, VALUES)
    found = _core.causes_of(trace_files(job))
    free = _core.causes_of(trace_files(simulated(NO_LIMIT, FREE)))
    print(f"{case}, {ranks} ranks: {found.measured.measured_s:.6f}, replayed {found.measured.time_s:.6f}; ", end="")
    # Without costs all leave MPI_Init at once, which isn't replayed: it lies before the run.
    first = [min(call.begin_real_ns for call in one.calls() if call.function != "MPI_Init") for one in job.processes]
    ideal_s = found.ideal.time_s - (max(first) - min(first)) * 1e-9
    print(f"ideal {ideal_s:.6f}, simulated so {free.measured.measured_s:.6f}")
    assert found.measured.time_s == pytest.approx(found.measured.measured_s, rel=1e-3)
    assert ideal_s == pytest.approx(free.measured.measured_s, rel=0.01)
