"""`palmette bench app` and `palmette run --compare`: whole programs with and without palmette."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.app import given_input
from palmette.mpi.abi import PROGRAMS as MEASURING

from .conftest import Mpi

pytestmark = pytest.mark.mpi

RUN = ("bench", "app", "--rounds", "2")


def test_times_calls_and_outputs_of_both_are_told(
    palmette: Callable[..., Any], mpi_called: Callable[[str], Mpi], tmp_path: Path
) -> None:
    mpi = mpi_called("mpich")
    program = mpi.program("random_arguments")
    page = tmp_path / "page.html"
    variant = "all:PALMETTE_SERVE_AFTER=0,PALMETTE_COMPARE=0,PALMETTE_FORCE=allgather=ring"
    where = ("-n", "3", "--mpi", "mpich", "--variant", variant, "--page", page)
    told = palmette(*RUN, *where, "--json", "--", program, "--seed", "5", "--cases", "6")
    assert told.status == 0, told.err
    result = json.loads(told.out)
    alone, with_palmette, served = result["variants"]
    assert [alone["name"], with_palmette["name"], served["name"]] == ["alone", "palmette", "all"]
    assert all(len(one["seconds"]) == 2 and one["same_output"] for one in result["variants"])
    assert alone["ratio"] is None and with_palmette["ratio"] > 0
    # The program makes the same calls in each, and some of them are served where all may be.
    assert alone["calls"] == served["calls"] and sum(alone["calls"].values()) > 0
    assert alone["served_calls"] == 0 < served["served_calls"]
    assert result["compared_numbers"] >= 2
    text = page.read_text(encoding="utf-8")
    assert "palmette" in text and text.count("<circle") == 6


def printing(tmp_path: Path, script: str) -> Path:
    program = tmp_path / "program.sh"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def test_another_output_is_an_error(palmette: Callable[..., Any], tmp_path: Path) -> None:
    # Without a launcher: Hydra now and then dies of SIGPIPE when what it starts ends at once.
    program = printing(tmp_path, 'case "$LD_PRELOAD" in *palmette*) echo energy 2.5;; *) echo energy 1.5;; esac')
    command = (program,)
    result = palmette(*RUN, "--no-record", "--", *command)
    assert result.status == 1
    assert "2.5 instead of 1.5" in result.out and "differs" in result.err
    assert palmette(*RUN, "--no-record", "--tolerance", "1", "--", *command).status == 0
    assert palmette(*RUN, "--no-record", "--ignore", "energy", "--", *command).status == 0
    assert palmette(*RUN, "--no-record", "--check", "grep -q energy", "--", *command).status == 0
    assert palmette(*RUN, "--no-record", "--check", "grep -q entropy", "--", *command).status == 1


@pytest.mark.parametrize("by_pipe", [False, True])
@pytest.mark.parametrize("words", [("bench", "app", "--rounds", "2", "--no-record", "--"), ("run", "--compare")])
def test_each_run_is_given_standard_input(tmp_path: Path, by_pipe: bool, words: tuple[str, ...]) -> None:
    program = printing(tmp_path, f'read n; echo "rounds $n"; echo "rounds $n" >>{tmp_path}/seen')
    given = tmp_path / "n.txt"
    given.write_text("2000\nmore\n", encoding="utf-8")
    command = [sys.executable, "-m", "palmette.cli.main", *words, str(program)]
    with given.open("rb") as file:
        feeding = {"input": file.read()} if by_pipe else {"stdin": file}
        subprocess.run(command, **feeding, capture_output=True, check=False)  # type: ignore[call-overload]
    seen = (tmp_path / "seen").read_text(encoding="utf-8").splitlines()
    assert len(seen) >= 5 and set(seen) == {"rounds 2000"}


def test_a_pipe_that_nothing_comes_through_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_input, "WAIT_S", 0.05)
    reading, writing = os.pipe()
    try:
        given = given_input.GivenInput(reading)
        assert "nothing came through" in given.note and given.rewound() == subprocess.DEVNULL
    finally:
        os.close(reading)
        os.close(writing)


def test_what_a_program_keeps_between_runs_is_told(palmette: Callable[..., Any], tmp_path: Path) -> None:
    program = printing(tmp_path, f"[ -e {tmp_path}/kept ] && echo restarted || echo fresh; >{tmp_path}/kept")
    result = palmette(*RUN, "--no-record", "--", program)
    assert result.status == 0, result.err
    assert "the first run printed something else" in " ".join(result.out.split()), result.out


def test_another_order_of_lines_is_no_other_output(palmette: Callable[..., Any], tmp_path: Path) -> None:
    script = 'case "$LD_PRELOAD" in *palmette*) printf "rank %s\\n" 1 0;; *) printf "rank %s\\n" 0 1;; esac'
    result = palmette(*RUN, "--no-record", "--", printing(tmp_path, script))
    assert result.status == 0, result.err
    assert "palmette: lines come in another order" in result.out
    told = " ".join(result.out.split())
    assert "too few to tell whether palmette is faster" in told and "--rounds 20" in told


def test_run_compare_is_its_short_form(
    palmette: Callable[..., Any], mpi_called: Callable[[str], Mpi], monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi = mpi_called("mpich")
    for name, value in mpi.environment().items():
        monkeypatch.setenv(name, value)
    environment = mpi.launch(2)
    result = palmette("run", "--compare", *environment, MEASURING / f"heat.{mpi.abi}", "5")
    assert result.status == 0, result.err
    assert "alone" in result.out and "MPI_Waitall" in result.out
    refused = palmette("run", "--compare", "--trace", "x", *environment, MEASURING / f"heat.{mpi.abi}")
    assert refused.status == 2 and "--trace doesn't go with --compare" in refused.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "no command given"),
        (("--variant", "x", "--", "true"), "in_network or NAME:K=V"),
        (("--variant", "x:HOME=1", "--", "true"), "HOME=1 is no setting"),
        (("--variant", "alone:PALMETTE_VERBOSE=1", "--", "true"), "the same name"),
        (("--ignore", "(", "--", "true"), "--ignore"),
        (("--mpi", "mpich", "--", "true"), "--mpi is for --local"),
        (("-n", "2", "--ranks", "4", "--", "true"), "palmette-lab bench"),
        (("--check", "true", "--ignore", "x", "--", "true"), "leave out --ignore"),
        (("--", "/nowhere/mpiexec", "-n", "2", "app"), "/nowhere/mpiexec"),
        (("--no-record", "--", "false"), "ended with status 1"),
        (("--no-record", "--timeout", "100ms", "--", "sleep", "5"), "no end after 0.1 s"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_line(palmette: Callable[..., Any], arguments: tuple[str, ...], complaint: str) -> None:
    result = palmette(*RUN, *arguments)
    assert result.status != 0
    assert complaint in result.err and result.err.count("\n") == 1, result.err
