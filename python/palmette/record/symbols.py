"""Call paths in words: function, file and line of return addresses, inlined calls included.

Binutils' addr2line reads the debug information, also where it lies in a separate file; without it, and for modules that
have none, the symbol table names the function. A module that was built anew since isn't read: its addresses would name
other lines.
"""

from __future__ import annotations

import shutil
import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

ADDR2LINE_S = 60.0


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


def frames_of(path: str) -> list[Frame]:
    """Return the frames of such a path, the innermost first."""
    found = []
    for text in path.split(";") if path else []:
        module, _, rest = text.rpartition("@")
        build_id, _, offset = rest.partition("+")
        found.append(Frame(module, build_id, int(offset)))
    return found


@dataclass(frozen=True)
class Place:
    """A place in the source of a call; `line` is 0 where only the function is known, `function` may be an address."""

    function: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}" if self.line else self.function


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
            if frame.module and (frame.module, frame.offset) not in self._places:
                wanted[frame.module, frame.build_id].add(frame.offset)
        for (module, build_id), offsets in wanted.items():
            found = self._read(Path(module), build_id, sorted(offsets))
            self._places |= {(module, offset): places for offset, places in found.items()}

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
            if not places or places[0].function == "??":
                name = names.at(offset - 1)
                places = (Place(name),) if name else ()
            if places:
                found[offset] = places
        return found


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
