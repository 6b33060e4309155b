"""PALMETTE_CHECK: a rank that passes what doesn't fit the others is named, and nobody hangs."""

from __future__ import annotations

import re

import pytest

from .conftest import Mpi, ProgramResult, pretended

pytestmark = pytest.mark.mpi

CHECK = {"PALMETTE_CHECK": "1"}


def expected(ran: ProgramResult) -> list[tuple[str, str]]:
    """Return (function, words) of each mistake that the program made."""
    return re.findall(r"^expect: ([^:]+): (.*)$", ran.out, re.MULTILINE)


@pytest.mark.parametrize("ranks", [4, 7])
def test_the_message_names_rank_argument_and_value(mpi: Mpi, ranks: int) -> None:
    ran = mpi.run(ranks, "disagreements", settings={**CHECK, **pretended(ranks, "0012")}, timeout_s=100)
    ran.assert_right()
    told = [line for line in ran.err.splitlines() if line.startswith("palmette: ") and " on quarrel " in line]
    mistakes = expected(ran)
    assert len(mistakes) > 20
    assert len(told) == len(mistakes), ran.text
    for line, (function, words) in zip(told, mistakes, strict=True):
        assert line.startswith(f"palmette: {function} on quarrel ({ranks} ranks): "), line
        assert words in line


def test_what_the_others_pass_and_what_to_do_is_told_as_well(mpi: Mpi) -> None:
    ran = mpi.run(4, "disagreements", settings=CHECK)
    assert (
        "palmette: MPI_Bcast on quarrel (4 ranks): rank 2 passes root 1, but ranks 0, 1 and 3 pass root 0: "
        "pass the same root on all ranks" in ran.err
    )


def test_a_fatal_error_handler_ends_the_job(mpi: Mpi) -> None:
    ran = mpi.run(4, "disagreements", "--fatal", 1, settings=CHECK, timeout_s=60)
    assert ran.status != 0
    assert "rank 2 passes root 1" in ran.err, ran.text
    assert ran.closing_lines() == []


def test_right_programs_stay_right(mpi: Mpi) -> None:
    ran = mpi.run(5, "random_arguments", "--cases", 200, settings={**CHECK, **pretended(5, "001")})
    ran.assert_right()
    assert " pass" not in ran.err, ran.text
