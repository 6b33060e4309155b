"""tools/node_check.py on the test driver: what it packs is all that it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from .fake import FAKES

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tools" / "node_check.py"

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unpacked folder, far from the repository."""
    if not (FAKES / "libcuda.so.1").is_file():
        pytest.skip("the test driver isn't built")
    folder = tmp_path_factory.mktemp("packed")
    archive = folder / "node-check.tar"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "pack", str(archive), "--without-wheels"],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if "not built" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert archive.stat().st_size < 60_000_000
    with tarfile.open(archive) as unpacked:
        unpacked.extractall(folder, filter="data")
    return folder / "node-check"


def run(packed: Path, output: Path, *options: str, **settings: str) -> dict[str, Any]:
    """Run steps in the unpacked folder; return them by name."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PALMETTE_")} | settings
    words = ["run", "--short", "--ranks", "2", "--minutes", "4", "--output", str(output), *options]
    done = subprocess.run(
        [sys.executable, "-I", str(packed / "node_check.py"), *words],
        cwd=packed,
        env=env,
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (output / "results.md").read_text(encoding="utf-8").startswith("# Check of a node")
    steps: dict[str, Any] = json.loads((output / "results.json").read_text(encoding="utf-8"))["steps"]
    return steps


def test_all_steps_run_on_the_test_driver(packed: Path, tmp_path: Path) -> None:
    steps = run(packed, tmp_path, "--fake")
    problems = {name: step["problem"] for name, step in steps.items() if "problem" in step}
    assert not problems.keys() - {"kernels"}, problems
    assert problems.get("kernels", "no kernels").endswith("no kernels"), problems
    if "kernels" not in problems:
        assert steps["kernels"]["found"]["right"]
        assert not steps["kernels"]["found"]["wrong"]
    assert steps["machine"]["found"]["cuda"]["devices"][0]["name"].startswith("Fake device")
    assert steps["ipc"]["found"] == {"works": True}
    rows = steps["costs"]["found"]["rows"]
    assert {row["driver"] for row in rows} == {False, True}
    assert any(row["call"].endswith("other pages") for row in rows)
    for row in steps["collectives"]["found"]["runs"]:
        assert row.get("wrong") == [], row
        assert {call["function"] for call in row["device"]["calls"]} >= {"allreduce", "bcast"}
    crossover = steps["crossover"]["found"]
    assert all(row["staging_s"] > 0 and row["own_copies_s"] > 0 for row in crossover["rows"])
    assert steps["nccl"]["found"]["one_rank_right"] is True
    for row in steps["one-node"]["found"]["rows"]:
        assert row["mean"] > 0
        assert not row["wrong"]
        assert {cell["size_bytes"] for cell in row["cells"]} == {64, 65536}
        assert all(cell["alone_s"] > 0 and cell["palmette_s"] > 0 and cell["pairs"] > 0 for cell in row["cells"])


def test_what_can_not_be_done_says_why_and_the_rest_goes_on(packed: Path, tmp_path: Path) -> None:
    """The reason is told without a driver, and where the driver refuses."""
    steps = run(packed, tmp_path / "none", "--steps", "machine,ipc,collectives,one-node")
    if steps["machine"]["found"]["cuda"] is None:
        assert "libcuda.so.1" in steps["ipc"]["found"]["problem"]
        assert "libcuda.so.1" in steps["collectives"]["found"]["runs"][0]["problem"]
    assert "rows" in steps["one-node"]["found"]
    steps = run(packed, tmp_path / "refused", "--fake", "--steps", "ipc,machine", PALMETTE_FAKE_CUDA="no_ipc")
    assert "cuIpcGetMemHandle" in steps["ipc"]["found"]["problem"]
    assert "found" in steps["machine"]
