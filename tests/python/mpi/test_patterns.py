"""Findings that name how ranks communicate: chains, many small messages, uneven bytes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.analysis import Trace
from palmette.record.findings import Finding

from .conftest import Mpi, _installed

pytestmark = pytest.mark.mpi

SOURCE = Path(__file__).parent / "programs" / "patterns.c"
RANKS = 4


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trace]:
    """Return the trace of a scenario."""
    cc = shutil.which("cc")
    if cc is None or shutil.which("addr2line") is None:
        pytest.skip("no C compiler, or no binutils")
    folder = tmp_path_factory.mktemp("patterns")
    mpi: Mpi = _installed("mpich", folder)
    prefix = mpi.installation.prefix
    link = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lmpi"]
    subprocess.run([cc, "-O0", "-g", SOURCE, "-o", folder / "patterns", *link], check=True, capture_output=True)

    def run(scenario: str) -> Trace:
        settings = {"PALMETTE_TRACE": str(folder / scenario)}
        ran = mpi.run(RANKS, folder / "patterns", scenario, settings=settings)
        assert ran.status == 0, ran.text
        return Trace(folder / scenario)

    return run


def told(trace: Trace, kind: str, mark: str) -> Finding:
    line = next(n for n, text in enumerate(SOURCE.read_text("utf-8").splitlines(), 1) if f"/* {mark} */" in text)
    found = [one for one in trace.findings if one.kind == kind]
    assert len(found) == 1, [one.sentence for one in trace.findings]
    assert f" at patterns.c:{line}: " in found[0].sentence
    return found[0]


def test_a_serialised_sweep_is_a_chain_through_its_ranks(traced: Callable[[str], Trace]) -> None:
    found = told(traced("chain"), "chain", "chain")
    assert found.ranks == (0, 1, 2, 3)
    assert "each rank waits for the one before it, a chain through ranks 0, 1, 2, 3, " in found.sentence


def test_many_small_messages_are_told_with_what_one_would_take(traced: Callable[[str], Trace]) -> None:
    found = told(traced("small"), "small_messages", "small")
    counted = re.search(r": ([\d,]+) messages of 8 bytes, up to [\d,]+ in a row", found.sentence)
    # Where the scheduler puts the rank aside a row ends, and one that is too short isn't counted.
    assert counted and 3000 < int(counted[1].replace(",", "")) <= 6000, found.sentence
    assert re.search(r"one message of \S+B takes about \S+ us \(by the model", found.sentence), found.sentence


def test_uneven_bytes_are_told_by_rank_and_in_the_matrix(traced: Callable[[str], Trace]) -> None:
    trace = traced("uneven")
    found = told(trace, "uneven_bytes", "uneven")
    # 16 of 19 blocks to others: rank 1 sends none of its own to itself, the others three quarters.
    sent = {(a, b): 0.0 if a == b else (16 if b == 1 else 1) * 12 * 200 * 8.0 for a in range(4) for b in range(4)}
    share = sum(size for (_, b), size in sent.items() if b == 1) / sum(sent.values())
    assert f"rank 1 gets {share:.0%} of all bytes" in found.sentence
    messages, sizes = trace.matrix
    assert {(a, b): sizes[a, b] for a, b in sent} == sent
    assert messages.sum() == 12 * 12
