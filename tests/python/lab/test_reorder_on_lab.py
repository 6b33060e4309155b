"""MPI_Cart_create with reorder on scattered ranks of a lab, by the counters of its uplinks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from palmette.mpi import install as mpi_install
from palmette.mpi.abi import LIBRARIES
from palmette_lab.lab import Lab
from palmette_lab.lab.network import plan_network
from palmette_lab.lab.spec import read_spec

pytestmark = [pytest.mark.root, pytest.mark.mpi]

SPEC = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
ROUNDS, BYTES = 15, 65536


@pytest.fixture(params=["mpich", "openmpi"])
def stencil(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """Return the name of an MPI and the program compiled for it."""
    try:
        found = mpi_install.find(request.param)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    program = tmp_path / "stencil"
    source = Path(__file__).with_name("programs") / "stencil.c"
    subprocess.run([found.prefix / "bin" / "mpicc", "-O1", source, "-o", program], check=True, timeout=60)
    return request.param, program


def sent(lab: Lab) -> dict[str, int]:
    """Return the bytes that each leaf has sent up and got down, by its port in the switches' namespace."""
    command = lab.exec_command("login", ["cat", "/proc/net/dev"])
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout
    columns = {line.split(":")[0].strip(): line.split(":")[1].split() for line in text.splitlines() if ":" in line}
    found: dict[str, int] = {}
    for edge in plan_network(read_spec(SPEC)).edges:
        if edge.level == "leaf":
            port = columns[edge.lower.interface]
            found[f"{edge.child} up"], found[f"{edge.child} down"] = int(port[8]), int(port[0])
    assert len(found) == 6
    return found


def busiest(lab: Lab, mpi: str, program: Path, reorder: str) -> tuple[int, str]:
    """Run the stencil; return the most bytes over an uplink in one direction, and who has which rank."""
    abi = {"mpich": "mpich", "openmpi": "ompi"}[mpi]
    variables = {
        "LD_PRELOAD": str(LIBRARIES / f"libpalmette_{abi}.so"),
        "PALMETTE_TOPOLOGY": str(lab.topology_path),
        "PALMETTE_REORDER": reorder,
    }
    before = sent(lab)
    words = [str(program), str(ROUNDS), str(BYTES)]
    done = lab.run(words, mpi=mpi, placement="random:1", env=variables, capture=True, timeout_s=90)
    assert done.returncode == 0, done.stdout + done.stderr
    after = sent(lab)
    return max(after[name] - before[name] for name in after), done.stdout


def test_the_busiest_uplink_carries_half_as_many_bytes(lab: Lab, stencil: tuple[str, Path]) -> None:
    in_order, numbers = busiest(lab, *stencil, "off")
    assert numbers.split() == [str(rank) for rank in range(16)]
    reordered, others = busiest(lab, *stencil, "halo")
    assert sorted(map(int, others.split())) == list(range(16))
    # Nine neighbours' blocks a round over the busiest uplink, and four.
    assert in_order > 8 * ROUNDS * BYTES
    assert in_order >= 2 * reordered, (in_order, reordered)
