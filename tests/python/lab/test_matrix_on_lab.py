"""From a run on scattered ranks to a rank order: record, map, run again, by the counters of the lab's uplinks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from palmette.cli.main import main
from palmette.mpi import install as mpi_install
from palmette.mpi.abi import LIBRARIES, Abi
from palmette.record.sent import traffic_of
from palmette_lab.lab import Lab

from .test_reorder_on_lab import sent

pytestmark = [pytest.mark.root, pytest.mark.mpi]

ROUNDS, BYTES = 15, 65536


@pytest.mark.parametrize(("mpi", "abi"), [("mpich", "mpich"), ("openmpi", "ompi")])
def test_the_order_found_for_a_recorded_stencil_halves_the_busiest_uplink(
    lab: Lab, mpi: str, abi: Abi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = mpi_install.find(mpi)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    program, calls, hosts = tmp_path / "stencil", tmp_path / "calls", tmp_path / "hosts"
    source = Path(__file__).with_name("programs") / "stencil.c"
    subprocess.run([found.prefix / "bin" / "mpicc", "-O1", source, "-o", program], check=True, timeout=60)

    def busiest_uplink(placement: str, folder: Path) -> int:
        """Run without reordering; the order is the launcher's alone."""
        names = (f"libpalmette_record_{abi}.so", f"libpalmette_{abi}.so")
        variables = {
            "LD_PRELOAD": ":".join(str(LIBRARIES / name) for name in names),
            "PALMETTE_TOPOLOGY": str(lab.topology_path),
            "PALMETTE_REORDER": "off",
            "PALMETTE_PROFILE": str(folder),
        }
        before = sent(lab)
        words = [str(program), str(ROUNDS), str(BYTES)]
        done = lab.run(words, mpi=mpi, placement=placement, env=variables, capture=True, timeout_s=90)
        assert done.returncode == 0, done.stdout + done.stderr
        after = sent(lab)
        return max(after[name] - before[name] for name in after)

    scattered = busiest_uplink("random:1", calls)
    words = ["--matrix", str(calls), "--topology", str(lab.topology_path), "--write", f"slurm={hosts}", "--json"]
    assert main(["map", *words]) == 0
    mapped = json.loads(capsys.readouterr().out)
    assert mapped["placement"] == "as in the run"
    assert mapped["hosts"] != lab.place("random:1")
    # The messages that were recorded are what crossed the uplink: no more than headers beside them.
    before, after = mapped["before"]["busiest"], mapped["after"]["busiest"]
    assert before["level"] == after["level"] == "leaf"
    assert before["bytes"] <= scattered <= 1.15 * before["bytes"]
    again = busiest_uplink(str(hosts), tmp_path / "again")
    assert after["bytes"] <= again <= 1.15 * after["bytes"]
    assert scattered >= 2 * again, (scattered, again)
    first, second = (
        sorted(zip(p.source, p.target, p.bytes, strict=True))
        for p in (traffic_of(folder).pattern for folder in (calls, tmp_path / "again"))
    )
    assert first == second, "the program sends the same wherever its ranks sit"
