"""Every shell line of README, guides and examples is run, or its words are parsed, or a reason says why not."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

import test_guides
from palmette.cli.common import CliError
from palmette.cli.run_options import read_options
from programs import PROGRAMS
from slurm.cluster import in_slurm, require_slurm

from .kinds import BEFORE, LONG, QUICK, RULES, SLURM, TESTED, rule_of, smaller
from .lines import ROOT, Line, all_lines, commands, first_word, is_command, pages, paragraphs

FOLLOW = "docs/guide/README.md"
"""Guide whose lines prepare the folder in which those of the other guides can be pasted."""
NO_PROGRAMS = {"comm", "time", "size", "link"}
"""Words of output and Python code that are programs' names, too."""
START = "docs/start.md"
LIMIT_S = 300


def kind_of(line: Line) -> str:
    """Return what is done with a line; "" without a rule."""
    rule = rule_of(line)
    return rule.kind if rule else ""


def test_every_line_has_a_rule_and_every_rule_a_line() -> None:
    assert [f"{line.where}: {line.text}" for line in all_lines() if rule_of(line) is None] == []
    used = {rule_of(line) for line in all_lines()}
    assert [rule for rule in RULES if rule not in used] == []


def test_no_block_of_commands_is_overlooked() -> None:
    for page in pages():
        for number, block, _ in paragraphs(page):
            word = first_word(block[0])
            if word and not is_command(block[0]) and word not in NO_PROGRAMS:
                assert shutil.which(word) is None, f"{page}:{number}: {word} isn't in lines.COMMANDS"


def test_lines_whose_output_is_compared_are_among_the_examples() -> None:
    compared = {command for command, _ in test_guides.examples()}
    for line in all_lines():
        if kind_of(line) == TESTED:
            assert line.text in compared, line.where


def words_of(text: str) -> Iterator[list[str]]:
    """Yield the words of each call of palmette's programs in a shell line, the program's name first."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    before = ""
    for word in [*lexer, ";"]:
        file, before = before == ">", word
        if file:
            continue
        if word in (";", "&&", "|", ">", "<", "<(", "(", ")"):
            names = [at for at, one in enumerate(words) if Path(one).name in PROGRAMS]
            if names and all(one == "sudo" or "=" in one for one in words[: names[0]]):
                yield [Path(words[names[0]]).name, *words[names[0] + 1 :]]
            words = []
        else:
            words.append(word)


def parsed(words: list[str]) -> None:
    """Parse the words of a command line as palmette does, and run nothing. Raises click's errors and CliError."""
    program, *words = words
    context = PROGRAMS[program].make_context(program, list(words), obj=list(words))
    rest = [*context._protected_args, *context.args]
    if program == "palmette" and words[:1] == ["run"]:
        assert read_options(words[1:]) is not None
    while isinstance(context.command, click.Group) and rest:
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, list(rest), parent=context)
        rest = [*context._protected_args, *context.args] if isinstance(command, click.Group) else []


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that looks like a checkout after make build, without what commands write; labs go at the end."""
    for name in ("examples", "studies", "tools", "tests", "docs", "packaging", ".venv", ".mpi"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("home/.local/share/bash-completion/completions", "home/.zfunc", "home/.config/fish/completions"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("palmette", "slurm", "systemd/system"):
        (tmp_path / "etc" / name).mkdir(parents=True)
    # Programs that need hardware or a terminal.
    (tmp_path / "bin").mkdir()
    for name, text in (("ibnetdiscover", f"cat {ROOT}/examples/cluster/fabric.txt"), ("editor", 'touch "$1"')):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    yield tmp_path
    if (tmp_path / "background").is_file():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((tmp_path / "background").read_text()), signal.SIGTERM)
    for lab in (tmp_path / "home" / "labs").glob("*/"):
        subprocess.run(
            [ROOT / ".venv/bin/palmette-lab", "down", "--name", lab.name],
            env=os.environ | {"PALMETTE_LAB_STATE": str(lab.parent)},
            capture_output=True,
            check=False,
        )


def test_all_words_are_parsed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for file in (*(ROOT / "examples" / "cluster").iterdir(), *(ROOT / "examples" / "first").iterdir()):
        shutil.copy(file, folder)
    # Files that lines before would have written.
    shutil.copy(ROOT / "tests" / "data" / "inputs" / "report.json", "run.json")
    wrong = []
    for line in all_lines():
        for words in words_of(smaller(line)):
            try:
                parsed(words)
            except (click.ClickException, CliError, AssertionError) as error:
                wrong.append(f"{line.where}: {line.text}: {error}")
    assert wrong == []


def run(line: Line, folder: Path) -> None:
    """Run one line in the folder, with the variables and the folder that earlier lines left."""
    state = folder / "home" / "state"
    state.touch()
    # A failure before a semicolon counts, too.
    script = f'. "{state}"; set -e; {smaller(line)}\n{{ export -p; echo cd "$PWD"; }} | grep -v SLURM_CONF= > "{state}"'
    environment = os.environ | {
        "HOME": str(folder / "home"),
        "PALMETTE_LAB_STATE": str(folder / "home" / "labs"),
        "HYDRA_LAUNCHER": "fork",
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
    }
    rule = rule_of(line)
    if rule and rule.kind == SLURM:
        # Slurm's sockets need a short path.
        with tempfile.TemporaryDirectory() as below:
            switches = {"leaf0": ["h0"], "leaf1": ["h1"]}
            done = in_slurm(Path(below), switches, 4, f'cd "{folder}"; {script}', "", environment, LIMIT_S)
    else:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    # A program of another MPI than mpiexec's runs as so many jobs of one rank.
    assert "steps on 1 ranks" not in done.stdout, line.where
    right, prints = (rule.statuses, rule.prints) if rule else ((0,), "")
    assert re.search(prints, done.stdout), f"{line.where}: {line.text}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
    assert done.returncode in right, f"{line.where}: {line.text}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"


def run_page(page: str, folder: Path, wanted: Callable[[str], bool]) -> None:
    """Run the lines of a page that are wanted, behind those that prepare the folder."""
    if page != START:  # which begins with nothing
        for line in commands(FOLLOW):
            run(line, folder)
    for text in BEFORE.get(page, ()):
        run(Line(page, 0, text), folder)
    for line in commands(page) if page != FOLLOW else ():
        if wanted(kind_of(line)):
            run(line, folder)


@pytest.mark.mpi
@pytest.mark.parametrize("page", [page for page in pages() if any(kind_of(line) == QUICK for line in commands(page))])
def test_the_quick_lines_of_a_page_run_in_order(page: str, folder: Path) -> None:
    run_page(page, folder, lambda kind: kind == QUICK)


@pytest.mark.long
@pytest.mark.root
@pytest.mark.parametrize(
    "page", [page for page in pages() if any(kind_of(line) in (LONG, SLURM) for line in commands(page))]
)
def test_all_lines_of_a_page_run_in_order(page: str, folder: Path) -> None:
    if any(kind_of(line) == SLURM for line in commands(page)):
        require_slurm()
    run_page(page, folder, lambda kind: kind in (QUICK, LONG, SLURM))


def test_reasons_are_written_for_readers() -> None:
    for rule in RULES:
        assert len(rule.kind.split()) >= 3, rule
