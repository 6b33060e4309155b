"""Help of all commands, and what is told to those who mistype."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from palmette.cli.common import CliError
from palmette.cli.meant import close, with_suggestion
from palmette.cli.table import BENCH, PALMETTE
from programs import MAINS, calling, every_context

Call = Callable[..., Any]


def lines() -> Iterator[tuple[str, ...]]:
    """The words of every command and subcommand, the program's first."""
    for context in every_context():
        yield tuple(context.command_path.split())


def test_help_shows_the_groups_and_the_page_of_exit_statuses(palmette: Call) -> None:
    out = palmette("--help").out
    at = [out.index(f"\n{heading}:\n") for heading in PALMETTE.headings]
    assert at == sorted(at)
    assert "docs/reference/command-line.md" in out


def test_a_command_that_has_another_name_now_is_told_with_all_that_followed(palmette: Call) -> None:
    for words, now in (
        ("predict gather --machine 2leaf:2node", "palmette plan gather --machine 2leaf:2node --predict"),
        ("bound bcast", "palmette plan bcast --bound"),
        ("flow bcast --size 1K", "palmette plan bcast --size 1K --flow"),
        ("lab up 2node", "palmette-lab up 2node"),
        ("simulate --list", "palmette-lab simulate --list"),
        ("aggregator status", "palmette-aggregator status"),
    ):
        result = palmette(*words.split())
        assert (result.status, result.out) == (2, "")
        assert result.err == f"palmette: '{words.split()[0]}' has another name now; say {now}\n"


@pytest.mark.parametrize(
    ("words", "now"),
    [
        ("bench gather --lab 2node", "palmette-lab bench"),
        ("bench --set one-node", "palmette-lab bench"),
        ("bench app --lab 2node -- ./app", "palmette-lab bench"),
        ("tune --placement cyclic", "palmette-lab tune"),
        ("calibrate --lab 2node", "palmette-lab calibrate"),
        ("bench --compare 1 2", "palmette bench report RUN1 RUN2"),
        ("report last", "palmette bench report last"),
        ("report x --speedups x.svg", "palmette bench report"),
    ],
)
def test_an_option_that_another_command_has_now_is_told(words: str, now: str, palmette: Call) -> None:
    result = palmette(*words.split())
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert now in result.err


@pytest.mark.parametrize("words", list(lines()), ids=" ".join)
def test_every_help_has_an_example_of_that_command(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    program, *rest = words
    result = calling(MAINS[program], capsys)(*rest, "--help")
    assert result.status == 0
    example = " ".join(result.out.partition("\n  Example: ")[2].split())
    wanted = " ".join(words).removesuffix(" collectives")
    if rest == ["completion"]:
        wanted = "completion"
    assert wanted in example
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize("program", list(MAINS))
def test_a_group_alone_prints_its_help_as_it_is(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    call = calling(MAINS[program], capsys)
    result = call()
    assert (result.status, result.err) == (2, "")
    assert result.out == call("--help").out


def test_no_line_of_a_groups_help_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    for context in every_context():
        if isinstance(context.command, click.Group):
            program, *words = context.command_path.split()
            out = calling(MAINS[program], capsys)(*words, "--help").out
            assert "..." not in out.partition("-h, --help")[2].partition("Example")[0], words


def test_bench_collectives_is_bench(palmette: Call) -> None:
    short, long = (palmette(*words, "gathr") for words in (("bench",), ("bench", "collectives")))
    assert long.status == short.status == 2
    assert long.err.partition(": ")[2] == short.err.partition(": ")[2]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("explian", "explain"),
        ("bench --siezs 4", "--sizes"),
        ("plan allredcue", "allreduce"),
        ("plan allreduce --machine 2leaf:2node --algorithm rign", "ring"),
        ("plan allreduce --machine 2leaf:2node --algorithm ring:ordr=node", "order"),
        ("plan --predict alltoal --machine 2leaf:2node", "alltoall"),
        ("bench alltoal", "alltoall"),
        ("bench --mpi mpcih", "mpich"),
        ("bench pattern rial", "rail"),
        ("bench compose brodcast", "broadcast"),
        ("compose allredcue --hierarchy 2:2", "allreduce"),
        ("explain alreduce 1K --machine 2node", "allreduce"),
        ("run --force gather=liner mpiexec -n 2 true", "linear"),
        ("plan gather --machine 2node --placement cylic", "cyclic"),
        ("discover --from ibnetdiscovr x", "ibnetdiscover"),
    ],
)
def test_a_slip_is_told_with_what_was_meant(words: str, meant: str, palmette: Call) -> None:
    result = palmette(*words.split())
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert f" (did you mean {meant}?)" in result.err, "one form, whoever suggests it"


def test_what_is_far_from_all_names_gets_no_suggestion() -> None:
    assert close("frobnicate", PALMETTE.rows) is None
    assert close("xy", ("xyz",)) is None
    for message in ("'tree' is unknown; there are ring, shared", "no file x.json; write it first", "'' is no name"):
        assert with_suggestion(message) == message
        assert CliError(message).message == message


def test_a_bare_start_and_help_import_neither_commands_nor_the_core() -> None:
    code = "import sys; from palmette.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    modules = {row.module for table in (PALMETTE, BENCH) for row in table.rows.values()}
    assert "palmette.cli.group" in imported
    assert not imported & {*modules, "palmette._core", "rich", "difflib"}


def test_a_command_that_takes_a_size_takes_either_name_and_shows_one() -> None:
    sized = 0
    for context in every_context():
        command, words = context.command, context.command_path
        names = {name for one in command.params if isinstance(one, click.Option) for name in one.opts}
        if not names & {"--size", "--sizes"}:
            continue
        sized += 1
        assert {"--size", "--sizes"} <= names, words
        shown = command.get_help(context).split()
        assert not {"--size", "--sizes", "--size,", "--sizes,"} <= set(shown)
        assert ("--size," in shown) + ("--sizes," in shown) == 0
        assert words == "palmette explain" or ("--size" in shown) + ("--sizes" in shown) > 0
    assert sized >= 10


def test_a_size_by_its_other_name_is_the_same(palmette: Call) -> None:
    machine = ("--machine", "2leaf:2node")
    for words in ("plan gather", "plan --flow gather", "plan --predict gather", "explain gather", "map --pattern ring"):
        one, other = (palmette(*words.split(), *machine, name, "4K") for name in ("--size", "--sizes"))
        assert one.status == 0, one.err
        assert one.out == other.out, words


def test_a_file_and_a_synthetic_machine_in_each_others_place_are_told(palmette: Call, tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    path.write_text("{}")
    for command in ("plan gather", "explain gather 1K", "map --pattern ring"):
        told = palmette(*command.split(), "--machine", str(path)).err
        assert f"--machine {path}: this is a file; say --topology {path}" in told
        told = palmette(*command.split(), "--topology", "2leaf:2node").err
        assert "--topology 2leaf:2node: no such file; a machine's synthetic form is told with --machine" in told
