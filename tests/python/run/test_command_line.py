"""Where the program of a launcher's command line begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from palmette.mpi.errors import RunError
from palmette.mpi.launch import LauncherKind
from palmette.run.command_line import ProgramsInFileError, read_command_line


@pytest.mark.parametrize(
    ("kind", "line", "programs"),
    [
        ("hydra", "mpiexec -n 4 ./app -n 7", ["./app"]),
        ("hydra", "mpiexec -genv A 1 -genv B=2 -hosts a,b -rankmap 0,1 -ppn 2 -n 4 app", ["app"]),
        ("hydra", "mpiexec -prepend-rank -verbose -bind-to core:2 -n 4 app", ["app"]),
        ("hydra", "mpiexec -envnone -wdir /tmp -n 1 a x : -env A 1 -n 2 b y : -n 1 c", ["a", "b", "c"]),
        ("hydra", "mpiexec app", ["app"]),
        ("intel_hydra", "mpirun -np 2 -ppn=1 -s all -print-rank-map -gtool x:0 app", ["app"]),
        ("intel_hydra", "mpirun -machinefile f -bootstrap ssh -iface eth0 -n 2 app -genv", ["app"]),
        ("prrte", "mpirun -np 4 --mca btl self,tcp -mca pml ob1 app --mca", ["app"]),
        ("prrte", "mpirun --oversubscribe --map-by ppr:2:node --bind-to none -x A -x B=1 app", ["app"]),
        ("prrte", "prterun --host a:2,b:2 --prtemca x y -N 2 --report-bindings ./app", ["./app"]),
        ("prrte", "mpirun --map-by=slot -n 1 a : -n 2 b", ["a", "b"]),
        ("prrte", "mpirun --with-ft ulfm -n 2 app", ["app"]),
        ("prrte", "mpirun --append-env PATH[:] /x --set-env A=1 -rf f app", ["app"]),
        ("srun", "srun -n4 -N 2 --mpi=pmix --cpu-bind none -l ./app -n 3", ["./app"]),
        ("srun", "srun -ln4 --exclusive -c2 --time 5 -p debug app", ["app"]),
        ("srun", "srun -n 4 -K1 --kill-on-bad-exit=1 -- ./app", ["./app"]),
        ("srun", "srun -n 1 a : -n 2 b", ["a", "b"]),
        ("srun", "srun -b now --resv-ports --bcast app", ["app"]),
    ],
)
def test_the_program_is_found_behind_the_options(kind: LauncherKind, line: str, programs: list[str]) -> None:
    read = read_command_line(kind, line.split())
    assert [part.program for part in read.parts] == programs
    assert all(read.words[part.start - 1] in (line.split()[0], ":") for part in read.parts)


def test_arguments_end_at_the_colon() -> None:
    read = read_command_line("hydra", ["mpiexec", "-n", "1", "a", "-x", "1", ":", "-n", "2", "b", "y"])
    assert [part.arguments for part in read.parts] == [("-x", "1"), ("y",)]


def test_the_directory_of_the_ranks_is_known() -> None:
    assert read_command_line("prrte", ["mpirun", "--wdir", "/data", "./app"]).parts[0].directory == "/data"
    assert read_command_line("srun", ["srun", "-D", "/data", "./app"]).parts[0].directory == "/data"


@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [
        ("hydra", "mpiexec -genv A 1 -env B=x=y app", {"A": "1", "B": "x=y"}),
        ("prrte", "mpirun -x A=1 -x B app", {"A": "1", "B": None}),
        ("prrte", "mpirun --x=A=1 app", {"A": "1"}),
        ("prrte", "prterun --set-env A=1 -x B=2 app", {"A": "1", "B": "2"}),
        ("srun", "srun --export=ALL,A=1,B app", {"ALL": None, "A": "1", "B": None}),
        ("srun", "srun --export NONE app", {"NONE": None}),
    ],
)
def test_variables_for_the_ranks_are_seen(kind: LauncherKind, line: str, expected: dict[str, str | None]) -> None:
    read = read_command_line(kind, line.split())
    assert {one.name: one.value for one in read.assignments} == expected


@pytest.mark.parametrize("line", ["mpiexec", "mpiexec -n 4", "mpiexec -n", "mpiexec -n 1 a :", "mpiexec -n 1 : -n 1 b"])
def test_a_line_without_a_program_is_refused(line: str) -> None:
    with pytest.raises(RunError, match="program"):
        read_command_line("hydra", line.split())


@pytest.mark.parametrize(("kind", "line"), [("hydra", "mpiexec -configfile f"), ("prrte", "mpirun --app f")])
def test_programs_in_a_file_are_not_read(kind: LauncherKind, line: str) -> None:
    with pytest.raises(ProgramsInFileError, match="doesn't read programs from a file"):
        read_command_line(kind, line.split())


def test_sruns_file_of_programs_is_read(tmp_path: Path) -> None:
    conf = tmp_path / "multi.conf"
    conf.write_text("# ranks program\n0 ./master x\n1-3,5 ./worker \\\n  %t 'a b'\n", encoding="utf-8")
    read = read_command_line("srun", ["srun", "-n", "4", "--multi-prog", str(conf)])
    assert [(part.program, part.arguments) for part in read.parts] == [
        ("./master", ("x",)),
        ("./worker", ("%t", "a b")),
    ]
    with pytest.raises(RunError, match="can't be read"):
        read_command_line("srun", ["srun", "--multi-prog", str(tmp_path / "none")])
