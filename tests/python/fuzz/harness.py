"""Runs damaged command lines in process, in workers that a signal, a hang or too much memory may end.

A case is drawn from a seed and a number alone, so that one that fails is run again by
`python tests/python/fuzz/harness.py --seed S --case N`, which also leaves its files.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import corpus  # type: ignore[import-not-found]
import deep  # type: ignore[import-not-found]
import mutate  # type: ignore[import-not-found]

CPU_S = 10
MEMORY = 1 << 30
REFUSED_CPU_S = 2
REFUSED_MEMORY = 300 << 20
HANG_S = 120
"""Wall-clock time after which a case that computes nothing hangs, on a busy machine too."""
SETTINGS = ("PALMETTE_TABLE", "PALMETTE_TOPOLOGY", "PALMETTE_FORCE", "PALMETTE_SHARED", "PALMETTE_ENABLE",
"PALMETTE_CHECK",
            "PALMETTE_DEVICE", "PALMETTE_PROFILE", "PALMETTE_REORDER", "PALMETTE_NONSENSE")  # fmt: skip


WRITES = (
    "-o",
    "--output",
    "--svg",
    "--write",
    "--write-platform",
    "--write-results",
    "--report",
    "--folder",
    "--profile",
    "--trace",
)
"""Options whose value is written: all other files stay as they are."""

UNDAMAGED = -1
"""The seed of the corpus as it is."""
DEEP_SEED = 10**9
"""Seeds from here on draw deep structures alone."""


class LaunchAttempt(BaseException):
    """A command is about to start another program: all of its input has been accepted."""


@dataclass
class Case:
    """A command line, the files that it finds besides the corpus, and settings."""

    words: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a case ended with."""

    number: int
    case: Case
    status: int | None = None
    """None: it started another program."""
    err: str = ""
    wrong: str = ""
    cpu_s: float = 0.0
    peak: int = 0


def options_of(words: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the options that the command of a line takes, and whether each wants a value."""
    import click

    from programs import PROGRAMS

    name, rest = program_of(words)
    command: click.Command = PROGRAMS[name]
    for word in rest:
        below = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if below is None:
            break
        command = below
    if isinstance(command, click.Group) and (default := getattr(command, "table", None) and command.table.default):
        command = command.get_command(click.Context(command), default) or command
    return [(option, not one.is_flag) for one in command.params if isinstance(one, click.Option) for option in one.opts]


def program_of(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the program that a line of the corpus calls and its words: palmette, or palmette-lab behind `lab`."""
    return ("palmette-lab", [*words[1:]]) if words[:1] == ["lab"] else ("palmette", [*words])


@cache
def _mpiexec() -> str:
    """A real launcher where there is one."""
    from palmette.mpi import install as mpi_install

    found = mpi_install.find_all()
    return str(found[0].mpiexec) if found else "./mpirun"


def draw_case(seed: int, number: int, files: dict[str, bytes]) -> Case:
    """Return case `number` of a seed; of UNDAMAGED the line of that number."""
    if seed == UNDAMAGED:
        return Case(shlex.split(corpus.LINES[number].replace("@MPIEXEC@", _mpiexec())))
    draw = random.Random(f"{seed}:{number}")
    lines = corpus.LINES
    if seed >= DEEP_SEED and draw.random() < 0.7:
        lines = [line for line in lines if deep.KINDS & set(line.split())]
    words = shlex.split(draw.choice(lines).replace("@MPIEXEC@", _mpiexec()))
    case = Case(words)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        action = draw.random()
        named = [index for index, word in enumerate(words) if word in files]
        if action < 0.45 and named:
            index = draw.choice(named)
            if draw.random() < 0.1:
                words[index] = draw.choice(
                    ("folder", "fifo", "missing", "empty", "binary", "zeros", "/dev/zero", ".", *files)
                )
            else:
                name, held = words[index], case.files.get(words[index], files[words[index]])
                is_deep = draw.random() < 0.1 or seed >= DEEP_SEED
                case.files[name] = deep.data(draw, name, held) if is_deep else mutate.data(draw, held)
        elif action < 0.75 and len(words) > 1:
            index = draw.randrange(1, len(words))
            is_deep = draw.random() < 0.05 or seed >= DEEP_SEED
            words[index] = deep.forms(draw) if is_deep else mutate.text(draw, words[index])
        elif action < 0.9:
            options = options_of(words)
            if options:
                option, wants = draw.choice(options)
                value = draw.choice((*mutate.NUMBERS, *mutate.WORDS, *files))
                at = draw.randint(1, len(words))
                words[at:at] = [option, value.replace("\x00", "")] if wants else [option]
        elif action < 0.96 and len(words) > 1:
            index = draw.randrange(1, len(words))
            words[index : index + 1] = draw.choice(([], [words[index]] * 2, [draw.choice(mutate.WORDS)]))
        else:
            value = draw.choice((*mutate.NUMBERS, *mutate.WORDS, *files)).replace("\x00", "")
            case.environment[draw.choice(SETTINGS)] = value.encode("utf-8", "surrogateescape").decode(
                "utf-8", "replace"
            )
    return case


def _launched(*_words: Any, **_options: Any) -> NoReturn:
    raise LaunchAttempt


def _guard() -> None:
    """Let nothing be started from here."""
    subprocess.Popen.__init__ = _launched  # type: ignore[method-assign]
    for name in (
        "execv",
        "execve",
        "execvp",
        "execvpe",
        "posix_spawn",
        "posix_spawnp",
        "fork",
        "system",
        "kill",
        "killpg",
    ):
        setattr(os, name, _launched)


def _lay_out(folder: Path, files: dict[str, bytes], case: Case) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "folder").mkdir(parents=True)
    os.mkfifo(folder / "fifo")
    extra = {"empty": b"", "binary": bytes(range(256)) * 8, "zeros": bytes(100_000)}
    for name, contents in {**files, **extra, **case.files}.items():
        (folder / name).write_bytes(contents)
    for name in ("srun", "mpirun", "a.out"):
        (folder / name).chmod(0o755)


