"""Call paths in words: function, file and line of addresses, the functions that are inlined there, and loops.

`structure` reads the debug information and the code, in a process of its own; what it doesn't tell, the symbol table
names. A module that was built anew since isn't read: its addresses would name other lines. What takes longer than two
seconds says so on standard error, and what wasn't found out is a note.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any, Protocol

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from palmette.record.structure.names import Names
from palmette.record.structure.symbol_table import SymbolTable, build_id

READING_S = 60.0
"""Time limit of one module: debug information of gigabytes takes that long. What has been answered by then is kept."""
QUIET_S = 2.0
"""Seconds after which it is said what is being read."""
WORKER = "palmette.record.structure.worker"
OURS = "libpalmette_"
"""Modules whose frames nobody asks for."""
MPI_MODULES = ("libmpi", "libpmpi", "libopen-", "libpalmette_", "libmpi_mpifh", "libmpifort")

REGION = "region:"
"""Begins the `module` of what is no frame but a region of the program's that the others lie in: its name follows."""
PYTHON = "python:"
"""Begins the `module` of a function of Python's: name and file follow, and offsets are lines."""
CYTHON = re.compile(r"__[pP]yx_")
"""Functions that Cython has made."""
INTERPRETER = re.compile(r"(lib)?python[\d.]*(\.so.*)?$")
"""CPython's modules."""
STARTS = re.compile(r"_start|__libc_start_.*|clone3?|start_thread|thread_start|_dl_start_user")
"""Functions that a stack begins with, before main or a thread's own."""
SYSTEM = re.compile(
    r"(libc|libm|libmvec|libpthread|librt|libdl|ld-linux.*|libstdc\+\+|libgcc_s|libgomp|libgfortran|libquadmath)"
    r"(-[\d.]+)?\.so"
    r"|\[vdso\]|linux-vdso"
)
"""Modules of the system, whose loops nobody asks for."""


class FrameLike(Protocol):
    """A return address: of a recording, or named otherwise."""

    @property
    def module(self) -> str: ...
    @property
    def build_id(self) -> str: ...
    @property
    def offset(self) -> int: ...


@dataclass(frozen=True)
class Frame:
    """A return address as `_core.Waits.paths` names it."""

    module: str
    build_id: str
    offset: int


_FRAME = re.compile(r"(.*?)@([0-9a-f]*)\+(\d+)(?:;|$)", re.DOTALL)
"""Module, build id and offset; a module's path may have any of the signs between them."""


def frames_of(path: str) -> list[Frame]:
    """Return the frames of such a path, the innermost first."""
    return [Frame(module, build_id, int(offset)) for module, build_id, offset in _FRAME.findall(path)]


@dataclass(frozen=True)
class Place:
    """A place in the source of a call; `line` is 0 where only the function is known, `function` may be an address."""

    function: str
    file: str = ""
    line: int = 0

    is_outer: bool = False
    """The call itself was in a local function that no table names; this is the innermost one that is named."""
    loops: tuple[Place, ...] = field(default=(), compare=False)
    """The loops of the function that it is in, the outermost first, each by its name and first line."""

    @property
    def frames(self) -> list[Place]:
        """The function and its loops, the outermost first, each at the line of the next one: `main` at the line of a
        loop, the loop at the line of the call.
        """
        lines = [*(loop.line for loop in self.loops), self.line]
        functions = [(self.function, self.file), *((loop.function, self.file) for loop in self.loops)]
        return [Place(*one, line) for one, line in zip(functions, lines, strict=True)]

    def __str__(self) -> str:
        if self.line:
            return f"{Path(self.file).name}:{self.line}"
        # Parameters of a C++ function would fill lines.
        name, parenthesis, _ = self.function.partition("(")
        name = f"{name}()" if parenthesis and name else self.function
        return f"{name} or below" if self.is_outer else name


@dataclass
class _ModulePlaces:
    """What is known of a module: places by offset, and why some of them aren't known better."""

    places: dict[int, tuple[Place, ...]] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


