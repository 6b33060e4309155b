"""PALMETTE_CHECK names rank and line of each kind of mistake, of blocking and nonblocking calls, served or not."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import ROOT, Mpi, ProgramResult, forced

pytestmark = pytest.mark.mpi

CHECK = {"PALMETTE_CHECK": "1"}
PASSED_THROUGH = forced(bcast="mpi", allreduce="mpi", barrier="mpi")
SOURCE = ROOT / "tests" / "mpi" / "mistakes.c"
SCRIPT = Path(__file__).parent / "programs" / "mistakes.py"
NAMES = {"blocking": "MPI_{}", "nonblocking": "MPI_I{}", "persistent": "MPI_{}_init"}


def line(mark: str, source: Path = SOURCE) -> str:
    """Return file and line that end with a comment."""
    for number, text in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        if text.rstrip(" */").endswith(mark):
            return f"{source.name}:{number}"
    raise AssertionError(f"{source} has no {mark}")


def named(form: str, function: str) -> str:
    return NAMES[form].format(function.lower() if form == "nonblocking" else function)


def told(ran: ProgramResult) -> str:
    """Return what palmette has said, in one line; the job must have ended by it."""
    assert ran.status != 0, ran.text
    # Open MPI puts a zero between what two processes say.
    lines = [text for text in ran.err.replace("\0", "").splitlines() if text.startswith(("palmette: ", "  rank"))]
    assert lines, ran.text
    return " | ".join(lines)


WORDS = {
    "root": ("rank 2 passes root 1, but ranks 0 and 1 pass root 0", "Bcast"),
    "count": ("rank 2 passes a count of 12 bytes, but ranks 0 and 1 pass a count of 16 bytes", "Bcast"),
    "type": ("rank 2 passes a type of floating-point numbers, but ranks 0 and 1 pass a type of integers", "Allreduce"),
    "operation": ("rank 2 passes the operation MPI_MAX, but ranks 0 and 1 pass the operation MPI_SUM", "Allreduce"),
}


@pytest.mark.parametrize("kind", [*WORDS, "order"])
@pytest.mark.parametrize("form", ["blocking", "nonblocking"])
def test_a_mistake_is_told_with_its_ranks_and_lines(mpi: Mpi, kind: str, form: str) -> None:
    served = kind in ("root", "operation")
    if mpi.name == "openmpi":
        served = not served
    ran = mpi.run(3, "mistakes", kind, form, settings=CHECK | ({} if served else PASSED_THROUGH), timeout_s=60)
    text = told(ran)
    if kind == "order":
        words = f"rank 2 reaches {named(form, 'Allreduce')}, but ranks 0 and 1 reach {named(form, 'Bcast')}: let all"
        assert f"palmette: a collective on a (3 ranks): {words}" in text, ran.text
    else:
        words, function = WORDS[kind]
        assert f"palmette: {named(form, function)} on a (3 ranks): {words}" in text, ran.text
    assert f"rank 2 at {line(f'rank 2: {kind}')}" in text, ran.text
    assert f"rank 0 at {line(f'others: {kind}')}" in text, ran.text


@pytest.mark.parametrize("form", ["blocking", "nonblocking", "persistent"])
def test_without_a_mistake_nothing_is_told(mpi: Mpi, form: str) -> None:
    ran = mpi.run(3, "mistakes", "none", form, settings=CHECK)
    ran.assert_right()
    assert "palmette" not in ran.err, ran.text


def test_initialised_operations_are_compared_too(mpi: Mpi) -> None:
    text = told(mpi.run(3, "mistakes", "root", "persistent", settings=CHECK, timeout_s=60))
    assert "palmette: MPI_Bcast_init on a (3 ranks): rank 2 passes root 1" in text


def test_ranks_that_wait_for_each_other_in_two_communicators_are_told(mpi: Mpi) -> None:
    ran = mpi.run(3, "mistakes", "communicators", settings=CHECK, timeout_s=60)
    text = told(ran)
    assert "collectives in another order" in text, ran.text
    assert f"ranks 0 and 1 are in MPI_Barrier on a (3 ranks) at {line('others: communicators')}" in text, ran.text
    here = line("rank 2: communicators")
    assert f"rank 2 is in MPI_Barrier on b (3 ranks) at {here} and waits for ranks 0 and 1" in ran.err, ran.text


def test_a_rank_that_ends_early_is_told(mpi: Mpi) -> None:
    ran = mpi.run(3, "mistakes", "finalize", settings=CHECK, timeout_s=60)
    text = told(ran)
    assert "rank 2 reaches MPI_Finalize, but ranks 0 and 1 reach MPI_Barrier" in text, ran.text
    assert f"rank 0 at {line('others: finalize')}" in text, ran.text


def heard(mpi: Mpi, kind: str, wanted: list[str], seconds: float = 60) -> str:
    """Return what a job that hangs says, until all that is wanted was said; then end it."""
    from palmette.run import prepare

    words = [*mpi.launch(3), str(mpi.program("mistakes")), kind]
    environment = mpi.environment()
    prepared = prepare(words, dict(CHECK), environment)
    with subprocess.Popen(
        prepared.command, env=environment | prepared.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    ) as job:  # fmt: skip
        assert job.stderr is not None
        text, until = "", time.monotonic() + seconds
        try:
            while time.monotonic() < until and not all(one in text for one in wanted):
                text += job.stderr.readline()
        finally:
            job.terminate()
            job.wait(30)
    return text


def test_ranks_of_different_leaders_say_for_whom_they_wait(mpi: Mpi) -> None:
    wanted = [
        f"ranks 0 and 1 are in MPI_Barrier on a (3 ranks) at {line('others: groups')} and wait for rank 2",
        f"rank 0 is in MPI_Barrier on others (2 ranks) at {line('rank 2: groups')} and waits for rank 1",
    ]
    text = heard(mpi, "groups", wanted)
    assert all(one in text for one in wanted), text


def test_whom_rank_0_leaves_alone_says_so(mpi: Mpi) -> None:
    wanted = [
        f"rank 1 is in MPI_Barrier on a (3 ranks) at {line('others: receive')} and waits since 1.5 s for rank 0",
        "rank 2 is in MPI_Barrier on a",
    ]
    text = heard(mpi, "receive", wanted)
    assert all(one in text for one in wanted), text


@pytest.mark.parametrize("form", ["blocking", "nonblocking"])
def test_lines_of_python_are_named(mpi: Mpi, form: str) -> None:
    pytest.importorskip("mpi4py")
    ran = mpi.run(3, Path(sys.executable), SCRIPT, form, settings=CHECK, timeout_s=60)
    text = told(ran)
    suffix = ", nonblocking" if form == "nonblocking" else ""
    function = "start" if suffix else "advance"
    assert re.search("rank 1 passes (root 1|the operation MPI_MAX)", text), ran.text
    assert f"rank 1 at {line('# rank 1' + suffix, SCRIPT)} ({function})" in text, ran.text
    assert f"rank 0 at {line('# others' + suffix, SCRIPT)} ({function})" in text, ran.text
