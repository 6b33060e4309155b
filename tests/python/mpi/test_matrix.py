"""The matrix library: what the program sent and exchanged, to the byte, and nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.map.recorded import Recorded
from palmette.map.traffic_file import read_traffic
from palmette.mpi.install import find

from .conftest import Cluster, Mpi, Ran

pytestmark = pytest.mark.mpi

Rows = dict[tuple[int, int], tuple[int, int]]


def rows(text: str, word: str) -> Rows:
    """Return (from, to) -> (bytes, messages) of the lines that begin with `word`."""
    found: Rows = {}
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [word]:
            source, target, size, messages = map(int, words[1:])
            assert (source, target) not in found, line
            found[source, target] = size, messages
    return found


def recorded(mpi: Mpi, ranks: int, program: str | Path, *arguments: object, **settings: str) -> tuple[Ran, Path]:
    """Run a program with the matrix library; return how it ended and the file."""
    file = mpi.directory / "matrix.txt"
    ran = mpi.run(ranks, program, *arguments, settings={**settings, "PALMETTE_MATRIX": str(file)})
    assert ran.status == 0, ran.text
    return ran, file


@pytest.mark.parametrize("ranks", [4, 8])
def test_each_way_to_send_counts_once(mpi: Mpi, ranks: int) -> None:
    ran, file = recorded(mpi, ranks, "messages")
    expected = rows(ran.out, "expected")
    assert len({source for source, _ in expected}) == ranks, ran.text
    assert rows(file.read_text(), "sent") == expected


@pytest.mark.parametrize("ranks", [4, 8])
def test_each_exchange_counts_once_and_not_as_messages(mpi: Mpi, ranks: int) -> None:
    ran, file = recorded(mpi, ranks, "exchanges")
    expected = rows(ran.out, "expected")
    assert len({source for source, _ in expected}) == ranks, ran.text
    text = file.read_text()
    assert (rows(text, "exchanged"), rows(text, "sent")) == (expected, {})
    total = sum(size for size, _ in expected.values())
    assert f"and {total} bytes between {len(expected)} pairs of ranks in all-to-all exchanges" in ran.err
    assert read_traffic(file).pattern.exchanged == total


def test_the_file_holds_hosts_and_says_what_it_lacks(mpi: Mpi) -> None:
    ran, file = recorded(mpi, 4, "messages")
    found = read_traffic(file)
    assert isinstance(found, Recorded)
    assert (found.pattern.ranks, len(set(found.hosts)), len(found.hosts)) == (4, 1, 4)
    assert found.uncounted == ("4 one-sided calls",)
    assert "not among them: 4 one-sided calls" in ran.err
    assert f"next: palmette map --matrix {file}" in ran.err


def test_palmettes_own_messages_are_no_part_of_it(mpi: Mpi, cluster: Cluster) -> None:
    # Collectives served by palmette, ranks renumbered by it: the file speaks of the program's messages alone.
    ran, file = recorded(mpi, 4, "messages", **cluster.settings(4), PALMETTE_FORCE="allreduce=recursive_doubling")
    assert "allreduce" in ran.served()
    assert rows(file.read_text(), "sent") == rows(ran.out, "expected")


def test_without_the_setting_nothing_is_preloaded_or_written(mpi: Mpi) -> None:
    ran = mpi.run(4, "messages")
    assert ran.status == 0, ran.text
    assert "pairs of ranks" not in ran.err


def test_a_file_that_cannot_be_written_is_told_and_the_run_goes_on(mpi: Mpi, tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "matrix.txt"
    ran = mpi.run(4, "messages", settings={"PALMETTE_MATRIX": str(file)})
    assert ran.status == 0, ran.text
    assert ran.err.count("can't write the matrix") == 1
    assert str(file) in ran.err


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
    _, file = recorded(mpi, 4, program)
    ours = read_traffic(file).pattern
    both = [sorted(zip(p.source, p.target, p.bytes, strict=True)) for p in (theirs, ours)]
    assert both[0] == both[1] == [(r, (r + 1) % 4, 3000.0) for r in range(4)]
