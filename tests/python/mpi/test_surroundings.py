"""What is around a collective: communicators, threads, errors, MPI_Init and MPI_Finalize, sessions."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import FUNCTIONS, LEVEL_BY_LEVEL, POLITE, PRELOADS, SOAK, Cluster, Mpi, forced, pretended

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [2, 5])
def test_communicators_of_all_kinds_are_right(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(
        ranks,
        "communicators",
        "--cycles",
        20 * SOAK,
        "--alive",
        5,
        settings={**LEVEL_BY_LEVEL, **cluster.settings(ranks)},
    )
    ran.assert_right()
    assert set(ran.served()) == set(FUNCTIONS)
    assert "an inter-communicator" in ran.fallbacks()["gather"]


def test_three_thousand_communicators_made_and_freed_leave_ids_for_more(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(
        3, "communicators", "--cycles", 3000 * SOAK, "--alive", 5, settings={**LEVEL_BY_LEVEL, **cluster.settings(3)}
    )
    ran.assert_right()
    assert ran.served()["allgather"]["leaders:leaders=2"] > 1500


def test_communicators_that_stay_leave_room_for_the_users(mpi: Mpi, cluster: Cluster) -> None:
    # Without palmette MPICH has 2,046; Intel MPI itself ends a job that reduces on about 1,000.
    alive = 300 if mpi.name == "impi" else 1500
    ran = mpi.run(
        2, "communicators", "--cycles", 1, "--alive", alive, settings={**LEVEL_BY_LEVEL, **cluster.settings(2)}
    )
    ran.assert_right()
    assert ran.served()["gather"]["by_topology"] > 200


@pytest.mark.parametrize("threads", [2, 6])
def test_threads_run_collectives_at_the_same_time(mpi: Mpi, cluster: Cluster, threads: int) -> None:
    settings = {**LEVEL_BY_LEVEL, **cluster.settings(3)}
    ran = mpi.run(3, "threads", "--threads", threads, "--rounds", 24 * SOAK, settings=settings)
    if ran.status == 77:
        pytest.skip(f"{mpi.name} gives less than MPI_THREAD_MULTIPLE")
    ran.assert_right()
    served = ran.served()
    assert all(sum(served[function].values()) == threads * 24 * SOAK * 5 // 4 for function in FUNCTIONS), served


def test_errors_are_those_of_the_mpi(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(4, "errors", settings={**LEVEL_BY_LEVEL, **cluster.settings(4)})
    ran.assert_right()
    assert set(ran.served()) == set(FUNCTIONS)


def test_callbacks_inside_finalize_may_run_collectives(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(4, "lifecycle", settings={**LEVEL_BY_LEVEL, **cluster.settings(4)})
    ran.assert_right(lines=4)
    assert set(ran.served()) == set(FUNCTIONS)


def test_sessions_need_no_world(mpi: Mpi, cluster: Cluster) -> None:
    settings = {**LEVEL_BY_LEVEL, **cluster.settings(4), "PALMETTE_VERBOSE": "2"}
    ran = mpi.run(4, "sessions", settings=settings)
    if ran.status == 77:
        pytest.skip(f"{mpi.name} has no sessions")
    ran.assert_right(lines=4)
    # No MPI_Finalize, no report. Elsewhere calls pass through: Open MPI 5.0 says that it is MPI 3, and Intel MPI's
    # MPI_Initialized that MPI_Init was called, so that palmette takes itself for loaded too late.
    if mpi.name == "mpich":
        assert "palmette: gather of 16 on 4 ranks by by_topology" in ran.err, ran.text


@pytest.mark.parametrize("when", ["destructor", "atexit"])
def test_collectives_after_main_has_returned_are_right(mpi: Mpi, cluster: Cluster, when: str) -> None:
    ran = mpi.run(3, "after_main", when, settings={**LEVEL_BY_LEVEL, **cluster.settings(3)})
    # Not the status: MPICH's launcher now and then kills processes that end so late, palmette or not.
    assert [wrong for _, wrong in ran.closing_lines()] == [0], ran.text
    assert set(ran.served()) == {"allreduce", "alltoall", "bcast"}


@pytest.mark.parametrize("variant", ["mpich", "mpich-abi"])
def test_nothing_outlives_the_mpi_of_its_session(mpi_called: Callable[[str], Mpi], variant: str) -> None:
    # Intel MPI and Open MPI 5.0 can't start a second time in a process, with or without palmette.
    mpi = mpi_called(variant)
    settings = {**LEVEL_BY_LEVEL, **pretended(2, "01"), "PALMETTE_VERBOSE": "2"}
    for last in (False, False, True):
        # MPICH 5.0 hangs in about one of a hundred second starts, also without palmette.
        ran = mpi.run(2, "sessions", "--sessions", 3, "--world", 1, "--timeout", 20, settings=settings)
        if ran.status == 0 or last:
            break
    ran.assert_right(lines=2)
    assert ran.err.count("palmette: gather of 16 on 2 ranks by by_topology") >= 3 + 2, ran.text
    assert set(ran.served()) == set(FUNCTIONS), "the world gets its report"


def test_a_communicator_gets_its_state_when_it_is_used_again_and_again(mpi: Mpi) -> None:
    settings = {**LEVEL_BY_LEVEL, **pretended(4, "0101"), "PALMETTE_SERVE_AFTER": "5"}
    ran = mpi.run(4, "new_communicators", "--communicators", 100, "--calls", 20, settings=settings)
    ran.assert_right()
    assert ran.report is not None
    few = "a communicator on which few collectives were called so far"
    rows = {row["function"]: row["calls"] for row in ran.report["fallbacks"] if row["reason"] == few}
    # On the last one a mistake of every rank and a nonblocking call are the first two of five.
    assert rows["allreduce"] == 100 + 3
    assert rows["bcast"] == 2
    assert sum(ran.served()["allreduce"].values()) == 20 - 3
    assert sum(ran.served()["bcast"].values()) == 1


def test_the_default_leaves_new_communicators_to_the_mpi(mpi: Mpi) -> None:
    settings = {**LEVEL_BY_LEVEL, **pretended(2, "01"), "PALMETTE_SERVE_AFTER": ""}
    ran = mpi.run(2, "new_communicators", "--communicators", 20, "--calls", 100, settings=settings)
    ran.assert_right()
    served = sum(ran.served()["allreduce"].values())
    assert 50 < served < 100, "the one in use is served, those with one call aren't"


@pytest.mark.parametrize("how", ["served", "off"])
def test_a_program_sees_the_same_of_its_mpi_as_alone(mpi: Mpi, how: str) -> None:
    # Open MPI ends a program that makes a mistake on a communicator from before MPI_ERRORS_RETURN, alone too.
    arguments = ("--mistakes", 0 if mpi.name == "openmpi" else 1)
    alone = mpi.run(4, "traces", *arguments, preload=False)
    assert alone.status == 0, alone.text
    settings = {**LEVEL_BY_LEVEL, **pretended(4, "0110"), **({"PALMETTE_ENABLE": "0"} if how == "off" else {})}
    ran = mpi.run(4, "traces", *arguments, settings=settings)
    assert ran.status == 0, ran.text
    assert ran.out == alone.out
    if how == "served":
        assert sum(ran.served()["allreduce"].values()) == 5
        assert ran.report is not None
        assert any(row["reordered"] for row in ran.report["topologies"]), ran.report["topologies"]


def without_preload(folder: Path, rank: int) -> Path:
    """Return a script that runs a command, on one rank without the preload library."""
    script = folder / "wrapper.sh"
    script.write_text(
        f'#!/bin/sh\n[ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" = {rank} ] && unset LD_PRELOAD\nexec "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("absent", [0, 2])
def test_a_rank_without_the_library_leaves_all_calls_to_the_mpi(mpi: Mpi, tmp_path: Path, absent: int) -> None:
    wrapper = without_preload(tmp_path, absent)
    settings = {**LEVEL_BY_LEVEL, **pretended(3, "010")}
    ran = mpi.run(3, wrapper, mpi.program("partly_preloaded"), settings=settings)
    ran.assert_right()
    line = "palmette: 1 of the job's 3 ranks on this host run without palmette's library, so nothing is served"
    assert ran.err.count(line) == 1, ran.text


def test_ranks_meet_where_no_launcher_tells_of_their_node(mpi: Mpi, tmp_path: Path) -> None:
    script = tmp_path / "wrapper.sh"
    script.write_text(
        '#!/bin/sh\nunset MPI_LOCALNRANKS OMPI_COMM_WORLD_LOCAL_SIZE SLURM_STEP_ID\nexec "$@"\n', encoding="utf-8"
    )
    script.chmod(0o755)
    settings = {**LEVEL_BY_LEVEL, **pretended(5, "01")}
    ran = mpi.run(5, script, mpi.program("partly_preloaded"), settings=settings)
    ran.assert_right()
    assert set(ran.served()) == set(FUNCTIONS)


def test_where_nothing_tells_who_is_there_ranks_say_whom_they_wait_for(
    mpi_called: Callable[[str], Mpi], tmp_path: Path
) -> None:
    mpi = mpi_called("mpich")
    command = [*mpi.launch(2), "-launcher", "fork", "-hosts", "first,second", "-ppn", "1"]
    environment = {**mpi.environment(), "LD_PRELOAD": str(PRELOADS / "libpalmette_mpich.so")}
    program = mpi.program("partly_preloaded")
    with subprocess.Popen([*command, str(program)], env=environment, stdout=subprocess.PIPE, text=True) as right:
        assert "0 wrong" in right.communicate(timeout=60)[0]
    command += [str(without_preload(tmp_path, 1)), str(program)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        bound = threading.Timer(60, waiting.terminate)
        bound.start()
        said = any(
            line.startswith("palmette: rank 0 has waited 5 s in MPI_Init for rank 1, which may run without")
            for line in waiting.stderr
        )
        bound.cancel()
        waiting.terminate()
    assert said, "nobody said a word"


@pytest.mark.parametrize("variant", ["mpich", "mpich-abi", "openmpi"])
def test_communicators_of_two_jobs_are_the_mpis(
    mpi_called: Callable[[str], Mpi], variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Intel MPI can't spawn with the fabric that these tests use; for Open MPI two jobs share no memory.
    monkeypatch.setitem(POLITE["openmpi"], "OMPI_MCA_btl", "self,sm,tcp")
    ran = mpi_called(variant).run(2, "spawned", settings={**LEVEL_BY_LEVEL, "PALMETTE_VERBOSE": "1"})
    ran.assert_right()
    assert "a communicator with processes from outside of MPI_COMM_WORLD" in ran.fallbacks()["gather"]


@pytest.mark.parametrize("early", [0, 1])
def test_a_job_with_level_zero_is_left_to_the_mpi(mpi: Mpi, tmp_path: Path, early: int) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path / "libze_loader.so.1"
    subprocess.run([compiler, "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
    settings = {**LEVEL_BY_LEVEL, **pretended(3, "001")}
    ran = mpi.run(3, "device_library", library, "--early", early, settings=settings)
    ran.assert_right()
    assert ran.err.count("palmette: Level Zero, the driver library of Intel's GPUs, is loaded") == 1, ran.text
    reason = "Level Zero is loaded, so that data may lie in device memory"
    assert ran.report is not None
    rows = {row["reason"]: row["calls"] for row in ran.report["fallbacks"] if row["function"] == "allreduce"}
    assert rows[reason] == (18 if early else 12)
    assert sum(ran.served().get("allreduce", {}).values()) == (0 if early else 6)
    if not early:
        ran = mpi.run(3, "device_library", library, settings={**settings, "PALMETTE_DEVICE": "off"})
        ran.assert_right()
        assert sum(ran.served()["allreduce"].values()) == 18, "a promise is taken for what it is"


@pytest.mark.parametrize("ranks", [3, 4])
def test_nobody_waits_for_a_rank_whose_arguments_are_wrong(mpi: Mpi, ranks: int) -> None:
    specs = forced(gatherv="linear", scatterv="linear", alltoallv="pairwise", alltoall="pairwise", allgather="ring")
    settings = {**LEVEL_BY_LEVEL, "PALMETTE_FORCE": f"{LEVEL_BY_LEVEL['PALMETTE_FORCE']};{specs['PALMETTE_FORCE']}"}
    ran = mpi.run(ranks, "one_wrong", settings={**settings, **pretended(ranks, "01")})
    ran.assert_right()
