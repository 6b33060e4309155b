"""Random programs over all functions of the recorder: what it and every converter say of them is what the
programs themselves have counted (tests/mpi/oracle.cpp).
"""

from __future__ import annotations

import csv
import importlib.util
import os
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from palmette import _core
from palmette.record.findings import findings_of
from palmette.record.formats.convert import convert
from palmette.record.functions import ENDS, operation
from palmette.record.reading import read_job
from palmette.record.sums import sums_of

from . import conftest
from .account import AccountComparison, Pair, read_accounts
from .conftest import BUILD, ROOT, Mpi
from .test_convert import Archive
from .test_matrix import rows
from .waits_of_account import compare_waits

pytestmark = pytest.mark.mpi

FIRST = int(os.environ.get("PALMETTE_TEST_ORACLE", "0"))
"""The first program; another number draws other programs."""
SHOWN = 12
"""Differences that a failure shows."""


def recorded(
    mpi: Mpi, ranks: int, first: int, count: int, *options: object, settings: Mapping[str, str] | None = None
) -> tuple[AccountComparison, Path]:
    """Run programs that are recorded; return their accounts beside the recording, and its folder."""
    folder, prefix = (mpi.directory / f"{name}-{first}" for name in ("trace", "account"))
    variables = {"PALMETTE_TRACE": str(folder), **(settings or {})}
    ran = mpi.run(ranks, "oracle", prefix, first, count, *options, settings=variables)
    assert ran.status == 0, ran.text
    return AccountComparison(read_accounts(prefix, ranks), read_job(folder)), folder


def compare_matrix(compared: AccountComparison, folder: Path) -> None:
    """Compare what each rank has sent to each."""
    for word, expected in (
        ("sent", {(one.rank, to): sums for one in compared.accounts for to, sums in one.sent.items()}),
        ("exchanged", {(one.rank, to): sums for one in compared.accounts for to, sums in one.exchanged.items()}),
    ):
        found = rows(folder, word)
        for pair in found.keys() | expected.keys():
            compared.same(f"matrix, {word} from {pair[0]} to {pair[1]}", found.get(pair), expected.get(pair))


def compare_sqlite(compared: AccountComparison, file: Path) -> None:
    """Compare single calls, and which receive got which send."""
    with closing(sqlite3.connect(file)) as database:
        calls = database.execute(
            "SELECT c.id, process, f.name, is_request, bytes, peer, tag, instance, thread, end_ns - begin_ns "
            "FROM calls c JOIN functions f ON f.id = function ORDER BY c.id"
        ).fetchall()
        messages = database.execute("SELECT send, receive, bytes FROM messages").fetchall()
    at = [0] * len(compared.recorded)
    row_of: dict[int, tuple[int, int]] = {}
    for number, rank, function, is_request, size, peer, tag, instance, thread, _ in calls:
        one = compared.recorded[rank][at[rank]]
        row_of[number] = rank, at[rank]
        at[rank] += 1
        says = function, bool(is_request), size, peer, tag, instance, thread
        compared.same(f"sqlite, call {number}", says, as_written(one, None))
    compared.same("sqlite, calls", at, [len(one) for one in compared.recorded])
    found: Counter[Pair] = Counter()
    for send, receive, size in messages:
        found[compared.end_of(*row_of[send]), compared.end_of(*row_of[receive])] += 1
        compared.same(f"sqlite, bytes of message {send} to {receive}", size, compared.bytes_of(*row_of[send]))
    compared.compare_pairs(found)


def as_written(one: _core.RecordedCall, nothing: object) -> tuple[object, ...]:
    """Return a call as a file has it that knows no numbers for nothing."""
    tag: object = nothing if one.instance or one.peer == -1 else one.tag
    peer = one.peer if one.peer >= 0 else nothing
    return one.function, one.is_request, one.bytes, peer, tag, one.instance or nothing, one.thread


def compare_csv(compared: AccountComparison, file: Path) -> None:
    """Compare single calls."""
    at = [0] * len(compared.recorded)
    with file.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            rank = int(line["rank"])
            one = compared.recorded[rank][at[rank]]
            at[rank] += 1
            says = (
                line["function"], line["is_request"] == "1", int(line["bytes"]),
                *(int(line[name]) if line[name] else "" for name in ("peer", "tag", "instance")), int(line["thread"]),
            )  # fmt: skip
            compared.same(f"csv, rank {rank}, row {at[rank]}", says, as_written(one, ""))
    compared.same("csv, calls", at, [len(one) for one in compared.recorded])


