"""Call paths in words: function, file and line of return addresses, inlined calls included.

Binutils' addr2line reads the debug information, also where it lies in a separate file; without it, and for modules that
have none, the symbol table names the function. A module that was built anew since isn't read: its addresses would name
other lines. What takes longer than two seconds says so on standard error, and what wasn't found out is a note.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

ADDR2LINE_S = 60.0
"""For one module: debug information of gigabytes takes that long. What has been answered by then is kept."""
DEMANGLING_S = 10.0
QUIET_S = 2.0
"""After that long it is said what is being read."""
OURS = "libpalmette_"
"""Modules whose frames nobody asks for."""


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


class Framed(Protocol):
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

    def __str__(self) -> str:
        if self.line:
            return f"{Path(self.file).name}:{self.line}"
        # Parameters of a C++ function would fill lines.
        name, parenthesis, _ = self.function.partition("(")
        name = f"{name}()" if parenthesis and name else self.function
        return f"{name} or below" if self.is_outer else name


@dataclass
class _Read:
    """What is known of a module: places by offset, and why some of them aren't known better."""

    places: dict[int, tuple[Place, ...]] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


_READ: dict[tuple[str, str], _Read] = defaultdict(_Read)
"""By module and build id: of this process, since a report resolves the same places several times."""


class Resolver:
    """Resolves frames of recorded call paths. Reads each module once a process."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        """What couldn't be resolved, and why."""
        self._places: dict[tuple[str, str, int], tuple[Place, ...]] = {}

    def add(self, frames: Iterable[Framed]) -> None:
        """Resolve frames; all of a recording at once, since a module is read for all of its addresses together."""
        wanted: dict[tuple[str, str], set[int]] = defaultdict(set)
        for frame in frames:
            ours = frame.module.rpartition("/")[2].startswith(OURS)
            if frame.module and not ours and not frame.module.startswith((PYTHON, REGION)):
                wanted[frame.module, frame.build_id].add(frame.offset)
        asked = _Asked(len(wanted))
        for (module, build_id), offsets in wanted.items():
            read = _READ[module, build_id]
            if missing := sorted(offsets - read.asked):
                asked.begins(Path(module))
                read.asked.update(missing)
                read.places |= _read(Path(module), build_id, missing, asked, read.notes)
            self._places |= {(module, build_id, offset): read.places[offset] for offset in offsets & read.places.keys()}
            self.notes += [note for note in read.notes if note not in self.notes]

    def knows(self, frame: Framed) -> bool:
        """Whether the function of a frame is known."""
        return frame.module.startswith((PYTHON, REGION)) or (frame.module, frame.build_id, frame.offset) in self._places

    def places(self, frame: Framed) -> tuple[Place, ...]:
        """Return where a frame was, an inlined function before the one that it is inlined in."""
        if frame.module.startswith(PYTHON):
            function, _, file = frame.module.removeprefix(PYTHON).partition(":")
            return (Place(function, file, frame.offset),)
        if frame.module.startswith(REGION):
            return (Place(f"[{frame.module.removeprefix(REGION)}]"),)
        unknown = Place(f"{Path(frame.module).name}+{frame.offset:#x}" if frame.module else f"{frame.offset:#x}")
        return self._places.get((frame.module, frame.build_id, frame.offset), (unknown,))


