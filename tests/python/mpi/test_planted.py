"""Planted sleeps, imbalances and late ranks on this machine: the analysis finds the waits that the records show, and
not less than what was planted. In simulated time it is exactly that: tests/python/simulate/test_planted.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import pytest

from palmette.record.reading import read_job
from planted import SCENARIOS, analysed, scenarios_of, waits_found, waits_shown

from .conftest import VARIANTS, Mpi

pytestmark = pytest.mark.mpi

QUICK_SCENARIOS = (
    "late-rank", "turns", "n-to-n", "late-scatter-root", "early-gather-root", "late-lower-rank", "halves",
    "sender-of-a-half", "any-sender", "late-receiver-of-much", "ring", "nonblocking", "waitsome",
    "late-receiver-of-isend", "late-nonblocking", "persistent-ring", "halo", "pipeline",
)  # fmt: skip
CLOCKS_S = 1e-5
"""Ticks are converted to nanoseconds twice, for a job's calls one by one and for the analysis."""


def compare(mpi: Mpi, names: Sequence[str]) -> None:
    folder = mpi.directory / "calls"
    ran = mpi.run(4, "planted", ",".join(names), mpi.directory / "there", settings={"PALMETTE_TRACE": str(folder)})
    assert ran.status == 0, ran.text
    job = read_job(folder)
    shown, waits = waits_shown(job), analysed(job)
    found = waits_found(waits)
    for row in found.keys() | shown.keys():
        assert found.get(row, 0.0) == pytest.approx(shown.get(row, 0.0), rel=1e-6, abs=CLOCKS_S), row
    assert (waits.incomplete_collectives, waits.unmatched_messages) == (0, 0)
    scenario = scenarios_of(waits.paths)
    longest_s: dict[tuple[str, int, str], float] = defaultdict(float)
    for one in waits.rows:
        key = (scenario.get(waits.paths[one.path], ""), waits.ranks[one.process], waits.functions[one.function])
        longest_s[key] = max(longest_s[key], one.longest_wait_s)
    for name in names:
        planted = SCENARIOS[name]
        # A rank can be kept from a call that it has announced, so that it waits less, but not in each round.
        for (rank, function), times in planted.waits.items() if planted.steady else ():
            planted_s = max(times) * 1e-3
            assert longest_s[name, rank, function] >= min(0.9 * planted_s, planted_s - 0.002), (name, rank, function)


@pytest.mark.parametrize("variant", ["mpich", "openmpi", "impi"])
def test_waits_are_those_that_the_records_show_and_that_were_planted(
    mpi_called: Callable[[str], Mpi], variant: str
) -> None:
    compare(mpi_called(variant), QUICK_SCENARIOS)


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_those_of_every_scenario_are(mpi_called: Callable[[str], Mpi], variant: str) -> None:
    mpi = mpi_called(variant)
    has_mpi_4 = mpi.name != "openmpi"
    compare(mpi, [name for name, one in SCENARIOS.items() if has_mpi_4 or not one.mpi_4])