def compare_otf2(compared: AccountComparison, folder: Path) -> None:
    """Compare what OTF2's own reader reads: calls, messages, collectives."""
    archive = Archive(folder)
    calls, _ = compared.expected_sums()
    left = {key[:2] for key in compared.left()}
    for key in archive.calls.keys() | {key[:2] for key in calls if not key[2]}:
        if key not in left:
            compared.same(f"OTF2, calls of {key}", archive.calls[key], calls[(key[0], key[1], False)])
    pairs, half = compared.expected_pairs()
    maybe = {(end[0], end[3]) for end in half}
    for what, found in (("sent", archive.sent), ("received", archive.received)):
        messages: Counter[tuple[int, int, int]] = Counter()
        for (message, _size), count in found.items():
            messages[message] += count
        expected: Counter[tuple[int, int, int]] = Counter()
        for (send, receive), count in pairs.items():
            assert send is not None and receive is not None
            expected[send[0], receive[0], send[3]] += count
        for message in messages.keys() | expected.keys():
            if (message[0], message[2]) not in maybe:
                compared.same(f"OTF2, {what} {message}", messages[message], expected[message])
    collectives: Counter[tuple[str, int]] = Counter()
    for name, size in compared.expected_collectives():
        collectives[operation(name), size] += 1
    for one in archive.collectives.keys() | collectives.keys():
        compared.same(f"OTF2, collectives {one}", archive.collectives[one], collectives[one])


def compare_report(compared: AccountComparison) -> None:
    """Compare what `palmette report` and `palmette top --calls` add up by function and place."""
    calls, sizes = compared.expected_sums()
    left = {function for _, function, _ in compared.left()}
    sums = sums_of(compared.job).rows
    findings = findings_of(compared.job)
    waits = findings.view.waits
    shown = {
        "top": [(row.function, row.calls, row.bytes) for row in sums],
        "report": [(waits.functions[row.function], row.split.calls, row.split.bytes) for row in waits.rows],
    }
    for what, added in shown.items():
        found: dict[str, Counter[str]] = {"calls": Counter(), "bytes": Counter()}
        for function, number, size in added:
            found["calls"][function] += number
            found["bytes"][function] += size
        for word, of_ranks in (("calls", calls), ("bytes", sizes)):
            expected: Counter[str] = Counter()
            for (_, function, is_request), number in of_ranks.items():
                if not is_request:
                    expected[function] += number
            for function in (found[word].keys() | expected.keys()) - left - set(ENDS):
                compared.same(f"{what}, {word} of {function}", found[word][function], expected[function])
    waited_s = sum(row.split.waiting_s for row in waits.rows)
    compared.same("report, waiting", round(findings.waiting_s * 1e6), round(waited_s * 1e6))


def compare(compared: AccountComparison, folder: Path, otf2: bool) -> list[str]:
    """Compare everything; return the differences."""
    compared.compare_calls()
    compared.compare_sums()
    compare_waits(compared)
    compare_report(compared)
    compare_matrix(compared, folder)
    for name, check in (("sqlite", compare_sqlite), ("csv", compare_csv), ("otf2", compare_otf2)):
        if name == "otf2" and not otf2:
            continue
        file = folder.with_suffix(f".{name}")
        convert(compared.job, name, file)
        check(compared, file)
    return compared.differences


KINDS: dict[str, tuple[int, tuple[object, ...], dict[str, str]]] = {
    "alone": (4, (), {"PALMETTE_ENABLE": "0"}),
    "served": (3, (), {}),
    "threads": (4, ("--threads", 1), {}),
}
"""Ranks, options, settings."""


def settings_of(mpi: Mpi, kind: str) -> dict[str, str]:
    """Return the settings of a kind. Intel MPI 2021.18's shared memory (shm) leaves such programs hanging now and
    then on a busy machine: 18 of 550 runs without any library of palmette's never ended, of 300 over OFI none did.
    """
    fabric = {"I_MPI_FABRICS": "ofi"} if mpi.name == "impi" and kind == "threads" else {}
    return {**KINDS[kind][2], **fabric}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ("mpich", "mpich-abi", "openmpi", "impi"))
