"""`palmette doctor --site` on hosts that differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.doctor.site import NODE_CHECK, ask, compare
from palmette_lab.lab import Lab

pytestmark = pytest.mark.root


def test_a_host_with_another_file_of_settings_is_found(make_lab: Callable[[str, str], Lab], tmp_path: Path) -> None:
    if not NODE_CHECK.is_file():
        pytest.skip(f"no {NODE_CHECK.name}: make build")
    name = f"site{os.getpid()}"
    lab = make_lab("2leaf:2node", name)
    site, other = tmp_path / "site", tmp_path / "other"
    site.mkdir()
    (site / "settings").write_text("PALMETTE_WAIT=poll\n")
    (site / "topology.json").write_text(lab.topology_path.read_text())
    other.write_text("PALMETTE_WAIT=mpi\n")
    # Each host has mounts of its own, so that h3 sees another file under the same name.
    palmette_lab = str(Path(sys.executable).with_name("palmette-lab"))
    words = [palmette_lab, "exec", "--name", name, "h3", "mount", "--bind", str(other), str(site / "settings")]
    subprocess.run(words, check=True)
    words = [palmette_lab, "run", "--name", name, "--mpi", "mpich", "--ppn", "1"]
    told = ask([*words, "--env", f"PALMETTE_SITE={site}", "--"])
    found = compare(told)
    assert found.hosts == ["h0", "h1", "h2", "h3"]
    by_name = {one.what: {held.value: held.hosts for held in one.held} for one in found.differences}
    assert by_name["PALMETTE_WAIT"] == {"poll": ["h0", "h1", "h2"], "mpi": ["h3"]}
    assert str(site / "settings") in by_name
    assert not found.ok
    assert not found.problems
    assert json.loads(json.dumps(found.to_json()))["topology"] == str(site / "topology.json")
