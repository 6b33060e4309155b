"""Files of `palmette map` with the launchers themselves: ranks land where the order says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette import _core
from palmette.cli.main import main
from palmette.measure.running import run_to_end
from palmette_lab.lab import Lab

pytestmark = [pytest.mark.root, pytest.mark.mpi]

Program = Callable[[str], Path]


def with_file(words: list[str], kind: str, file: Path) -> list[str]:
    """Return the lab's command line for block placement with the file's placement in its stead."""
    words = list(words)

    def replace(option: str, length: int, by: list[str]) -> None:
        at = words.index(option)
        words[at : at + length] = by

    if kind == "hydra":
        replace("-rankmap", 2, [])
        replace("-hosts", 2, file.read_text(encoding="utf-8").split())
    elif kind == "intel":
        replace("-machinefile", 2, ["-machinefile", str(file)])
    elif kind == "seq":
        replace("--hostfile", 2, ["--hostfile", str(file)])
    else:
        replace("--bind-to", 2, [])
        replace("--map-by", 2, ["--map-by", f"rankfile:file={file}"])
    return words


def slots_by_host(file: Path) -> dict[str, list[int]]:
    """Return the slots that a rankfile gives out on each host; its ranks must be 0, 1, 2, ... in order."""
    slots: dict[str, list[int]] = {}
    for rank, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
        found = re.fullmatch(r"rank (\d+)=(\S+) slot=(\d+)", line)
        assert found is not None, line
        assert int(found[1]) == rank
        slots.setdefault(found[2], []).append(int(found[3]))
    return slots


@pytest.mark.parametrize(
    ("mpi", "kind"), [("mpich", "hydra"), ("impi", "intel"), ("openmpi", "seq"), ("openmpi", "rankfile")]
)
def test_every_rank_sits_on_the_host_of_the_file(
    lab: Lab, ranks_program: Program, mpi: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = ranks_program(mpi)
    file = tmp_path / kind
    words = ["--pattern", "stencil:8x2", "--topology", str(lab.topology_path), "--placement", "random:1"]
    assert main(["map", *words, "--write", f"{kind}={file}", "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert hosts != lab.place("random:1")
    if kind == "rankfile":  # a core for each rank: the hosts have two, and nobody shares one
        slots = slots_by_host(file)
        assert {host: len(places) for host, places in slots.items()} == Counter(hosts)
        assert all(sorted(places) == list(range(len(places))) for places in slots.values())
        assert max(len(places) for places in slots.values()) == 2
    command = with_file(lab.command(mpi, lab.place("block"), [str(program)]), kind, file)
    done = run_to_end(command, timeout_s=60, capture=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split()[:2] for line in done.stdout.splitlines()]
    assert rows == [[str(rank), host] for rank, host in enumerate(hosts)]


@pytest.mark.parametrize("mpi", ["mpich", "openmpi", "impi"])
def test_a_host_list_is_a_placement_too(
    lab: Lab, ranks_program: Program, mpi: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = ranks_program(mpi)
    file = tmp_path / "hosts"
    words = ["--pattern", "ring", "--topology", str(lab.topology_path), "--placement", "random:2"]
    assert main(["map", *words, "--write", f"slurm={file}", "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    done = lab.run([str(program)], mpi=mpi, placement=str(file), capture=True, timeout_s=60)
    assert [line.split()[1] for line in done.stdout.splitlines()] == hosts


@pytest.mark.parametrize("ranks", [None, 7])
def test_a_rankfile_gives_out_each_core_of_uneven_hosts_once(ranks: int | None, tmp_path: Path) -> None:
    machine = _core.Machine.synthetic("2leaf:2+1node:2socket:1+2core")
    cores = Counter(_core.Job(machine).host_of(place) for place in range(_core.Job(machine).size))
    file = tmp_path / "rankfile"
    topology = tmp_path / "topology.json"
    topology.write_text(json.dumps(machine.to_json()), encoding="utf-8")
    words = ["--pattern", "ring", "--topology", str(topology), "--placement", "random:3"]
    if ranks is not None:
        words += ["--ranks", str(ranks)]
    assert main(["map", *words, "--write", f"rankfile={file}"]) == 0
    slots = slots_by_host(file)
    assert sum(len(places) for places in slots.values()) == (ranks or sum(cores.values()))
    for host, places in slots.items():
        assert len(set(places)) == len(places)
        assert max(places) < cores[host]