_READ: dict[tuple[str, str], _ModulePlaces] = defaultdict(_ModulePlaces)
"""What this process has read, by module and build id: a report resolves the same places several times."""


class Resolver:
    """Resolves frames of recorded call paths. Reads each module once a process."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        """What couldn't be resolved, and why."""
        self._places: dict[tuple[str, str, int], tuple[Place, ...]] = {}

    def add(self, frames: Iterable[FrameLike]) -> None:
        """Resolve frames; all of a recording at once, since a module is read for all of its addresses together."""
        wanted: dict[tuple[str, str], set[int]] = defaultdict(set)
        for frame in frames:
            ours = frame.module.rpartition("/")[2].startswith(OURS)
            if frame.module and not ours and not frame.module.startswith((PYTHON, REGION)):
                wanted[frame.module, frame.build_id].add(frame.offset)
        missing: list[_Lookup] = []
        for (module, identity), offsets in wanted.items():
            read = _READ[module, identity]
            if unknown := sorted(offsets - read.asked):
                read.asked.update(unknown)
                missing.append(_Lookup(Path(module), identity, unknown, read))
        _read(missing)
        for key, offsets in wanted.items():
            read = _READ[key]
            self._places |= {(*key, offset): read.places[offset] for offset in offsets & read.places.keys()}
            self.notes += [note for note in read.notes if note not in self.notes]

    def knows(self, frame: FrameLike) -> bool:
        """Whether the function of a frame is known."""
        return frame.module.startswith((PYTHON, REGION)) or (frame.module, frame.build_id, frame.offset) in self._places

    def places(self, frame: FrameLike) -> tuple[Place, ...]:
        """Return where a frame was, an inlined function before the one that it is inlined in."""
        if frame.module.startswith(PYTHON):
            function, _, file = frame.module.removeprefix(PYTHON).partition(":")
            return (Place(function, file, frame.offset),)
        if frame.module.startswith(REGION):
            return (Place(f"[{frame.module.removeprefix(REGION)}]"),)
        unknown = Place(f"{Path(frame.module).name}+{frame.offset:#x}" if frame.module else f"{frame.offset:#x}")
        return self._places.get((frame.module, frame.build_id, frame.offset), (unknown,))


@dataclass
class _Lookup:
    """Addresses of a module that are to be looked up, and what becomes known."""

    module: Path
    build_id: str
    offsets: list[int]
    """Return addresses: behind their call, maybe on the next line."""
    read: _ModulePlaces

    @property
    def has_loops(self) -> bool:
        """Whether its loops are worth telling."""
        name = self.module.name
        return not (SYSTEM.match(name) or name.startswith(MPI_MODULES) or INTERPRETER.match(name))


def _read(wanted: Sequence[_Lookup]) -> None:
    """Look addresses up: by symbol tables, then, where that goes well, by the structure of their functions."""
    names = Names()
    there = []
    for one in wanted:
        try:
            with one.module.open("rb") as file:
                elf = ELFFile(file)
                if one.build_id and build_id(elf) != one.build_id:
                    one.read.notes.append(f"{one.module} was built anew since: its calls are shown as addresses")
                    continue
                table = SymbolTable(elf)
        except (OSError, ELFError) as error:
            one.read.notes.append(f"{one.module}: {error}: its calls are shown as addresses")
            continue
        found = {offset: symbol.name for offset in one.offsets if (symbol := table.at(offset - 1))}
        names.add(found.values())
        one.read.places |= {offset: (Place(names.of(name)),) for offset, name in found.items()}
        there.append(one)
    while there:
        there = there[_asked(there) :]


