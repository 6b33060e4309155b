"""Ranks of which some can what others can't: shared memory, single copies, the way to a daemon, refused at random.

Each rank finds out by itself what it may use, so what it offers differs from the others'; all must come to the same way
of each call, with the right bytes, and none may wait for another one for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from .aggregation import Daemon, running
from .conftest import BUILD, LEVEL_BY_LEVEL, Mpi, ProgramResult, forced, pretended
from .test_aggregated import by_hosts, folder, settings

__all__ = ["folder"]

pytestmark = pytest.mark.mpi

REFUSALS = BUILD / "tests" / "fakes" / "librefusals.so"
FORCED = forced(allreduce="in_network")
SHARED = forced(
    allgather="leaders:inside=shared", allreduce="leaders:inside=shared", bcast="shared", gather="shared",
    scatter="shared", reduce="shared", alltoall="node_aware:inside=shared", barrier="shared", scan="shared",
)  # fmt: skip


@dataclass(frozen=True)
class RefusingMpi(Mpi):
    """An MPI under which system calls of palmette's fail."""

    refusals: str = ""

    def environment(self) -> dict[str, str]:
        """Return the launcher's environment with the library that refuses before all others."""
        usual = super().environment()
        before = usual.get("LD_PRELOAD", "")
        return usual | {
            "LD_PRELOAD": f"{REFUSALS}:{before}" if before else str(REFUSALS),
            "REFUSALS": self.refusals,
        }


@pytest.fixture
def refusing(mpi_called: Callable[[str], Mpi]) -> Callable[[str, str], RefusingMpi]:
    """Return an MPI by the name of a variant, with a seed and a percentage of refusals."""

    def make(variant: str, refusals: str) -> RefusingMpi:
        if not REFUSALS.is_file():
            pytest.skip("the fakes aren't built: tools/build.sh release 2 palmette_fakes")
        mpi = mpi_called(variant)
        return RefusingMpi(mpi.installation, mpi.abi, mpi.directory, mpi.counter, refusals)

    return make


def draw(mpi: Mpi, ranks: int, cases: int, seed: int, hosts: str, chosen: dict[str, str]) -> ProgramResult:
    """Fail unless that many random calls on ever new communicators are right."""
    ran = mpi.run(
        ranks, "random_arguments", "--seed", seed, "--cases", cases, "--renew", 10, "--timeout", 120,
        settings={**chosen, **pretended(ranks, hosts)}, timeout_s=1800,
    )  # fmt: skip
    ran.assert_right()
    assert sum(sum(calls.values()) for calls in ran.served().values()) > cases / 10, "hardly anything was served"
    return ran


@pytest.mark.parametrize("percent", [20, 70])
def test_ranks_of_a_node_whose_memory_is_refused_at_some(refusing: Callable[..., RefusingMpi], percent: int) -> None:
    draw(refusing("mpich", f"1,{percent}"), 4, 150, percent, "0", SHARED)


@pytest.mark.long
@pytest.mark.parametrize("variant", ["mpich", "openmpi", "impi"])
@pytest.mark.parametrize(
    ("ranks", "hosts", "chosen", "percent"),
    [
        (2, "0", SHARED, 50),
        (2, "0", {}, 20),
        (4, "0", SHARED, 20),
        (5, "00011", SHARED, 40),
        (4, "01", LEVEL_BY_LEVEL, 30),
    ],
    ids=["pair", "pair-by-table", "node", "two-nodes", "by-level"],
)  # fmt: skip
def test_ten_thousand_draws(
    refusing: Callable[..., RefusingMpi], variant: str, ranks: int, hosts: str, chosen: dict[str, str], percent: int
) -> None:
    """On each MPI."""
    draw(refusing(variant, f"{ranks},{percent}"), ranks, 2000, percent + ranks, hosts, chosen)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_ranks_of_which_some_do_not_reach_the_daemon(
    refusing: Callable[..., RefusingMpi], folder: Path, seed: int
) -> None:
    with running(Daemon(folder)) as daemon:
        ran = refusing("mpich", f"{seed},30").run(
            8, "aggregated", "--generations", 12, "--calls", 4, "--count", 5000,
            settings=settings(folder, daemon.address, daemon.key) | FORCED,
        )  # fmt: skip
        ran.assert_right()
    assert by_hosts(ran), "no refusal has met anything"
