"""Buffers in device memory: the argument tests again with every buffer there, under MPIs that know nothing of it.

The driver is one of ours (tests/fakes): a touch of its devices' memory by the host ends the process, copies are late,
and a log tells what was left open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .conftest import BUILD, FUNCTIONS, LEVEL_BY_LEVEL, SOAK, Cluster, Mpi, forced, pretended

pytestmark = pytest.mark.mpi

DRIVER = BUILD / "tests" / "fakes" / "libcuda.so.1"
THREE_MPIS = ("mpich", "openmpi", "impi")


@dataclass(frozen=True)
class DeviceMpi(Mpi):
    """An MPI whose programs have the test driver."""

    log: Path = Path()
    fake: str = ""

    def environment(self) -> dict[str, str]:
        """Return the launcher's environment with the driver's settings."""
        return super().environment() | {"PALMETTE_FAKE_CUDA": self.fake, "PALMETTE_FAKE_CUDA_LOG": str(self.log)}

    def logs(self) -> Iterator[dict[str, Any]]:
        """Yield what each process's driver has written down."""
        for path in self.log.iterdir():
            yield json.loads(path.read_text(encoding="utf-8"))

    def assert_clean(self, ranks: int) -> None:
        """Fail unless all ranks had the driver, and palmette made no context and left nothing."""
        logs = list(self.logs())
        assert len(logs) == ranks, [log["program"] for log in logs]
        for log in logs:
            assert any("palmette" in library for library in log["calls"].get("cuMemcpyAsync", {})), "nothing was staged"
            ours = [one for one in log["contexts_created"] if "palmette" in one["library"]]
            left = [one for one in log["live"] if "palmette" in one["library"]]
            assert not ours, ours
            assert not left, left


@pytest.fixture
def on_device(mpi_called: Callable[[str], Mpi], tmp_path: Path) -> Callable[..., DeviceMpi]:
    """Return an MPI with the driver, by the name of a variant."""

    def make(variant: str, fake: str = "seed=1") -> DeviceMpi:
        mpi = mpi_called(variant)
        log = tmp_path / "driver"
        log.mkdir(exist_ok=True)
        return DeviceMpi(mpi.installation, mpi.abi, mpi.directory, mpi.counter, log, fake)

    return make


WAYS = {
    "served": dict(LEVEL_BY_LEVEL),
    "table": {},
    "left": {"PALMETTE_ENABLE": "1", **forced(**dict.fromkeys(FUNCTIONS, "mpi"))},
}
"""By palmette's algorithms, by the table, and all by the MPI."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("variant", THREE_MPIS)
def test_blocking(on_device: Callable[..., DeviceMpi], cluster: Cluster, variant: str, way: str) -> None:
    mpi = on_device(variant, "seed=2,lazy" if way == "served" else "seed=3")
    settings = {**WAYS[way], **(cluster.settings(5) if way == "served" else pretended(5, ""))}
    ran = mpi.run(5, "random_arguments", "--driver", DRIVER, "--seed", 11, "--cases", 60 * SOAK, settings=settings)
    ran.assert_right()
    mpi.assert_clean(5)


@pytest.mark.parametrize("variant", THREE_MPIS)
def test_ranks_may_differ(on_device: Callable[..., DeviceMpi], cluster: Cluster, variant: str) -> None:
    """Each buffer is of a kind of its own: of the host, pinned, managed, pooled, mapped, or a device's."""
    mpi = on_device(variant)
    ran = mpi.run(
        4, "random_arguments", "--driver", DRIVER, "--memory", "any", "--seed", 5, "--cases", 80 * SOAK,
        settings={**LEVEL_BY_LEVEL, **cluster.settings(4)},
    )  # fmt: skip
    ran.assert_right()
    mpi.assert_clean(4)


@pytest.mark.parametrize("memory", ["device", "any"])
@pytest.mark.parametrize("program", ["nonblocking", "persistent"])
@pytest.mark.parametrize("variant", THREE_MPIS)
def test_in_the_background(
    on_device: Callable[..., DeviceMpi], cluster: Cluster, variant: str, program: str, memory: str
) -> None:
    """Served by palmette, or for a part by the MPI: by requests of its own behind the program's."""
    mpi = on_device(variant)
    more = ("--cases", 25 * SOAK, "--free-communicator", 0) if program == "nonblocking" else ("--rounds", 4)
    # Intel MPI's own persistent collectives hang when ranks start them in different orders.
    by_table = memory == "any" and (variant, program) != ("impi", "persistent")
    settings = pretended(4, "0011") if by_table else {**LEVEL_BY_LEVEL, **cluster.settings(4)}
    ran = mpi.run(4, program, "--driver", DRIVER, "--memory", memory, *more, settings=settings)
    ran.assert_right()
    mpi.assert_clean(4)


