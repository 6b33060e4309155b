"""What the three shells complete, by the scripts of `palmette completion`."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from palmette.cli.completion import SHELLS, script
from palmette.cli.palmette import cli
from palmette.cli.table import PALMETTE, Row, complete_variable
from palmette.cli.values import BY_METAVAR, BY_NAME
from programs import commands

ROOT = Path(__file__).resolve().parents[3]

CASES: list[tuple[str, list[str]]] = [
    ("be", ["bench"]),
    ("run --pro", ["--profile"]),
    ("calibrate --mpi ", ["mpich", "openmpi", "impi"]),
    ("bench p", ["pattern"]),
    ("bench app --no", ["--no-record"]),
    ("bench compose --f", ["--factoring"]),
    ("plan allreduce --bound --placement c", ["cyclic"]),
    ("plan gatherv --algo", ["--algorithm"]),
    ("run --reorder ", ["halo", "exchange", "off"]),
    ("run mpiexec -", []),
    ("export --format ucc", ["ucc-tune"]),
    ("bench gather,exs", ["gather,exscan"]),
    ("run --force gather=bine", ["gather=bine"]),
    ("completion ", ["bash", "zsh", "fish"]),
]
"""What is typed behind `palmette`, and what may follow."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An account of its own, with `palmette` in its PATH."""
    home = tmp_path_factory.mktemp("home")
    program = home / "palmette"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m palmette.cli.main "$@"\n')
    program.chmod(0o755)
    for shell in SHELLS:
        (home / f"script.{shell}").write_text(script(shell, cli))
    (home / "data.txt").touch()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PALMETTE_", "XDG_"))}
    return kept | {
        "HOME": str(home), "PATH": f"{home}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python"), "TERM": "dumb"
    }  # fmt: skip


def call(environment: dict[str, str], *line: str, stdin: str = "") -> str:
    """Run a shell in the account's folder and return what it printed; it must have nothing to complain about."""
    if shutil.which(line[0]) is None:
        pytest.skip(f"{line[0]} is not installed")
    done = subprocess.run(
        line, cwd=environment["HOME"], env=environment, input=stdin, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


IN_BASH = """
source script.bash
compopt() { :; }
complete_line() {
    mapfile -t COMP_WORDS < <(printf '%s\\n' "$@")
    COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _palmette_completion palmette
    local IFS=' '
    echo "${COMPREPLY[*]}"
}
"""


def as_bash_splits(line: str) -> list[str]:
    """The words of COMP_WORDS: bash splits at = and :, too."""
    return " ".join(line.replace("=", " = ").replace(":", " : ").split(" ")).split(" ")


def test_bash_completes(environment: dict[str, str]) -> None:
    calls = [f"complete_line {shlex.join(as_bash_splits(f'palmette {typed}'))}" for typed, _ in CASES]
    found = call(environment, "bash", "--norc", "-s", stdin=IN_BASH + "\n".join(calls)).splitlines()
    expected = [" ".join(value.rpartition("=")[2] for value in values) for _, values in CASES]
    typed = [typed for typed, _ in CASES]
    assert dict(zip(typed, found, strict=True)) == dict(zip(typed, expected, strict=True))


IN_FISH = ("be", "run --pro", "calibrate --mpi ", "bench app --no", "bench gather,exs", "run --force gather=bine")


def test_fish_completes(environment: dict[str, str]) -> None:
    # The helper is the same for all shells: a few cases show that fish passes words on and reads answers.
    cases = [case for case in CASES if case[0] in IN_FISH]
    lines = ["source script.fish", *(f"complete -C {shlex.quote(f'palmette {typed}')}; echo ==" for typed, _ in cases)]
    answers = call(environment, "fish", "--no-config", "-c", "\n".join(lines)).split("==\n")
    assert answers.pop() == ""
    for (typed, values), answer in zip(cases, answers, strict=True):
        assert sorted(line.split("\t")[0] for line in answer.splitlines()) == sorted(values), typed
    assert "bench\tMeasure collectives and programs with and without palmette." in answers[0]


def typed_in(environment: dict[str, str], shell: list[str], start: str, lines: list[str]) -> list[str]:
    """Type lines with tabs into a shell at a terminal, and return what each has become."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    # Ctrl-A and a command before it: the completed line is an argument of that.
    keys = "".join(f"{line}\x01echo 'li''ne:' \r" for line in lines)
    (Path(environment["HOME"]) / "start").write_text(start)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        shell, cwd=environment["HOME"], env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    os.write(master, f". ./start\r{keys}exit\r".encode())
    output = b""
    while True:
        if not select.select([master], [], [], 60)[0]:
            process.kill()  # it waits for more, and would for ever
            break
        try:
            read = os.read(master, 65536)
        except OSError:  # the shell has closed its terminal
            break
        if not read:
            break
        output += read
    os.close(master)
    process.wait()
    printed = output.decode(errors="replace").replace("\r", "\n").splitlines()
    return [line.removeprefix("line:").strip() for line in printed if line.startswith("line:")]


TYPED = {
    "palmette be\t": "palmette bench",
    "palmette bench app --no\t": "palmette bench app --no-record",
    "palmette run --force gather=bine\t": "palmette run --force gather=bine",
    "palmette run ./start da\t": "palmette run ./start data.txt",
}


def test_bash_completes_at_a_terminal(environment: dict[str, str]) -> None:
    start = "bind 'set enable-bracketed-paste off'; source script.bash"
    assert typed_in(environment, ["bash", "--norc", "-i"], start, list(TYPED)) == list(TYPED.values())


def test_zsh_completes_at_a_terminal(environment: dict[str, str]) -> None:
    start = "bindkey -e; autoload -Uz compinit; compinit -u -D; source script.zsh"
    assert typed_in(environment, ["zsh", "-f", "-i"], start, list(TYPED)) == list(TYPED.values())


def test_a_shell_without_a_script_is_told_in_one_line(
    palmette: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = palmette("completion", "tcsh")
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert "'bash', 'zsh', 'fish'" in result.err
    monkeypatch.setenv(complete_variable("palmette"), "tcsh_complete")
    result = palmette("run", "echo", "this ran")
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)


def test_fish_gets_values_whole_that_hold_commas() -> None:
    assert script("fish", cli).count('string split --max 1 ","') == script("fish", cli).count("string split") == 1


def test_completing_a_command_imports_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        PALMETTE.headings, "Others", {"broken": Row("palmette.cli.no_such_module", "Can't be imported.")}
    )
    with click.Context(cli, info_name="palmette") as context:
        assert [item.value for item in cli.shell_complete(context, "bro")] == ["broken"]


def test_every_value_that_is_completed_belongs_to_a_parameter() -> None:
    parameters = [parameter for command in commands() for parameter in command.params]
    assert BY_NAME.keys() <= {parameter.name for parameter in parameters}
    assert BY_METAVAR.keys() <= {parameter.metavar for parameter in parameters}
