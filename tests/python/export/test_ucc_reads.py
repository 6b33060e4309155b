"""UCC reads the strings that are exported for it, takes what they say, and its collectives stay right."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from palmette import _core
from palmette.export import ucc_tune
from palmette.export.decisions import WITHOUT_SIZE
from palmette.export.make import make_exports

from .conftest import table_of

ROOT = Path(__file__).parents[3]
PREFIX = ROOT / ".mpi" / "ucc" / "usr"
PROGRAM = Path(__file__).parent / "programs" / "ucc_sends.c"
RANKS, RANKS_OF_NODE = 8, 2

Sends = Callable[..., str]
Ranges = dict[str, list[tuple[int, float, str]]]


@pytest.fixture(scope="session")
def sends(tmp_path_factory: pytest.TempPathFactory) -> Sends:
    """Run collectives on eight ranks of four nodes: `sends({"K": "V"}, "allreduce:16")`, all that it says."""
    libraries = PREFIX / "lib" / "x86_64-linux-gnu"
    if not (libraries / "libucc.so.1").exists():
        pytest.skip("no UCC in .mpi/ucc: tools/setup_ucc.sh unpacks it")
    program = tmp_path_factory.mktemp("ucc") / "ucc_sends"
    words = ["gcc", "-std=gnu11", "-Wall", "-Werror", "-O1", "-rdynamic", f"-I{PREFIX / 'include'}", str(PROGRAM)]
    # Libraries of a newer release than the compiler's: what they need is found when the program runs.
    words += [str(libraries / "libucc.so.1"), "-Wl,--allow-shlib-undefined", "-ldl", "-o", str(program)]
    built = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert built.returncode == 0, built.stderr

    def run(variables: Mapping[str, str], *collectives: str, ranks: int = RANKS) -> str:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("UCC_", "UCX_"))}
        loopback = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}
        start = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]
        done = subprocess.run(
            [*start, str(program), str(ranks), str(RANKS_OF_NODE), *collectives], env={**own, **loopback, **variables},
            capture_output=True, text=True, timeout=120, check=False, start_new_session=True,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
        return done.stdout + done.stderr

    return run


def chosen(sends: Sends, variables: Mapping[str, str]) -> Ranges:
    """What UCC says that it takes for data in the memory of hosts: (from, up to, function of its own) by collective."""
    text = sends({**variables, "UCC_LOG_LEVEL": "debug"})
    assert "ERROR" not in text, re.findall("ERROR.*", text)
    found: Ranges = {}
    for name, ranges in re.findall(r"INFO\s+(\w+):\n.*\sHost: (.*)", text):
        for start, end, function in re.findall(r"\{(\w+)(?:\.\.(\w+))?\}:\w+:\w+=(\w+)", ranges):
            found.setdefault(name.lower(), []).append((int(_bytes(start)), _bytes(end or start), function))
    assert found, text[-2000:]
    return found


def _bytes(text: str) -> float:
    if text == "inf":
        return float("inf")
    return int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1], 0)


def taken(ranges: Ranges, collective: str, size: int) -> str:
    """The function that UCC takes for a size."""
    (function,) = {name for start, end, name in ranges[collective] if start <= size <= end}
    return function


def rule_names() -> list[tuple[str, str, str]]:
    """(variable, collective, algorithm) of all that an export can name."""
    plain = {("UCC_TL_UCP_TUNE", function, name) for (function, _), name in ucc_tune.PLAIN.items()}
    return sorted(plain | {("UCC_CL_HIER_TUNE", function, name) for (function, _), name in ucc_tune.TWO_LEVELS.items()})


@pytest.mark.parametrize(("variable", "function", "name"), rule_names())
def test_ucc_has_every_algorithm_that_an_export_can_name(sends: Sends, variable: str, function: str, name: str) -> None:
    collective = ucc_tune.NAMES.get(function, function)
    layers = {} if variable == "UCC_TL_UCP_TUNE" else {"UCC_CLS": "basic,hier"}
    ranges = chosen(sends, {**layers, variable: f"{collective}:0-inf:host:[{RANKS}-{RANKS}]:inf:@{name}"})
    assert f"{collective}_{name}" in taken(ranges, collective, 64)
    assert f"{collective}_{name}" in taken(ranges, collective, 1 << 20)


def test_ucc_ignores_strings_with_an_unknown_algorithm(sends: Sends) -> None:
    for rule in ("allgather:0-inf:host:inf:@rong", "barrier:host:inf:@knomial", "gather:0-inf:host:inf:@knomial"):
        text = sends({"UCC_TL_UCP_TUNE": rule})
        assert f"failed to parse UCC_*_TUNE parameter: {rule}" in text


def exported(table: _core.Table, placement: str) -> tuple[Mapping[str, str], Sequence[tuple[str, int, str]]]:
    """Variables of an export for eight ranks on four nodes, and (collective, bytes, algorithm) at the ends of its
    rules."""
    (made,) = make_exports(
        ["ucc-tune"], table, _core.Job(_core.Machine.synthetic("2leaf@50Mbit/s:2node@100Mbit/s:2core"), placement)
    )
    ends = []
    for line in made.mapped:
        function, start, end = line.decision.function, line.decision.min_bytes, line.decision.max_bytes
        factor = RANKS if function in ucc_tune.OF_ALL_RANKS else 1
        sizes = [0] if function in WITHOUT_SIZE else [start * factor, (1 << 30 if end is None else end) * factor]
        ends += [(ucc_tune.NAMES.get(function, function), size, line.match.name or "") for size in sizes]
    return made.environment(Path()), ends


@pytest.mark.parametrize("placement", ["block", "random:1"])
def test_ucc_takes_all_of_the_built_in_table(sends: Sends, placement: str) -> None:
    variables, ends = exported(_core.Table.built_in(), placement)
    assert len(ends) > 20
    ranges = chosen(sends, variables)
    wrong = [
        (*end, taken(ranges, end[0], end[1])) for end in ends if f"{end[0]}_{end[2]}" not in taken(ranges, *end[:2])
    ]
    assert not wrong


def test_rules_without_two_levels_need_no_scores_of_layers(sends: Sends) -> None:
    variables, ends = exported(table_of([{"function": "allreduce", "algorithm": "rabenseifner"}]), "block")
    assert "UCC_CLS" not in variables
    assert "UCC_CL_BASIC_TUNE" not in variables
    assert {taken(chosen(sends, variables), *end[:2]) for end in ends} == {"ucc_tl_ucp_allreduce_sra_knomial_init"}


@pytest.mark.parametrize(
    ("function", "algorithms", "messages"),
    [
        ("allgather", ("ring", "neighbor_exchange"), (7, 4)),
        ("allgatherv", ("ring", "recursive_doubling"), (8, 3)),
        ("allreduce", ("rabenseifner", "recursive_doubling"), (6, 4)),
        ("alltoall", ("bruck", "pairwise"), (3, 8)),
        ("reduce_scatter_block", ("recursive_halving", "ring"), (4, 14)),
    ],
)
def test_ucc_changes_where_palmette_changes_in_sizes_as_palmette_counts_them(
    sends: Sends, function: str, algorithms: tuple[str, str], messages: tuple[int, int]
) -> None:
    rows = [{"function": function, "max_bytes": 511, "algorithm": algorithms[0]}]
    rows += [{"function": function, "algorithm": algorithms[1]}]
    variables, _ = exported(table_of(rows), "block")
    name = ucc_tune.NAMES.get(function, function)
    for count, number in ((127, messages[0]), (128, messages[1])):
        assert f"{name} {count}: {' '.join([str(number)] * RANKS)} right" in sends(variables, f"{name}:{count}")


def test_a_communicator_of_another_size_keeps_the_librarys_own(sends: Sends) -> None:
    variables, _ = exported(table_of([{"function": "allgather", "algorithm": "ring"}]), "block")
    assert f"allgather 16: {' '.join(['7'] * 8)} right" in sends(variables, "allgather:16")
    assert sends(variables, "allgather:16", ranks=4) == sends({}, "allgather:16", ranks=4)


COLLECTIVES = ("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "bcast", "gather", "reduce",
               "reduce_scatter", "reduce_scatterv")  # fmt: skip


@pytest.mark.parametrize("placement", ["block", "cyclic"])
def test_all_collectives_stay_right_with_the_strings(sends: Sends, placement: str) -> None:
    variables, _ = exported(_core.Table.built_in(), placement)
    calls = [f"{name}:{count}" for name in COLLECTIVES for count in (1, 1000, 30_000)]
    lines = sends(variables, *calls, "barrier").splitlines()
    assert re.match(r"UCC 1\.\d+", lines[0])
    assert len(lines) == len(calls) + 2
    assert [line for line in lines[1:] if not line.endswith("right")] == []
