"""What `palmette-lab simulate` writes, keeps and leaves out when asked to, on eight ranks; rivals that are wrong or
crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.bench.text import size_text
from palmette.units import time_text
from palmette_lab.simulate import simgrid

Call = Callable[..., Any]
SMALL = (
    "--machine", "2leaf@3GB/s~2.45us:2node@1.5GB/s~1.57us:2core", "--collectives", "gather,alltoall", "--sizes",
    "64,4K",
    "--placement", "block,random:1", "--rivals", "mpich,ompi",
)  # fmt: skip


def cells_of(palmette_lab: Call, *words: str | Path) -> list[dict[str, Any]]:
    """What the command says as JSON."""
    result = palmette_lab("simulate", *words, "--json")
    assert result.status == 0, result.err
    cells: list[dict[str, Any]] = json.loads(result.out)["cells"]
    return cells


def test_the_pages_that_are_written_have_every_cell(smpirun: str, tmp_path: Path, palmette_lab: Call) -> None:
    results, page = tmp_path / "results.md", tmp_path / "page.html"
    cells = cells_of(palmette_lab, *SMALL, "--write-results", results, "--page", page)
    assert len(cells) == 2 * 2 * 2
    lines = results.read_text(encoding="utf-8").splitlines()
    drawn = json.loads(page.read_text(encoding="utf-8").split('id="cells">')[1].split("</script>")[0])
    assert len(drawn) == len(cells)
    for cell in cells:
        start = lines.index(f"### {cell['collective']}")
        row = next(line for line in lines[start:] if line.startswith(f"| {size_text(cell['size_bytes'])} |"))
        own = f"{time_text(cell['palmette_s'])} / {cell['ratio']:.2f} {cell['best_rival']} / "
        assert own + f"{cell['multiple_of_bound']:.2f}x" in row.split("|")[2 if cell["placement"] == "block" else 3]
    # Each says how it is made again, without the other.
    (command,) = (line.strip() for line in lines if line.startswith("    palmette"))
    assert f"--write-results {results}" in command
    assert "--page" not in command
    assert f"--page {page}" in page.read_text(encoding="utf-8")


def test_what_was_kept_is_read_again_and_nothing_simulated(
    smpirun: str, tmp_path: Path, palmette_lab: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    first = cells_of(palmette_lab, *SMALL, "--keep", kept)
    files = {file.name for file in kept.iterdir()}
    assert len(files) == 2 * 2 * 3
    monkeypatch.setattr(simgrid, "start", None)  # would fail if it were called
    assert cells_of(palmette_lab, *SMALL, "--keep", kept) == first
    assert {file.name for file in kept.iterdir()} == files


def test_a_quarter_of_the_uplinks_takes_longer(smpirun: str, palmette_lab: Call) -> None:
    whole, quarter = (cells_of(palmette_lab, *SMALL, "--uplink-share", share) for share in ("1", "0.25"))
    for wide, narrow in zip(whole, quarter, strict=True):
        assert narrow["bound_s"] >= wide["bound_s"]
        if (wide["collective"], wide["size_bytes"]) == ("alltoall", 4096):
            # 16 blocks each way over 0.75 GB/s.
            rivals = [(narrow["rivals_s"][who], wide["rivals_s"][who]) for who in ("mpich", "ompi")]
            for after_s, before_s in [(narrow["palmette_s"], wide["palmette_s"]), *rivals]:
                assert after_s >= 16 * 4096 / 0.75e9 > before_s


def test_without_checks_times_are_the_same_and_that_is_said(smpirun: str, palmette_lab: Call) -> None:
    checked, timed = cells_of(palmette_lab, *SMALL), cells_of(palmette_lab, *SMALL, "--no-checks")
    assert all(cell["checked"] for cell in checked)
    assert not any(cell["checked"] for cell in timed)
    for one, other in zip(checked, timed, strict=True):
        # As near as the solver shares links among the messages of an all-to-all.
        assert other["palmette_s"] == pytest.approx(one["palmette_s"], rel=1e-4)
        assert other["rivals_s"] == pytest.approx(one["rivals_s"], rel=1e-4)
    said = " ".join(palmette_lab("simulate", *SMALL, "--no-checks").out.split())
    assert "without comparing the results, which take too much memory: alltoall 64 B, alltoall 4K, gather 64 B" in said


def test_a_rival_that_is_really_wrong_is_told_and_its_time_counts_nowhere(
    smpirun: str, tmp_path: Path, palmette_lab: Call
) -> None:
    # SMPI's mvapich2 returns from such an allgather at once, with nothing done: no time would be shorter.
    words = (
        "--machine", "8node@1GB/s:16core", "--collectives", "allgather", "--sizes", "64,4K", "--rivals", "mvapich2,rdb",
        "--keep", tmp_path,
    )  # fmt: skip
    small, large = cells_of(palmette_lab, *words)
    assert set(small["rivals_s"]) == {"rdb"}
    assert small["best_rival"] == "rdb"
    assert small["ratio"] == pytest.approx(small["palmette_s"] / small["rivals_s"]["rdb"])
    assert set(large["rivals_s"]) == {"mvapich2", "rdb"}
    result = palmette_lab("simulate", *words)
    assert result.status == 0, "a rival's fault isn't palmette's"
    assert "mvapich2 allgather, block: wrong result at 64 B" in result.out
    (row,) = (line for line in result.out.splitlines() if line.strip().startswith("64 B"))
    assert " rdb " in row


def test_a_rival_that_really_crashes_is_told_and_compared_with_nowhere(smpirun: str, palmette_lab: Call) -> None:
    words = ("--machine", "4node@1GB/s:16+8+8+8core", "--collectives", "gather", "--sizes", "8,64", "--rivals")
    for cell in cells_of(palmette_lab, *words, "impi,ompi"):
        assert set(cell["rivals_s"]) == {"ompi"}
    result = palmette_lab("simulate", *words, "impi,ompi")
    assert result.status == 0, "a rival's fault isn't palmette's"
    assert "impi gather, block: the simulator crashed (SIGSEGV), from 8 B on" in result.out
    alone = palmette_lab("simulate", *words, "impi")
    assert alone.out.count("none is right") == 2
