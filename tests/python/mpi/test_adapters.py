"""Counters of InfiniBand ports, from files as the kernel has them, and jobs on one node."""

from __future__ import annotations

from pathlib import Path

import pytest

from palmette.record.adapters import adapters_of, document
from palmette.record.reading import read_job

from .conftest import Mpi

pytestmark = pytest.mark.mpi
PORT = {"port_rcv_data": 1000, "port_xmit_data": 2000, "port_rcv_packets": 3, "port_xmit_packets": 4}


def test_ports_are_read_by_one_process_of_the_node(mpi: Mpi, tmp_path: Path) -> None:
    counters = tmp_path / "infiniband" / "mlx5_0" / "ports" / "1" / "counters"
    counters.mkdir(parents=True)
    for name, value in PORT.items():
        (counters / name).write_text(f"{value}\n", encoding="ascii")
    folder = tmp_path / "recording"
    settings = {"PALMETTE_PROFILE": str(folder), "PALMETTE_FAKE_INFINIBAND": str(tmp_path / "infiniband")}
    ran = mpi.run(2, "calls", settings=settings)
    assert ran.status == 0, ran.text
    job = read_job(folder)
    readers = [process.recorded for process in job.processes if process.recorded.adapters]
    assert len(readers) == 1
    port = next(one for one in readers[0].adapters if one.name == "mlx5_0:1")
    assert port.is_infiniband
    assert len(port.real_ns) >= 2
    assert port.real_ns == sorted(port.real_ns)
    assert set(port.sent_bytes) == {4 * PORT["port_xmit_data"]}, "words of four bytes"
    assert set(port.received_packets) == {PORT["port_rcv_packets"]}
    assert set(port.waited) == {0}, "a file that isn't there"
    # It carried nothing meanwhile.
    assert all(one.name != "mlx5_0:1" for one in adapters_of(job))
    told = document(job)
    assert told is None or all(one["kind"] == "interface" for one in told["adapters"])