def _peak(reset: bool = False) -> int:
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _run(number: int, case: Case, folder: Path, files: dict[str, bytes]) -> Outcome:
    from programs import MAINS

    outcome = Outcome(number, case)
    _lay_out(folder, files, case)
    os.chdir(folder)
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + CPU_S + 2, resource.RLIM_INFINITY))
    before = _peak(reset=True)
    out, err = (
        io.TextIOWrapper(io.BytesIO(), "utf-8", errors=how, write_through=True)
        for how in ("strict", "backslashreplace")
    )
    saved = dict(os.environ)
    os.environ.update(case.environment)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            name, words = program_of(case.words)
            outcome.status = MAINS[name](words)
    except LaunchAttempt:
        pass
    except BaseException as error:
        outcome.wrong = f"raised {type(error).__name__}: {error}"
    finally:
        os.environ.clear()
        os.environ.update(saved)
    used = resource.getrusage(resource.RUSAGE_SELF)
    outcome.cpu_s = used.ru_utime + used.ru_stime - cpu
    outcome.peak = _peak() - before
    outcome.err = "" if err.closed else err.buffer.getvalue().decode("utf-8", "replace")
    said = outcome.err + ("" if out.closed else out.buffer.getvalue().decode("utf-8", "replace"))
    outcome.wrong = outcome.wrong or judge(outcome, said) or touched(case, folder, files)
    return outcome


def touched(case: Case, folder: Path, files: dict[str, bytes]) -> str:
    """Say which file a command has changed, or made, that no option of it names as its output; or nothing."""
    following = [value for option, value in zip(case.words, case.words[1:], strict=False) if option in WRITES]
    joined = [word for word in case.words if word.startswith(tuple(f"{option}=" for option in WRITES))]
    named = {*following, *(word.split("=", 1)[1] for word in joined), *(word.partition("=")[2] for word in following)}
    may = {part for word in named for part in (word, word.partition("/")[0])}
    if case.words[0] == "discover":
        may.add("topology.json")  # the default of its -o
    if case.words[0] == "run" and any(word.startswith("--sample") for word in case.words):
        may.add("palmette-samples")  # of --sample, where no folder is named
    if case.words[:2] == ["bench", "report"]:
        may.add("bench.html")  # of its -o, too
    expected = {**files, **case.files}
    left = {path.name for path in folder.iterdir()}
    for name, contents in expected.items():
        if name not in may and (name not in left or (folder / name).read_bytes() != contents):
            return f"changed {name}"
    made = left - expected.keys() - may - {"folder", "fifo", "empty", "binary", "zeros", "labs"}
    return f"made {', '.join(sorted(made))}" if made else ""


def judge(outcome: Outcome, said: str) -> str:
    """Say what is wrong with the end of a case, or nothing."""
    status, err = outcome.status, outcome.err
    if "Traceback (most recent" in said:
        return "a traceback"
    if status not in (None, 0, 1, 2):
        return f"status {status}"
    if status == 2 and not err.strip():
        return "status 2 without a word"
    if status == 2 and err.rstrip("\n").count("\n") > 20:
        return "more than 20 lines"
    if any(not one.isprintable() and one != "\n" for one in err):
        return "control characters"
    if max(map(len, said.split("\n"))) > 4000 and "--json" not in outcome.case.words:
        return "a line of more than 4,000 characters"
    if outcome.cpu_s > CPU_S:
        return f"{outcome.cpu_s:.1f} s"
    if outcome.peak > MEMORY:
        return f"{outcome.peak >> 20} MB"
    if status == 2 and outcome.cpu_s > REFUSED_CPU_S:
        return f"{outcome.cpu_s:.1f} s for what is refused"
    if status == 2 and outcome.peak > REFUSED_MEMORY:
        return f"{outcome.peak >> 20} MB for what is refused"
    return ""


