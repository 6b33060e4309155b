"""What palmette writes for Slurm and reads from it, with Slurm's own programs."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from discover.listing import tree_of
from palmette.cli.main import main
from palmette.discover.slurm import discover_slurm
from palmette.discover.slurm_env import discover_env
from slurm.cluster import in_slurm, require_slurm

pytestmark = pytest.mark.root

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
SWITCHES = {"leaf0": ["h0", "h1", "h2"], "leaf1": ["h3", "h4", "h5"], "leaf2": ["h6", "h7"]}
PLACED = "'echo $SLURM_PROCID $SLURMD_NODENAME'"
ADDRESS = "'echo $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN'"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder with what Slurm's programs printed, and the hosts that palmette gave the ranks."""
    require_slurm()
    folder = tmp_path_factory.mktemp("slurm")
    words = ["map", "--pattern", "ring", "--machine", LAB, "--placement", "random:1", "--method", "as_placed", "--json"]
    with contextlib.redirect_stdout(io.StringIO()) as mapped:
        assert main([*words, "--write", f"slurm={folder / 'ranks.txt'}"]) == 0
    ran = in_slurm(
        folder,
        SWITCHES,
        2,
        f"SLURM_HOSTFILE=ranks.txt srun --distribution=arbitrary -n 16 sh -c {PLACED} > placed.txt\n"
        "scontrol show topology > topology.txt\n"
        f"srun -N 8 --ntasks-per-node=1 sh -c {ADDRESS} > addresses.txt\n",
    )
    assert ran.returncode == 0, ran.stderr
    return folder, json.loads(mapped.getvalue())["hosts"]


def test_srun_places_ranks_as_the_written_file_says(slurm: tuple[Path, list[str]]) -> None:
    folder, hosts = slurm
    placed = dict(line.split() for line in (folder / "placed.txt").read_text().splitlines())
    assert [placed[str(rank)] for rank in range(16)] == hosts
    # Not by chance: Slurm's own order is another one.
    assert hosts != sorted(hosts)


def test_the_tree_of_scontrol_is_the_one_that_slurm_was_given(slurm: tuple[Path, list[str]]) -> None:
    tree = tree_of(discover_slurm(str(slurm[0] / "topology.txt")))
    assert tree == {"spine": list(SWITCHES), **SWITCHES}
    assert tree == tree_of(discover_slurm(str(slurm[0] / "topology.conf")))


def test_the_addresses_of_a_job_tell_the_same_tree(slurm: tuple[Path, list[str]]) -> None:
    tree = tree_of(discover_env(str(slurm[0] / "addresses.txt")))
    assert tree == {"spine": list(SWITCHES), **SWITCHES}


def test_without_a_file_the_command_reads_what_stands_beside_slurm_conf(
    slurm: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm[0] / "slurm.conf"))
    assert main(["discover", "--from", "slurm", "-o", str(tmp_path / "topology.json")]) == 0
    found = json.loads((tmp_path / "topology.json").read_text())
    assert [source["path"] for source in found["sources"]] == [str(slurm[0] / "topology.conf")]
