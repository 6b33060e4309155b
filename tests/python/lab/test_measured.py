"""The lab measured: calibration finds the rates and the delay that it was made with, ping-pong its leaves.

What comes out depends on how busy the machine is: `make test` asks for figures of each kind, `make test-long` for
right ones.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.mpi import install as mpi_install
from palmette.topology.file import load
from palmette_lab.lab import Lab

Palmette = Callable[..., Any]


@pytest.mark.long
@pytest.mark.mpi
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("mpi", ["mpich", "openmpi", "impi"])
def test_the_lab_is_found_to_be_what_it_was_made(
    palmette_lab: Palmette, lab_state: Path, tmp_path: Path, mpi: str
) -> None:
    output = tmp_path / "c.json"
    try:
        mpi_install.find(mpi)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    with Lab.up("2leaf@50Mbit/s:2node@100Mbit/s:2core", name="calibrated", spine_delay_s=5e-3):
        result = palmette_lab("calibrate", "--lab", "calibrated", "--mpi", mpi, "-o", output, "--budget", "12s")
        assert result.status == 0, result.err
        assert max(map(len, result.out.splitlines())) <= 80
    machine = load(output).machine
    costs = {level.name: level for level in machine.levels}
    assert 5e-3 < (costs["leaf"].latency_s or 0) < 12e-3
    assert (costs["node"].latency_s or 1) < 3e-3
    assert all(0 < (level.overhead_s or 0) <= (level.latency_s or 0) * 0.501 for level in machine.levels)
    # One flow of Open MPI fills two thirds of an edge that is so far away.
    assert 3.4e6 < (costs["leaf"].stream_bytes_per_s or 0) < 6.3e6
    assert 8e6 < (costs["node"].stream_bytes_per_s or 0) < 12.6e6
    assert machine.calibration is not None
    leaf = machine.calibration.levels["leaf"].shared[0]
    # An edge of 5.98 MB/s, between hosts of 11.96. Where flows come out of step, so that more of them bring more, the
    # most that was seen is the edge's rate, or the error is told.
    assert 4e6 < leaf.bytes_per_s < 8e6
    assert leaf.filled or leaf.bytes_per_s < 1.15 * 5.98e6 or leaf.error > 0.05


@pytest.mark.long
@pytest.mark.mpi
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("spine_delay_s", [5e-3, 0.0])
def test_the_leaves_of_a_lab_are_found_by_a_far_spine_or_narrow_uplinks(
    palmette_lab: Palmette, palmette: Palmette, lab_state: Path, tmp_path: Path, spine_delay_s: float
) -> None:
    with Lab.up("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", name="found", spine_delay_s=spine_delay_s) as lab:
        output = tmp_path / "found.json"
        result = palmette_lab("discover", "--from", "measurement", "--lab", "found", "-o", output)
        assert result.status == 0, result.err
        wanted = {
            frozenset(host.name for host in leaf.hosts()) for leaf in load(lab.topology_path).machine.tree.children
        }
    machine = load(output).machine
    assert [level.name for level in machine.levels] == ["leaf", "node", "core"]
    assert {frozenset(host.name for host in leaf.hosts()) for leaf in machine.tree.children} == wanted
    shown = palmette("show", output)
    assert shown.status == 0 and "leaf" in shown.out
    rates = [level.stream_bytes_per_s or 0 for level in machine.levels[:2]]
    # Switches of the lab let the first bytes of a message through faster than the rest.
    assert 4e6 < rates[0] < 9e6 and 8e6 < rates[1] < 18e6 and 1.5 < rates[1] / rates[0] < 2.6, rates
    planned = palmette("plan", "gather", "--topology", output, "--size", "1K")
    assert planned.status == 0, planned.err


@pytest.mark.mpi
@pytest.mark.root
def test_a_lab_is_calibrated_whatever_else_the_machine_does(
    palmette_lab: Palmette, lab_state: Path, tmp_path: Path
) -> None:
    output = tmp_path / "c.json"
    with Lab.up("2leaf@50Mbit/s:2node@100Mbit/s:1core", name="calibrated"):
        result = palmette_lab("calibrate", "--lab", "calibrated", "-o", output, "--budget", "4s")
        assert result.status == 0, result.err
    machine = load(output).machine
    assert machine.calibration is not None
    costs = {level.name: level for level in machine.levels}
    for name in ("leaf", "node"):
        assert (costs[name].latency_s or 0) > 0
        assert (costs[name].stream_bytes_per_s or 0) > 0
    assert machine.calibration.levels["leaf"].shared


@pytest.mark.mpi
@pytest.mark.root
def test_the_hosts_of_a_lab_are_found_by_measurement(
    palmette_lab: Palmette, palmette: Palmette, lab_state: Path, tmp_path: Path
) -> None:
    output = tmp_path / "found.json"
    with Lab.up("2leaf@50Mbit/s:1node@100Mbit/s:1core", name="found", spine_delay_s=5e-3):
        result = palmette_lab("discover", "--from", "measurement", "--lab", "found", "-o", output)
        assert result.status == 0, result.err
    assert {host.name for host in load(output).machine.tree.hosts()} == {"h0", "h1"}
    planned = palmette("plan", "gather", "--topology", output, "--algorithm", "linear")
    assert planned.status == 0, planned.err
