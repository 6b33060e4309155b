"""The claims of slides: their commands, and the pages that they write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CLAIMS = ROOT / "studies" / "claims.py"
RESULTS = ROOT / "docs" / "results"
PAGES = ("2026-11-29-seed-claims", "2026-11-30-claims-topology", "2026-11-30-claims-leaders",
         "2026-11-30-claims-composed", "2026-11-30-claims-order")  # fmt: skip
"""In the order of the claims."""
VERDICTS = ("**shown**", "**shown in direction**", "**refuted**")


def run(*words: str | Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({"PATH": path} if path is not None else {})
    command = [sys.executable, str(CLAIMS), *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def names() -> list[str]:
    """Every claim, in the order of the page."""
    return [line.split()[0] for line in run("list").stdout.splitlines()]


def skeleton(folder: Path) -> Path:
    """A page without figures."""
    page = folder / "page.md"
    parts = [f"<!-- {name} -->\nold\n<!-- /{name} -->" for name in ("machine", "summary", *names())]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


def rows_of(page: Path) -> dict[str, list[str]]:
    """The cells of the summary, by claim."""
    inside = page.read_text(encoding="utf-8").split("<!-- summary -->")[1].split("<!-- /summary -->")[0]
    rows = [line.strip("| ").split(" | ") for line in inside.strip().splitlines()[2:]]
    return {row[0].split("](#")[1].rstrip(")"): row for row in rows}


def test_cheap_claims_write_their_part_of_a_page(tmp_path: Path) -> None:
    page = skeleton(tmp_path)
    cheap = ["bytes", "bandwidth", "gain"]
    done = run(*cheap, "--small", "--write", page)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = rows_of(page)
    assert list(rows) == cheap
    assert all(row[3] in VERDICTS for row in rows.values())
    # From the bounds, without timing: what a switch saves of a node's bytes.
    assert rows["bytes"][2].startswith("1.000, 1.500, 1.750 at 2, 4, 8 nodes")
    assert rows["bytes"][3] == "**shown**"
    assert rows["gain"][2].startswith("at 2 nodes the network can save 0 %")
    text = page.read_text(encoding="utf-8")
    assert "processors (" in text
    assert text.count("| --- |") >= 2 * len(cheap)
    assert "<!-- chunks -->\nold\n<!-- /chunks -->" in text
    assert json.loads((tmp_path / "page" / "bytes.json").read_text(encoding="utf-8"))["bytes"]


def test_a_tree_of_switches_is_flat_where_hosts_are_not() -> None:
    if shutil.which("smpirun") is None or not (ROOT / "python/palmette/bin/simbench.smpi").is_file():
        pytest.skip("SimGrid isn't here: `make simulate`")
    done = run("small-nodes", "--small")
    assert done.returncode == 0, done.stdout + done.stderr
    cells = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    times = {row[0].strip(): [float(cell.split()[0]) for cell in row[1:4] if cell.strip()] for row in cells}
    (network, _, hosts), (_, _, more) = times["16"], times["64"]
    assert network < hosts < more
    assert times["32"][0] == pytest.approx(network, rel=0.02)
    model = {row[0].strip(): float(row[4].split()[0]) for row in cells}
    assert times["64"][0] == pytest.approx(model["64"], rel=0.05), "the closed form is the simulation's"


def test_what_cannot_be_run_says_why_and_leaves_the_page(tmp_path: Path) -> None:
    page = skeleton(tmp_path)
    before = page.read_text(encoding="utf-8")
    done = run("small-nodes", "--small", "--write", page, path=str(tmp_path))
    assert done.returncode == 1
    assert "not run: SimGrid isn't here" in done.stdout
    assert page.read_text(encoding="utf-8") == before


def test_an_unknown_claim_is_named() -> None:
    done = run("smal-nodes")
    assert done.returncode == 2
    assert "smal-nodes is no claim; there are small-sizes," in done.stderr


def test_each_claim_is_on_one_published_page_with_its_verdict() -> None:
    published: list[str] = []
    for name in PAGES:
        page = RESULTS / f"{name}.md"
        text, rows = page.read_text(encoding="utf-8"), rows_of(page)
        published += rows
        for claim, row in rows.items():
            assert row[3] in VERDICTS, claim
            assert all(row[i].strip() for i in range(6)), claim
            assert f'<a id="{claim}"></a>' in text
    assert published == names()


@pytest.mark.parametrize("claim", ["racks", "scatter-gather", "rd-scales", "broadcast-formulas", "gains-by-size"])
def test_claims_by_the_model_are_what_their_page_says(claim: str) -> None:
    # Nothing is timed: the figures are the same on every machine.
    done = run(claim, "--small")
    assert done.returncode == 0, done.stdout + done.stderr
    (page,) = (RESULTS / f"{name}.md" for name in PAGES if f"<!-- {claim} -->" in (RESULTS / f"{name}.md").read_text())
    text = page.read_text(encoding="utf-8")
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ") and "---" not in line]
    assert len(rows) > 2
    assert all(line in text for line in rows), "the page has other figures: write it again"
