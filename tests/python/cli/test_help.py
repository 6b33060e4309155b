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
from palmette.cli.main import COMMANDS, GROUPS, UNDER, loaded
from palmette.cli.meant import close, with_suggestion

Call = Callable[..., Any]


def lines() -> Iterator[tuple[str, ...]]:
    """The words of every command and subcommand."""
    yield ()
    for name, row in COMMANDS.items():
        yield (name,)
        command = loaded(*row[:2])
        for below in command.commands if isinstance(command, click.Group) else ():
            yield (name, below)
    yield from UNDER


def test_each_command_is_in_one_group_and_in_its_order() -> None:
    assert [name for names in GROUPS.values() for name in names] == list(COMMANDS)


def test_help_shows_the_groups_and_the_page_of_exit_statuses(palmette: Call) -> None:
    out = palmette("--help").out
    at = [out.index(f"\n{heading}:\n") for heading in GROUPS]
    assert at == sorted(at)
    assert "docs/reference/command-line.md" in out


@pytest.mark.parametrize("words", list(lines()), ids=" ".join)
def test_every_help_has_an_example_of_that_command(words: tuple[str, ...], palmette: Call) -> None:
    result = palmette(*words, "--help")
    assert result.status == 0
    example = " ".join(result.out.partition("\n  Example: ")[2].split())
    wanted = " ".join(("palmette", *words)) if words != ("bench", "collectives") else "palmette bench"
    assert wanted in example
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize("words", [(), ("lab",), ("aggregator",)])
def test_a_group_alone_prints_its_help_as_it_is(words: tuple[str, ...], palmette: Call) -> None:
    result = palmette(*words)
    assert (result.status, result.err) == (2, "")
    assert result.out == palmette(*words, "--help").out


def test_bench_lists_its_commands_with_a_sentence_each(palmette: Call) -> None:
    out = palmette("bench", "--help").out
    for words, row in UNDER.items():
        assert f"  {words[1]:<11}  {row[2]}\n" in out


@pytest.mark.parametrize("group", ["lab", "aggregator"])
def test_no_line_of_a_groups_help_is_cut(group: str, palmette: Call) -> None:
    assert "..." not in palmette(group, "--help").out.partition("Commands:")[2].partition("Example")[0]


def test_bench_collectives_is_bench(palmette: Call) -> None:
    short, long = (palmette(*words, "gathr") for words in (("bench",), ("bench", "collectives")))
    assert long.status == short.status == 2
    assert long.err.partition(": ")[2] == short.err.partition(": ")[2]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("explian", "explain"),
        ("lab statsu", "status"),
        ("bench --siezs 4", "--sizes"),
        ("plan allredcue", "allreduce"),
        ("plan allreduce --machine 2leaf:2node --algorithm rign", "ring"),
        ("plan allreduce --machine 2leaf:2node --algorithm ring:ordr=node", "order"),
        ("predict alltoal --machine 2leaf:2node", "alltoall"),
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
    assert close("frobnicate", COMMANDS) is None
    assert close("xy", ("xyz",)) is None
    for message in ("'tree' is unknown; there are ring, shared", "no file x.json; write it first", "'' is no name"):
        assert with_suggestion(message) == message
        assert CliError(message).message == message


def test_a_bare_start_and_help_import_neither_commands_nor_the_core() -> None:
    code = "import sys; from palmette.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    modules = {row[0] for row in (*COMMANDS.values(), *UNDER.values())}
    assert "palmette.cli.group" in imported
    assert not imported & {*modules, "palmette._core", "rich", "difflib"}


def test_a_command_that_takes_a_size_takes_either_name_and_shows_one(palmette: Call) -> None:
    sized = 0
    for words, row in ({(name,): row for name, row in COMMANDS.items()} | UNDER).items():
        names = {name for one in loaded(*row[:2]).params if isinstance(one, click.Option) for name in one.opts}
        if not names & {"--size", "--sizes"}:
            continue
        sized += 1
        assert {"--size", "--sizes"} <= names, words
        shown = palmette(*words, "--help").out.split()
        assert not {"--size", "--sizes", "--size,", "--sizes,"} <= set(shown)
        assert ("--size," in shown) + ("--sizes," in shown) == 0
        assert words == ("explain",) or ("--size" in shown) + ("--sizes" in shown) > 0
    assert sized >= 12


def test_a_size_by_its_other_name_is_the_same(palmette: Call) -> None:
    machine = ("--machine", "2leaf:2node")
    for words in ("plan gather", "flow gather", "predict gather", "explain gather", "map --pattern ring"):
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