class _Asked:
    """Tells on standard error what is being read, once that takes long."""

    def __init__(self, modules: int) -> None:
        self._modules, self._number = modules, 0
        self._begun = time.monotonic()
        self._told = ""
        self.module = Path()

    def begins(self, module: Path) -> None:
        self.module = module
        self._number += 1
        self.goes_on()

    def goes_on(self) -> None:
        """Say what is being read if that has taken long, once for each module."""
        if self.until_told > 0 or self._told == str(self.module):
            return
        self._told = str(self.module)
        which = f", module {self._number} of {self._modules}" if self._modules > 1 else ""
        print(
            f"palmette: reading lines and names of {self.module.name}{which}, for {ADDR2LINE_S:.0f} s at most",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    @property
    def until_told(self) -> float:
        """Seconds until something is to be said; 0 or less: now."""
        return self._begun + QUIET_S - time.monotonic()


def _read(
    module: Path, build_id: str, offsets: list[int], asked: _Asked, notes: list[str]
) -> dict[int, tuple[Place, ...]]:
    try:
        with module.open("rb") as file:
            elf = ELFFile(file)
            now = _build_id(elf)
            if build_id and now != build_id:
                notes.append(f"{module} was built anew since: its calls are shown as addresses")
                return {}
            names = _Functions(elf)
    except (OSError, ELFError) as error:
        notes.append(f"{module}: {error}: its calls are shown as addresses")
        return {}
    asked.goes_on()
    # A return address is behind its call, maybe on the next line.
    lines = _addr2line(module, [offset - 1 for offset in offsets], asked, notes)
    found = {}
    for offset in offsets:
        places = lines.get(offset - 1, ())
        # Without debug information addr2line names the symbol before the address, however far that is.
        if places and places[0].function != "??" and any(place.file for place in places):
            found[offset] = places
        elif name := names.at(offset - 1):
            found[offset] = (Place(name),)
    return _demangled(found, asked, notes)


def _answer(command: list[str], text: str, seconds: float, asked: _Asked) -> tuple[str, bool]:
    """Return what a program says of a text within some seconds, and whether that is all. Raises OSError."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
        start_new_session=True,
    ) as running:  # fmt: skip
        end = time.monotonic() + seconds
        said = ""
        with suppress(subprocess.TimeoutExpired):
            said = running.communicate(text, timeout=max(0.0, min(seconds, asked.until_told)))[0]
            return said, True
        asked.goes_on()
        with suppress(subprocess.TimeoutExpired):
            said = running.communicate(timeout=max(0.0, end - time.monotonic()))[0]
            return said, True
        # With what it has started, which may hold the pipe.
        with suppress(OSError):
            os.killpg(running.pid, signal.SIGKILL)
        said = running.communicate()[0]
        return said, False


def _demangled(found: dict[int, tuple[Place, ...]], asked: _Asked, notes: list[str]) -> dict[int, tuple[Place, ...]]:
    """Return C++ names as they stand in the source, where Binutils' c++filt is there."""
    mangled = sorted({place.function for places in found.values() for place in places if place.function[:2] == "_Z"})
    program = shutil.which("c++filt")
    if not mangled or program is None:
        return found
    try:
        said, is_all = _answer([program], "\n".join(mangled), DEMANGLING_S, asked)
    except OSError as error:
        said, is_all = "", False
        notes.append(f"{program}: {error.strerror}: C++ names of {asked.module.name} are shown as the linker has them")
    else:
        if not is_all:
            notes.append(
                f"{program} gave no answer within {DEMANGLING_S:.0f} s: C++ names of {asked.module.name} are shown as "
                "the linker has them"
            )
    names = dict(zip(mangled, said.splitlines() if is_all else (), strict=False))
    return {
        offset: tuple(replace(place, function=names.get(place.function, place.function)) for place in places)
        for offset, places in found.items()
    }


class _Functions:
    """The functions of a module's symbol tables, by address. Cost: O(symbols), a second for 10 million."""

    def __init__(self, elf: ELFFile) -> None:
        order = "<" if elf.little_endian else ">"
        fields = [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"), ("size", "u8")]
        if elf.elfclass == 32:
            fields = [fields[0], ("value", "u4"), ("size", "u4"), *fields[1:4]]
        symbol = np.dtype([(name, order + kind) for name, kind in fields])
        starts, sizes, names = [], [], []
        self._texts: list[bytes] = []
        for section in elf.iter_sections():
            if not isinstance(section, SymbolTableSection):
                continue
            data = section.data()
            symbols = np.frombuffer(data, symbol, count=len(data) // symbol.itemsize)
            function = 2  # STT_FUNC
            symbols = symbols[(symbols["info"] & 0xF == function) & (symbols["value"] != 0) & (symbols["name"] != 0)]
            starts.append(symbols["value"].astype(np.uint64))
            sizes.append(symbols["size"].astype(np.uint64))
            names.append(np.stack([np.full(len(symbols), len(self._texts)), symbols["name"].astype(np.int64)], axis=1))
            self._texts.append(section.stringtable.data())
        self._starts = np.concatenate(starts) if starts else np.empty(0, np.uint64)
        order_of = np.argsort(self._starts, kind="stable")
        self._starts = self._starts[order_of]
        self._sizes = np.concatenate(sizes)[order_of] if sizes else self._starts
        self._names = np.concatenate(names)[order_of] if names else np.empty((0, 2), np.int64)

    def at(self, address: int) -> str | None:
        index = int(np.searchsorted(self._starts, np.uint64(address), side="right")) - 1
        if index < 0 or address >= int(self._starts[index]) + max(int(self._sizes[index]), 1):
            return None
        table, begin = self._names[index].tolist()
        text = self._texts[table]
        end = text.find(b"\0", begin)
        return text[begin : end if end >= 0 else len(text)].decode("utf-8", "replace") or None


def _build_id(elf: ELFFile) -> str:
    for section in elf.iter_sections():
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return ""


_SILENT: list[str] = []
"""An addr2line that has answered nothing at all: it isn't asked again."""


def _addr2line(module: Path, addresses: list[int], asked: _Asked, notes: list[str]) -> dict[int, tuple[Place, ...]]:
    """Return what addr2line says of addresses; nothing where it isn't there or fails, which `notes` tell."""
    program = shutil.which("addr2line")
    if not addresses:
        return {}
    if program is None or program in _SILENT:
        why = "isn't here (a part of binutils)" if program is None else "doesn't answer"
        notes.append(f"addr2line {why}: calls are shown by their functions, without lines")
        return {}
    try:
        said, is_all = _answer(
            [program, "-a", "-f", "-i", "-C", "-e", str(module)], "".join(f"{one:#x}\n" for one in addresses),
            ADDR2LINE_S, asked,
        )  # fmt: skip
    except OSError as error:
        notes.append(f"{program}: {error.strerror}: calls are shown by their functions, without lines")
        return {}
    found: dict[int, list[Place]] = {}
    lines = iter(said.splitlines())
    current: list[Place] = []
    for line in lines:
        if line.startswith("0x"):
            current = found.setdefault(int(line, 16), [])
            continue
        file, _, number = next(lines, "??:0").partition(" (discriminator")[0].rpartition(":")
        current.append(Place(line, file if file != "??" else "", int(number) if number.isdigit() else 0))
    if not is_all:
        if not found:
            _SILENT.append(program)
        missing = sum(address not in found for address in addresses)
        notes.append(
            f"{program} didn't tell {missing:,} of {len(addresses):,} places in {module} within {ADDR2LINE_S:.0f} s: "
            "they are shown by their functions, without lines"
        )
    elif not found:
        notes.append(f"{program} tells nothing of {module}: its calls are shown by their functions, without lines")
    return {address: tuple(places) for address, places in found.items()}


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