def _work(connection: Connection, seed: int, numbers: Sequence[int], folder: Path, files: dict[str, bytes]) -> None:
    """In a worker: run the cases one after the other, telling each one before and after."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ["PALMETTE_LAB_STATE"] = str(folder / "labs")
    tempfile.tempdir = str(folder.parent)
    _guard()
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
    size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    # Address space is more than memory: numpy and the C++ core map what they never touch.
    resource.setrlimit(resource.RLIMIT_AS, (size + 3 * MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        connection.send(number)
        connection.send(_run(number, draw_case(seed, number, files), folder, files))
    connection.send(None)


@dataclass
class _Worker:
    connection: Connection
    pid: int
    left: list[int]
    at: int | None = None
    since: float = field(default_factory=time.monotonic)


def _start(seed: int, numbers: list[int], folder: Path, files: dict[str, bytes]) -> _Worker:
    mine, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            mine.close()
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1):
                os.dup2(null, descriptor)
            _work(theirs, seed, numbers, folder, files)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    theirs.close()
    return _Worker(mine, pid, numbers)


def run(seed: int, numbers: Sequence[int], folder: Path, workers: int = 2) -> Iterator[Outcome]:
    """Run the cases of a seed, and yield what each ended with."""
    from multiprocessing.connection import wait

    inputs = folder / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    with redirect_stdout(io.StringIO()):
        files = {name: (inputs / name).read_bytes() for name in corpus.write(inputs)}
    _load()
    _mpiexec()
    shares = [list(numbers[index::workers]) for index in range(workers)]
    running = {
        index: _start(seed, share, folder / f"worker{index}" / "at", files)
        for index, share in enumerate(shares)
        if share
    }
    while running:
        ready = wait([worker.connection for worker in running.values()], timeout=1)
        for index, worker in list(running.items()):
            if worker.connection not in ready:
                if time.monotonic() - worker.since < HANG_S:
                    continue
                os.kill(worker.pid, signal.SIGKILL)
            try:
                told = worker.connection.recv()
            except (EOFError, OSError):
                yield _ended(seed, worker, files)
                worker.connection.close()
                del running[index]
                if worker.left:
                    running[index] = _start(seed, worker.left, folder / f"worker{index}" / "at", files)
                continue
            worker.since = time.monotonic()
            if isinstance(told, int):
                worker.at = told
                worker.left.remove(told)
            elif told is None:
                os.waitpid(worker.pid, 0)
                worker.connection.close()
                del running[index]
            else:
                yield told


def _ended(seed: int, worker: _Worker, files: dict[str, bytes]) -> Outcome:
    """What ended a worker: a signal, or its hang."""
    _, status = os.waitpid(worker.pid, 0)
    number = -1 if worker.at is None else worker.at
    why = f"ended with {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "ended the process"
    why = {"ended with SIGXCPU": f"more than {CPU_S} s", "ended with SIGKILL": "hangs"}.get(why, why)
    return Outcome(number, draw_case(seed, number, files), wrong=why)


def _load() -> None:
    """Import all commands once, before workers are made."""
    from programs import commands

    commands()


def describe(seed: int, outcome: Outcome) -> str:
    """Return a failed case in a few lines."""
    case = outcome.case
    files = {name: contents[:300] for name, contents in case.files.items()}
    return (
        f"{outcome.wrong}: case {outcome.number} of seed {seed}: {case.words} {case.environment or ''}\n"
        f"  said: {outcome.err[:600]!r}\n  files: {files}"
    )


def main() -> int:
    """Run cases; 1 where one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int, help="this one alone, with its files left and all that it says")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--undamaged", action="store_true", help="the lines of the corpus as they are")
    parser.add_argument("--json", action="store_true", help="what each case took")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="palmette-fuzz-"))
    numbers = [given.case] if given.case is not None else range(given.first, given.first + given.cases)
    if given.undamaged:
        given.seed, numbers = UNDAMAGED, range(len(corpus.LINES))
    failed = 0
    statuses: dict[str, int] = {}
    slowest = largest = Outcome(-1, Case([]))
    for outcome in run(given.seed, numbers, folder):
        statuses[str(outcome.status)] = statuses.get(str(outcome.status), 0) + 1
        slowest = max(slowest, outcome, key=lambda one: one.cpu_s)
        largest = max(largest, outcome, key=lambda one: one.peak)
        if given.json:
            print(json.dumps([outcome.number, outcome.status, outcome.cpu_s, outcome.peak, outcome.wrong]))
        if given.undamaged and outcome.status == 2 and not outcome.wrong and outcome.case.words[0] != "lab":
            outcome.wrong = "refused"
        if outcome.wrong:
            failed += 1
        if outcome.wrong or given.case is not None:
            print(describe(given.seed, outcome), flush=True)
    print(f"{len(numbers)} cases, {failed} failed; statuses {statuses}; "
          f"at most {slowest.cpu_s:.1f} s (case {slowest.number}), "
          f"{largest.peak >> 20} MB (case {largest.number})")  # fmt: skip
    if given.case is None and given.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