def test_random_programs_are_recorded_as_they_ran(mpi_called: Callable[[str], Mpi], variant: str, kind: str) -> None:
    mpi = mpi_called(variant)
    ranks, options, _ = KINDS[kind]
    count = 50
    first = FIRST + 1000 * list(KINDS).index(kind)
    compared, folder = recorded(mpi, ranks, first, count, *options, settings=settings_of(mpi, kind))
    differences = compare(compared, folder, otf2=kind != "served")
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences[:SHOWN])


def ends_alone(mpi: Mpi, ranks: int, first: int, count: int, *options: object, settings: Mapping[str, str]) -> bool:
    """Whether the MPI alone runs these programs to their end: one of them may meet a defect of its own."""
    prefix = mpi.directory / "alone"
    try:
        ran = mpi.run(ranks, "oracle", prefix, first, count, *options, settings=settings, preload=False, timeout_s=60)
    except pytest.fail.Exception:
        return False
    return ran.status == 0


@pytest.mark.long
@pytest.mark.parametrize("variant", ("mpich", "openmpi", "impi"))
def test_ten_thousand_are(mpi_called: Callable[[str], Mpi], variant: str) -> None:
    mpi = mpi_called(variant)
    each, skipped = 40, 0
    for number in range(250):
        kind = list(KINDS)[number % len(KINDS)]
        ranks, options, _ = KINDS[kind]
        settings = settings_of(mpi, kind)
        ranks += number % 2
        first = FIRST + 100_000 + each * number
        try:
            compared, folder = recorded(mpi, ranks, first, each, *options, settings=settings)
        except (AssertionError, pytest.fail.Exception):
            if all(ends_alone(mpi, ranks, first, each, *options, settings=settings) for _ in range(5)):
                raise
            skipped += 1
            continue
        differences = compare(compared, folder, otf2=number % 5 == 0)
        assert not differences, f"{first}: {len(differences)} differences\n" + "\n".join(differences[:SHOWN])
    assert skipped < 40


def faults() -> ModuleType:
    """The module that plants them."""
    spec = importlib.util.spec_from_file_location("planted_faults", ROOT / "tests" / "mutations" / "recorder.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_planted_faults_change_what_stands_in_the_recorder(tmp_path: Path) -> None:
    module = faults()
    assert len(module.MUTATIONS) >= 30
    module.main(ROOT / "src" / "palmette", tmp_path)  # a ValueError names a text that isn't there any more
    assert (tmp_path / "palmette" / "record" / "call.hpp").read_text().count("oracle::mutation()") > 10


def is_found(mpi: Mpi, number: int) -> bool:
    """Whether the random programs of a few jobs find a fault: they differ, fail or end with an error."""
    for job, (ranks, options, settings) in enumerate((*KINDS.values(), *list(KINDS.values())[:2])):
        mpi.directory.joinpath(str(number)).mkdir(exist_ok=True)
        own = Mpi(mpi.installation, mpi.abi, mpi.directory / str(number), mpi.counter)
        try:
            compared, folder = recorded(
                own, ranks, 200_000 + 1000 * job, 60 if job < len(KINDS) else 400, *options, settings=settings
            )
            if compare(compared, folder, otf2=False):
                return True
        except (AssertionError, pytest.fail.Exception, LookupError):
            return True
    return False


@pytest.mark.long
def test_all_planted_faults_of_the_recorder_are_found(
    mpi_called: Callable[[str], Mpi], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = subprocess.run(
        [ROOT / "tools" / "build.sh", "release", "2", "palmette_record_mutated"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    libraries = tmp_path / "libraries"
    shutil.copytree(conftest.PRELOADS, libraries)
    mutated = "libpalmette_record_mpich.so"
    shutil.copy(BUILD / "mutations" / "lib" / mutated, libraries / mutated)
    monkeypatch.setattr(conftest, "PRELOADS", libraries)
    mpi = mpi_called("mpich")
    assert not is_found(mpi, 0), "a fault is found where there is none"
    missed = []
    for number, (name, *_) in enumerate(faults().MUTATIONS, 1):
        monkeypatch.setenv("ORACLE_MUTATION", str(number))
        if not is_found(mpi, number):
            missed.append(name)
    assert not missed
