"""Who sends how much to whom, in a recording: what the program sent and exchanged, to the byte, and nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette import _core
from palmette.map.traffic_file import read_traffic
from palmette.mpi.install import find
from palmette.record.reading import read_job
from palmette.record.sent import traffic_of

from .conftest import Cluster, Mpi, ProgramResult

pytestmark = pytest.mark.mpi

Rows = dict[tuple[int, int], tuple[int, int]]
"""(from, to) -> (bytes, messages)."""


def expected_rows(text: str) -> Rows:
    """Return the lines `expected FROM TO BYTES MESSAGES`."""
    found: Rows = {}
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["expected"]:
            source, target, size, messages = map(int, words[1:])
            assert (source, target) not in found, line
            found[source, target] = size, messages
    return found


def sums_of(peer: _core.RecordedPeer, kind: str) -> tuple[int, int]:
    if kind == "sent":
        return peer.message_bytes + peer.neighbour_bytes, peer.messages + peer.neighbour_blocks
    return peer.exchange_bytes, peer.exchange_blocks


def rows(folder: Path, kind: str) -> Rows:
    """Return what was `sent`, point to point and to neighbours, or `exchanged`."""
    found = {
        (process.recorded.rank, peer.rank): sums_of(peer, kind)
        for process in read_job(folder).processes for peer in process.recorded.peers if peer.rank >= 0
    }  # fmt: skip
    return {pair: sums for pair, sums in found.items() if sums[1]}


def recorded(
    mpi: Mpi, ranks: int, program: str | Path, *arguments: object, **settings: str
) -> tuple[ProgramResult, Path]:
    """Run a program that is recorded; return how it ended and the folder."""
    folder = mpi.directory / "recording"
    ran = mpi.run(ranks, program, *arguments, settings={"PALMETTE_PROFILE": str(folder), **settings})
    assert ran.status == 0, ran.text
    return ran, folder


@pytest.mark.parametrize("ranks", [4, 8])
def test_each_way_to_send_counts_once(mpi: Mpi, ranks: int) -> None:
    ran, folder = recorded(mpi, ranks, "messages")
    expected = expected_rows(ran.out)
    assert len({source for source, _ in expected}) == ranks, ran.text
    assert rows(folder, "sent") == expected


@pytest.mark.parametrize("ranks", [4, 8])
def test_each_exchange_counts_once_and_not_as_messages(mpi: Mpi, ranks: int) -> None:
    ran, folder = recorded(mpi, ranks, "exchanges")
    expected = expected_rows(ran.out)
    assert len({source for source, _ in expected}) == ranks, ran.text
    assert (rows(folder, "exchanged"), rows(folder, "sent")) == (expected, {})
    assert traffic_of(folder).pattern.exchanged == sum(size for size, _ in expected.values())


def test_it_says_where_ranks_were_and_what_it_lacks(mpi: Mpi) -> None:
    _, folder = recorded(mpi, 4, "messages")
    found = traffic_of(folder)
    assert (found.pattern.ranks, len(set(found.hosts)), len(found.hosts)) == (4, 1, 4)
    assert found.uncounted == ("4 one-sided calls",)


def test_palmettes_own_messages_are_no_part_of_it(mpi: Mpi, cluster: Cluster) -> None:
    # Collectives served by palmette, ranks renumbered by it: only the program's messages count.
    ran, folder = recorded(mpi, 4, "messages", **cluster.settings(4), PALMETTE_FORCE="allreduce=recursive_doubling")
    assert "allreduce" in ran.served()
    assert rows(folder, "sent") == expected_rows(ran.out)


def test_open_mpis_own_monitoring_counts_the_same(mpi_called: Callable[[str], Mpi], tmp_path: Path) -> None:
    mpi = mpi_called("openmpi")
    source = Path(__file__).with_name("programs") / "ring.c"
    program = tmp_path / "ring"
    subprocess.run([find("openmpi").prefix / "bin" / "mpicc", source, "-o", program], check=True, timeout=60)
    monitored = {"OMPI_MCA_pml_monitoring_enable": "2", "OMPI_MCA_pml_monitoring_enable_output": "3"}
    environment = {**mpi.environment(), **monitored, "OMPI_MCA_pml_monitoring_filename": str(tmp_path / "prof")}
    # It is a PML itself: naming another one leaves it out.
    environment.pop("OMPI_MCA_pml")
    words = [*mpi.launch(4), str(program)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    theirs = read_traffic(tmp_path / "prof.0.prof").pattern
    _, folder = recorded(mpi, 4, program)
    ours = traffic_of(folder).pattern
    both = [sorted(zip(p.source, p.target, p.bytes, strict=True)) for p in (theirs, ours)]
    assert both[0] == both[1] == [(r, (r + 1) % 4, 3000.0) for r in range(4)]