def _asked(wanted: Sequence[_Lookup]) -> int:
    """Ask for the structure of modules; return how many have been answered, or given up."""
    worker = _Worker(wanted)
    told = 0
    try:
        for answer in worker.answers():
            if "begins" in answer:
                told = answer["begins"]
                worker.begins(told)
            elif "note" in answer:
                wanted[told].read.notes.append(answer["note"])
            else:
                places = tuple(_place(*one) for one in answer["around"])
                wanted[told].read.places[answer["at"] + 1] = places
                worker.answered += 1
    except TimeoutError:
        why = f"weren't all read within {READING_S:.0f} s"
    else:
        if told >= len(wanted):
            return len(wanted)
        why = f"couldn't be read ({worker.reason})"
    one = wanted[told]
    one.read.notes.append(
        f"lines, inlined calls and loops of {one.module} {why}: {worker.answered:,} of {len(one.offsets):,} places are "
        "known, others are shown by their functions"
    )
    return told + 1


def _place(function: str, file: str, line: int, loops: Iterable[tuple[str, str, int]]) -> Place:
    return Place(function, file, line, loops=tuple(Place(*one) for one in loops))


class _Worker:
    """The process that reads modules. Tells on standard error what it reads, once that takes long."""

    def __init__(self, wanted: Sequence[_Lookup]) -> None:
        self._wanted = wanted
        self._begun = self._module_begun = time.monotonic()
        self._module, self._is_told = 0, False
        self.answered = 0
        """Answers for the module that is being read."""
        self.reason = ""
        """Why it has ended before all was answered."""

    def begins(self, module: int) -> None:
        """Learn that another module is being read."""
        # What is told of the first one may come before it begins.
        self._is_told = self._is_told and module == self._module
        self._module, self.answered = module, 0
        self._module_begun = time.monotonic()

    def answers(self) -> Iterator[dict[str, Any]]:
        """Give answers as they come. Raises TimeoutError where a module takes too long."""
        requests = "".join(
            json.dumps({
                "path": str(one.module), "addresses": [offset - 1 for offset in one.offsets], "loops": one.has_loops,
            }) + "\n"
            for one in self._wanted
        )  # fmt: skip
        environment = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        with subprocess.Popen(
            [sys.executable, "-m", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, start_new_session=True,
        ) as running:  # fmt: skip
            try:
                assert running.stdin is not None and running.stdout is not None
                with suppress(BrokenPipeError):  # then the end of its answers says so
                    running.stdin.write(requests.encode())
                    running.stdin.close()
                yield from self._lines(running.stdout.fileno())
            finally:
                # With what it has started.
                with suppress(OSError):
                    os.killpg(running.pid, signal.SIGKILL)
        ended = running.returncode
        self.reason = signal.Signals(-ended).name if ended < 0 else f"exit status {ended}"

    def _lines(self, pipe: int) -> Iterator[dict[str, Any]]:
        rest = b""
        while True:
            end = self._module_begun + READING_S
            until = end if self._is_told else min(end, self._begun + QUIET_S)
            if not select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
                if time.monotonic() >= end:
                    raise TimeoutError
                self._tell()
                continue
            part = os.read(pipe, 1 << 20)
            *lines, rest = (rest + part).split(b"\n")
            yield from map(json.loads, lines)
            if not part:
                return

    def _tell(self) -> None:
        self._is_told = True
        if self._module < len(self._wanted):
            count = len(self._wanted)
            which = f", module {self._module + 1} of {count}" if count > 1 else ""
            name = self._wanted[self._module].module.name
            print(
                f"palmette: reading lines, names and loops of {name}{which}, for {READING_S:.0f} s at most",
                file=sys.stderr, flush=True,
            )  # fmt: skip


def cython_name(function: str) -> str:
    """Return `Comm.Allreduce` for Cython's `__pyx_pw_6mpi4py_3MPI_4Comm_143Allreduce`; others as they are."""
    found = re.match(r"__pyx_p[wf]_", function)
    if not found:
        return function
    rest, names = function[found.end() :], []
    while part := re.match(r"(\d+)", rest):
        length, behind = int(part[1]), rest[part.end() :]
        if length < len(behind) and behind[length] == "_":
            names.append(behind[:length])
            rest = behind[length + 1 :]
            continue
        names.append(behind)  # a counter and the name
        break
    else:
        names.append(rest)
    return ".".join(names[-2:]) if len(names) > 2 else names[-1] if names and names[-1] else function
