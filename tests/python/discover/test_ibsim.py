"""The real ibnetdiscover against a simulated fabric. Needs ibsim, opensm and infiniband-diags."""

from __future__ import annotations

import io
import os
import runpy
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from discover.listing import discover_text, tree_of, up

ROOT = Path(__file__).resolve().parents[3]
SEARCH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
SHIM = next(iter(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")), None)


@dataclass
class Ibsim:
    """A running ibsim: how to call tools in it, and the listing that it plays."""

    environment: dict[str, str]
    text: str

    def ibnetdiscover(self, *options: str) -> str:
        tool = shutil.which("ibnetdiscover", path=SEARCH)
        assert tool is not None
        return subprocess.run(
            [tool, *options], env=self.environment, capture_output=True, text=True, check=True, timeout=20
        ).stdout


def _fat_tree() -> str:
    bench = runpy.run_path(str(ROOT / "studies" / "fat_tree.py"))
    text = io.StringIO()
    bench["write_fat_tree"](text, pods=3, leaves=2, uplinks=2, hosts=4, cores=1)
    # ibsim plays no speed above EDR.
    return text.getvalue().replace(bench["SPEED"], "4xQDR")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ibsim]:
    missing = [tool for tool in ("ibsim", "opensm", "ibnetdiscover") if shutil.which(tool, path=SEARCH) is None]
    if missing or SHIM is None:
        pytest.skip(f"not installed: {', '.join(missing) or 'libumad2sim'} (apt: ibsim-utils opensm infiniband-diags)")
    folder = tmp_path_factory.mktemp("ibsim")
    text = _fat_tree()
    (folder / "fabric.net").write_text(text)
    (folder / "osm").mkdir()
    first = next(line.split('"')[1] for line in text.splitlines() if line.startswith("Ca"))
    own = {"IBSIM_SOCKNAME": f"palmette{os.getpid()}", "SIM_HOST": first}
    environment = os.environ | own | {"LD_PRELOAD": str(SHIM)}
    environment |= {"OSM_TMP_DIR": f"{folder}/osm/", "OSM_CACHE_DIR": f"{folder}/osm/"}
    with open(folder / "ibsim.log", "w") as log:
        command = ["ibsim", "-s", "-n", "-N", "128", "-S", "64", "-P", "1024", "fabric.net"]
        simulator = subprocess.Popen(
            command, cwd=folder, env=os.environ | own, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        _wait(lambda: "simulator ready" in (folder / "ibsim.log").read_text(), "ibsim")
        # Every lid is 0 until a subnet manager has been there once.
        opensm = shutil.which("opensm", path=SEARCH)
        assert opensm is not None
        subprocess.run(
            [opensm, "-o", "-f", f"{folder}/osm.log"],
            env=environment,
            cwd=folder,
            capture_output=True,
            timeout=30,
            check=False,
        )
        _wait((folder / "osm" / "opensm-subnet.lst").exists, "opensm")
        yield Ibsim(environment, text)
    finally:
        simulator.terminate()
        simulator.wait(timeout=10)


def _wait(ready: object, what: str) -> None:
    assert callable(ready)
    deadline = time.monotonic() + 10
    while not ready():
        if time.monotonic() > deadline:
            pytest.skip(f"{what} didn't start here")
        time.sleep(0.05)


@pytest.mark.parametrize("options", [[], ["-p"], ["-g"], ["-s"], ["-f"]])
def test_every_output_of_the_real_tool_gives_the_machine_that_the_simulator_plays(
    simulated: Ibsim, tmp_path: Path, options: list[str]
) -> None:
    found = discover_text(tmp_path, simulated.ibnetdiscover(*options))
    expected = discover_text(tmp_path, simulated.text)
    assert found.machine == expected.machine
    assert tree_of(found)["pod2"] == ["pod1-leaf0", "pod1-leaf1"]
    assert up(found, "pod2") == pytest.approx(2 * 4e9)


def test_a_node_name_map_renames_switches_and_no_host(simulated: Ibsim, tmp_path: Path) -> None:
    leaf = next(line.split('"')[1] for line in simulated.text.splitlines() if line.startswith("Switch"))
    host = next(line.split('"')[1] for line in simulated.text.splitlines() if line.startswith("Ca"))
    names = tmp_path / "names.map"
    names.write_text(f'0x{leaf[2:]} "first-leaf"\n0x{host[2:]} "wrong-name HCA-1"\n')
    tree = tree_of(discover_text(tmp_path, simulated.ibnetdiscover("--node-name-map", str(names))))
    assert tree["first-leaf"][0] == "n00000"
