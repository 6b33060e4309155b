"""Call paths in words: function, file and line of return addresses, inlined calls included.

Binutils' addr2line reads the debug information, also where it lies in a separate file; without it, and for modules that
have none, the symbol table names the function. A module that was built anew since isn't read: its addresses would name
other lines.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

ADDR2LINE_S = 60.0
OURS = "libpalmette_"
"""Modules whose frames nobody asks for."""


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


class Resolver:
    """Resolves frames of recorded call paths. Reads each module once."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        """Modules that couldn't be read, and why."""
        self._places: dict[tuple[str, int], tuple[Place, ...]] = {}

    def add(self, frames: Iterable[Framed]) -> None:
        """Resolve frames; all of a recording at once, since a module is read for all of its addresses together."""
        wanted: dict[tuple[str, str], set[int]] = defaultdict(set)
        for frame in frames:
            ours = frame.module.rpartition("/")[2].startswith(OURS)
            if frame.module and not ours and (frame.module, frame.offset) not in self._places:
                wanted[frame.module, frame.build_id].add(frame.offset)
        for (module, build_id), offsets in wanted.items():
            found = self._read(Path(module), build_id, sorted(offsets))
            self._places |= {(module, offset): places for offset, places in found.items()}

    def knows(self, frame: Framed) -> bool:
        """Whether the function of a frame is known."""
        return (frame.module, frame.offset) in self._places

    def places(self, frame: Framed) -> tuple[Place, ...]:
        """Return where a frame was, an inlined function before the one that it is inlined in."""
        unknown = Place(f"{Path(frame.module).name}+{frame.offset:#x}" if frame.module else f"{frame.offset:#x}")
        return self._places.get((frame.module, frame.offset), (unknown,))

    def _read(self, module: Path, build_id: str, offsets: list[int]) -> dict[int, tuple[Place, ...]]:
        try:
            with module.open("rb") as file:
                elf = ELFFile(file)
                now = _build_id(elf)
                if build_id and now != build_id:
                    self.notes.append(f"{module} was built anew since: its calls are shown as addresses")
                    return {}
                names = _Functions(elf)
        except (OSError, ELFError) as error:
            self.notes.append(f"{module}: {error}: its calls are shown as addresses")
            return {}
        # A return address is behind its call, maybe on the next line.
        lines = _addr2line(module, [offset - 1 for offset in offsets])
        found = {}
        for offset in offsets:
            places = lines.get(offset - 1, ())
            # Without debug information addr2line names the symbol before the address, however far that is.
            if places and places[0].function != "??" and any(place.file for place in places):
                found[offset] = places
            elif name := names.at(offset - 1):
                found[offset] = (Place(name),)
        return _demangled(found)


def _demangled(found: dict[int, tuple[Place, ...]]) -> dict[int, tuple[Place, ...]]:
    """Return C++ names as they stand in the source, where Binutils' c++filt is there."""
    mangled = sorted({place.function for places in found.values() for place in places if place.function[:2] == "_Z"})
    program = shutil.which("c++filt")
    if not mangled or program is None:
        return found
    try:
        done = subprocess.run(
            [program], input="\n".join(mangled), capture_output=True, text=True, errors="replace",
            timeout=ADDR2LINE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return found
    names = dict(zip(mangled, done.stdout.splitlines(), strict=False))
    return {
        offset: tuple(replace(place, function=names.get(place.function, place.function)) for place in places)
        for offset, places in found.items()
    }


class _Functions:
    """The functions of a module's symbol tables, by address."""

    def __init__(self, elf: ELFFile) -> None:
        functions = {}
        for section in elf.iter_sections():
            if not isinstance(section, SymbolTableSection):
                continue
            for symbol in section.iter_symbols():
                if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"] and symbol.name:
                    functions[symbol["st_value"]] = (symbol["st_size"], symbol.name)
        self._starts = sorted(functions)
        self._functions = functions

    def at(self, address: int) -> str | None:
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        size, name = self._functions[self._starts[index]]
        return name if address < self._starts[index] + max(size, 1) else None


def _build_id(elf: ELFFile) -> str:
    for section in elf.iter_sections():
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return ""


def _addr2line(module: Path, addresses: list[int]) -> dict[int, tuple[Place, ...]]:
    """Return what addr2line says of addresses; nothing where it isn't there or fails."""
    program = shutil.which("addr2line")
    if program is None or not addresses:
        return {}
    try:
        done = subprocess.run(
            [program, "-a", "-f", "-i", "-C", "-e", str(module)], input="".join(f"{one:#x}\n" for one in addresses),
            capture_output=True, text=True, errors="replace", timeout=ADDR2LINE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: dict[int, list[Place]] = {}
    lines = iter(done.stdout.splitlines())
    current: list[Place] = []
    for line in lines:
        if line.startswith("0x"):
            current = found.setdefault(int(line, 16), [])
            continue
        file, _, number = next(lines, "??:0").partition(" (discriminator")[0].rpartition(":")
        current.append(Place(line, file if file != "??" else "", int(number) if number.isdigit() else 0))
    return {address: tuple(places) for address, places in found.items()}