@pytest.mark.parametrize("how", ["combined", "direct", "mpi"])
@pytest.mark.parametrize("variant", THREE_MPIS)
def test_neighbourhoods(on_device: Callable[..., DeviceMpi], cluster: Cluster, variant: str, how: str) -> None:
    mpi = on_device(variant)
    functions = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
    settings = forced(**{f"neighbor_{function.lower()}": how for function in functions})
    blocking = int(variant == "openmpi" or how == "mpi")
    ran = mpi.run(
        6, "neighbours", "--driver", DRIVER, "--memory", "any" if how == "direct" else "device", "--cases", 12,
        "--calls", 6, "--blocking", blocking, settings={**settings, **cluster.settings(6)},
    )  # fmt: skip
    ran.assert_right()
    mpi.assert_clean(6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("variant", THREE_MPIS)
def test_special_arguments(on_device: Callable[..., DeviceMpi], cluster: Cluster, variant: str, way: str) -> None:
    mpi = on_device(variant, "seed=7,lazy")
    settings = {**WAYS[way], **(cluster.settings(4) if way == "served" else pretended(4, ""))}
    free = int(variant != "openmpi")
    ran = mpi.run(4, "device_cases", "--driver", DRIVER, "--free-communicator", free, settings=settings)
    ran.assert_right()
    mpi.assert_clean(4)


def test_hip(on_device: Callable[..., DeviceMpi], cluster: Cluster) -> None:
    """Seen on the test driver only."""
    mpi = on_device("mpich", "seed=4,lazy")
    for program, more in (("random_arguments", ("--cases", 60)), ("nonblocking", ("--cases", 10))):
        ran = mpi.run(
            4, program, "--driver", DRIVER.parent / "libamdhip64.so.6", "--memory", "any", *more,
            settings={**LEVEL_BY_LEVEL, **cluster.settings(4)},
        )  # fmt: skip
        ran.assert_right()
    for log in mpi.logs():
        assert any("palmette" in library for library in log["calls"].get("hipMemcpyAsync", {})), "nothing was staged"
        assert not [one for one in log["live"] if "palmette" in one["library"]]


def test_the_test_driver_catches_what_is_not_staged(on_device: Callable[..., DeviceMpi]) -> None:
    """Told that no buffer is there, palmette reads them as the host's: the driver's memory can't be."""
    mpi = on_device("mpich")
    ran = mpi.run(2, "random_arguments", "--driver", DRIVER, "--cases", 20, settings={"PALMETTE_DEVICE": "off"})
    assert ran.status != 0
    assert not ran.closing_lines()


@pytest.mark.parametrize(
    "function", ["cuMemcpyAsync:30", "cuStreamCreate:1", "cuMemcpy2DAsync_v2:3", "cuStreamSynchronize:9"]
)
def test_a_copy_that_fails_is_an_error_of_its_rank(on_device: Callable[..., DeviceMpi], function: str) -> None:
    """No other rank waits for the failed one."""
    mpi = on_device("mpich", f"fail={function}")
    ran = mpi.run(3, "random_arguments", "--driver", DRIVER, "--cases", 40, settings=LEVEL_BY_LEVEL, timeout_s=60)
    assert ran.status != 0
    assert "palmette: a command on a device failed" in ran.err
    assert "is stuck" not in ran.err


@pytest.mark.parametrize("variant", THREE_MPIS)
def test_the_driver_comes_and_goes(on_device: Callable[..., DeviceMpi], variant: str) -> None:
    """Loaded after many calls, and closed by the program while others go on."""
    mpi = on_device(variant)
    ran = mpi.run(
        4, "random_arguments", "--driver", DRIVER, "--load", 30, "--unload", 60, "--cases", 90,
        settings=pretended(4, "0011"),
    )  # fmt: skip
    ran.assert_right()
    mpi.assert_clean(4)


@pytest.mark.parametrize(
    "fake",
    ["no_pin", "slow_query_us=20", "old", "pool_says_host=1,vmm_says_host=1", "pool_says_host=0,vmm_says_host=0"],
)
def test_drivers_differ(on_device: Callable[..., DeviceMpi], fake: str) -> None:
    mpi = on_device("mpich", fake)
    memory = "device" if fake in ("old", "no_pin") else "any"
    ran = mpi.run(3, "random_arguments", "--driver", DRIVER, "--memory", memory, "--cases", 40, settings=LEVEL_BY_LEVEL)
    ran.assert_right()
    mpi.assert_clean(3)
