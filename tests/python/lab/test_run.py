"""MPI programs on a lab: ranks where they were asked for, politely, and gone when the run is over."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.mpi.install import NAMES
from palmette.topology.placement import PlacementError
from palmette_lab.lab import Lab, LabError

pytestmark = [pytest.mark.root, pytest.mark.mpi]

Program = Callable[[str], Path]

# Not /bin/true: PRRTE 3 can hang when processes end before it has told itself that all were started.
BRIEF = ("/bin/sleep", "0.5")


def run_command(*arguments: str | Path) -> list[str]:
    """`palmette-lab run ARGUMENTS` in a process of its own."""
    code = "from palmette_lab.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", code, "run", *map(str, arguments)]


def running(marker: str) -> list[str]:
    """Command lines of the machine's processes that hold `marker`, zombies aside."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(marker.encode() in word for word in words):
                found.append(" ".join(map(os.fsdecode, words)))
    return found


def gone(marker: str, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while running(marker):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("mpi", NAMES)
def test_every_rank_sits_on_the_host_that_the_placement_says(lab: Lab, ranks_program: Program, mpi: str) -> None:
    program = ranks_program(mpi)
    done = lab.run([str(program), "barriers", "20"], mpi=mpi, placement="random:3", capture=True, timeout_s=60)
    assert done.returncode == 0, done.stderr
    rows = [line.split()[:2] for line in done.stdout.splitlines() if not line.startswith("barrier")]
    assert rows == [[str(rank), host] for rank, host in enumerate(lab.place("random:3"))]
    assert re.search(r"barrier \S+ us", done.stdout)


@pytest.mark.parametrize("mpi", NAMES)
def test_variables_and_preloads_reach_the_ranks_and_not_the_launcher(
    lab: Lab, ranks_program: Program, mpi: str, tmp_path: Path
) -> None:
    ranks_program(mpi)  # skips where the MPI isn't
    note = tmp_path / "preloaded"
    source = tmp_path / "note.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "__attribute__((constructor)) static void note(void) {\n"
        f'    FILE *file = fopen("{note}", "a");\n'
        '    fprintf(file, "%s %s\\n", program_invocation_short_name, getenv("LAB_TEST_MARKER"));\n'
        "    fclose(file);\n}\n"
    )
    library = tmp_path / "note.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True, timeout=60)
    env = {"LD_PRELOAD": str(library), "LAB_TEST_MARKER": "one two,three"}
    done = lab.run([*BRIEF], mpi=mpi, placement="cyclic", ranks=3, env=env, capture=True, timeout_s=60)
    assert done.returncode == 0, done.stderr
    assert note.read_text().splitlines() == ["sleep one two,three"] * 3


@pytest.mark.parametrize("mpi", NAMES)
def test_the_status_of_a_failing_program_is_passed_on(lab: Lab, ranks_program: Program, mpi: str) -> None:
    ranks_program(mpi)
    done = lab.run(["/bin/sh", "-c", "sleep 0.5; exit 3"], mpi=mpi, ranks=2, capture=True, timeout_s=60)
    assert done.returncode == 3


@pytest.mark.parametrize("mpi", NAMES)
def test_a_run_is_ended_at_its_time_limit_with_all_its_ranks(
    lab: Lab, ranks_program: Program, mpi: str, tmp_path: Path
) -> None:
    program = tmp_path / "sleeper"
    program.symlink_to(ranks_program(mpi))
    for limit_s in (3, 12, 48):
        done = lab.run([str(program), "sleep", "500"], mpi=mpi, capture=True, timeout_s=limit_s)
        assert done.returncode == 124
        assert gone(str(program))
        if "sleeping" in done.stdout:
            return
    pytest.fail(f"nothing of what it said before its end: {done.stdout}")


@pytest.mark.parametrize(
    ("mpi", "number"),
    [
        pytest.param(mpi, number, marks=[pytest.mark.long] * (column != row))
        for row, mpi in enumerate(NAMES)
        for column, number in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
    ],
)
def test_nothing_of_a_run_survives_the_end_of_palmette_lab_run(
    lab: Lab, ranks_program: Program, mpi: str, number: signal.Signals, tmp_path: Path
) -> None:
    program = tmp_path / "sleeper"
    program.symlink_to(ranks_program(mpi))
    command = run_command("--mpi", mpi, "--placement", "cyclic", "-n", "4", "--", program, "sleep", "50")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as caller:
        assert caller.stdout is not None
        assert any(line == "sleeping\n" for line in caller.stdout)
        assert len(running(str(program))) >= 4
        caller.send_signal(number)
        status = caller.wait(timeout=20)
    assert status == (-number if number == signal.SIGKILL else 130)
    assert gone(str(program))
    done = lab.run([*BRIEF], mpi=mpi, ranks=2, capture=True, timeout_s=30)
    assert done.returncode == 0, "the lab must be usable after an aborted run"


def test_two_runs_at_once_do_not_meet(lab: Lab, ranks_program: Program) -> None:
    program = ranks_program("openmpi")
    command = run_command("--mpi", "openmpi", "--", program, "barriers", "5")
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for run in runs:
        out, err = run.communicate(timeout=60)
        assert run.returncode == 0, err
        assert len(out.splitlines()) == 17


def test_a_program_that_hosts_cannot_see_is_refused(lab: Lab) -> None:
    with pytest.raises(LabError, match="not visible on the hosts"):
        lab.run(["/dev/shm/app"], mpi="mpich")


def test_more_ranks_than_slots_need_more_slots(lab: Lab, ranks_program: Program) -> None:
    program = ranks_program("mpich")
    with pytest.raises(PlacementError, match="17 ranks don't fit"):
        lab.run([str(program)], mpi="mpich", ranks=17)
    done = lab.run([str(program)], mpi="mpich", ranks=17, ppn=3, placement="cyclic", capture=True, timeout_s=60)
    assert done.stdout.splitlines()[16] == "16 h0 -"


def test_print_shows_the_command_that_does_the_same(lab: Lab, ranks_program: Program) -> None:
    program = ranks_program("mpich")
    arguments = ("--mpi", "mpich", "--placement", "hosts=h7,h2", "--print", "--", program)
    shown = subprocess.run(run_command(*arguments), capture_output=True, text=True, check=True, timeout=60).stdout
    done = subprocess.run(shlex.split(shown), capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["0 h7 -", "1 h2 -"]


def test_with_palmette_the_lab_wiring_is_known_and_reported(lab: Lab, ranks_program: Program, tmp_path: Path) -> None:
    program, written = ranks_program("mpich"), tmp_path / "report.json"
    arguments = ("--mpi", "mpich", "--placement", "random:1", "--report", written, "--", program, "barriers", "5")
    done = subprocess.run(run_command(*arguments), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(written.read_text())
    assert [level["name"] for level in report["job"]["levels"]] == ["leaf", "node", "core"]
    plain = subprocess.run(
        run_command("--mpi", "mpich", "--", program), capture_output=True, text=True, timeout=60, check=False
    )
    assert plain.stderr.splitlines() == [
        "palmette-lab run: by the MPI alone; --palmette runs it with palmette, --report tells why"
    ]


def test_palmette_run_before_lab_run_gets_the_wiring_too(lab: Lab, ranks_program: Program, tmp_path: Path) -> None:
    program, written = ranks_program("mpich"), tmp_path / "report.json"
    behind = run_command("--mpi", "mpich", "--", program, "barriers", "5")
    code = [sys.executable, "-m", "palmette.cli.main", "run", f"--report={written}", *behind]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "by the MPI alone" not in done.stderr
    report = json.loads(written.read_text())
    assert [level["name"] for level in report["job"]["levels"]] == ["leaf", "node", "core"]


def test_a_program_of_another_mpi_is_told(lab: Lab, ranks_program: Program) -> None:
    program = ranks_program("openmpi")
    command = run_command("--mpi", "mpich", "-n", "1", "--", program)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    (warning,) = [line for line in done.stderr.splitlines() if "warning" in line]
    assert "needs libmpi.so.40" in warning
    assert "use the launcher of the program's MPI" in warning


def test_json_of_a_run_tells_hosts_output_and_status(lab: Lab, ranks_program: Program) -> None:
    program = ranks_program("mpich")
    command = run_command("--mpi", "mpich", "-n", "2", "--json", "--", program)
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
    assert (answer["status"], answer["hosts"], answer["stdout"]) == (0, ["h0", "h0"], "0 h0 -\n1 h0 -\n")
