"""MPI_Allreduce through aggregation daemons: right, with the same bits, and at an end whatever happens to them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palmette.aggregator import token
from palmette.lab import LabError
from palmette.lab.helpers import helper

from .aggregation import Daemon, Proxy, running, topology
from .conftest import Mpi, Ran, forced

pytestmark = pytest.mark.mpi
RANKS = 8
FOREVER_S = 1 << 40
OVERCOME_S = 15.0
"""Within which a fault has to be overcome."""

Called = Callable[[str], Mpi]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for sockets."""
    try:
        helper("palmette-aggregator")
    except LabError as error:
        pytest.skip(str(error))
    made = Path(tempfile.mkdtemp(prefix="pa"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    """A daemon without limits that matter."""
    with running(Daemon(folder)) as started:
        yield started


def settings(folder: Path, address: str, key: Path, groups: int = 256, **others: str) -> dict[str, str]:
    """Return the settings of ranks, two on each of four hosts, whose token was made with `key`."""
    made = folder / "me.token"
    made.unlink(missing_ok=True)
    token.write_secret(made, token.make_token(token.read_key(key), 0, FOREVER_S, groups))
    return {
        "PALMETTE_TOPOLOGY": str(topology(folder / "topology.json", address)),
        "PALMETTE_FAKE_HOSTS": ",".join(str(rank // 2) for rank in range(RANKS)),
        "PALMETTE_AGGREGATOR_TOKEN": str(made),
        **forced(allreduce="in_network"),
        **others,
    }


def calls_by_hosts(ran: Ran) -> dict[str, int]:
    """Return why aggregators didn't serve calls -> how many."""
    assert ran.report is not None, ran.text
    calls: dict[str, int] = {}
    for row in ran.report["instead_of_aggregators"]:
        reason = row["why"].partition(":")[0]
        calls[reason] = calls.get(reason, 0) + row["calls"]
    return calls


def test_sums_are_right_and_always_the_same(mpi: Mpi, daemon: Daemon, folder: Path) -> None:
    ran = mpi.run(RANKS, "aggregated", "--generations", 3, "--calls", 6, "--count", 5000,
                  settings=settings(folder, daemon.address, daemon.key))  # fmt: skip
    ran.assert_right()
    assert ran.served()["allreduce"]["in_network"] == 18
    assert calls_by_hosts(ran) == {}
    told = daemon.idle()
    assert told["in_use"] == {"groups": 0, "slots": 0, "bytes": 0}
    assert told["counters"]["groups"] == 6
