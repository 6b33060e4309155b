"""MPI_T: palmette's variables stand behind the MPI's, whose indices stay as they are."""

from __future__ import annotations

import re

import pytest

from palmette import settings

from .conftest import Mpi, ProgramResult, forced

pytestmark = pytest.mark.mpi


def listed(ran: ProgramResult, kind: str) -> dict[str, int]:
    """Return the index of each variable by name, as they were told before MPI_Init ("pvar") or after ("pvar again")."""
    found = re.findall(rf"^{kind} (\d+) (\S+)$", ran.out, re.MULTILINE)
    return {name: int(index) for index, name in found}


def read(ran: ProgramResult) -> dict[str, str]:
    """Return what was read last, by name."""
    return dict(re.findall(r"^read (\S+) ?(.*)$", ran.out, re.MULTILINE))


def test_ours_follow_the_mpis_own(mpi: Mpi) -> None:
    alone = mpi.run(1, "tool_variables", preload=False)
    alone.assert_right()
    ran = mpi.run(1, "tool_variables", settings=forced(allreduce="linear"))
    ran.assert_right()
    for kind, prefix, count in (("pvar", "palmette_", 6), ("cvar", "PALMETTE_", len(settings.declared()))):
        theirs, all_ = listed(alone, kind), listed(ran, kind)
        ours = {name: index for name, index in all_.items() if name.startswith(prefix)}
        assert len(ours) == count
        assert {name: index for name, index in all_.items() if name not in ours} == theirs
        assert min(ours.values()) > max(theirs.values(), default=-1)
        # None changes its index when the MPI gets further ones in MPI_Init; Open MPI drops some there.
        again = listed(ran, f"{kind} again")
        assert all(again.get(name, index) == index for name, index in all_.items())
        assert ours.items() <= again.items()
        assert again.keys() - ours.keys() == listed(alone, f"{kind} again").keys()


def test_what_palmette_has_done_is_read(mpi: Mpi) -> None:
    ran = mpi.run(2, "tool_variables", settings=forced(allreduce="recursive_doubling"))
    assert ran.status == 0 and ran.closing_lines() == [(1, 0)], ran.text
    found = read(ran)
    # What a tool has written before MPI_Init counts, and later it is refused.
    assert found["PALMETTE_FORCE"] == "barrier=mpi"
    assert int(found["palmette_served_calls"]) + int(found["palmette_passed_calls"]) == 13
    assert int(found["palmette_passed_calls"]) >= 3
    assert float(found["palmette_served_time"]) >= 0
    assert float(found["palmette_record_call_time"]) == 0


def test_what_recording_costs_is_read(mpi: Mpi, tmp_path: object) -> None:
    ran = mpi.run(2, "tool_variables", settings={"PALMETTE_PROFILE": f"{tmp_path}/calls"})
    assert ran.status == 0 and ran.closing_lines() == [(1, 0)], ran.text
    assert 1e-9 < float(read(ran)["palmette_record_call_time"]) < 1e-3
