"""The dynamic section of an ELF file: needed libraries and search paths."""

# pyelftools is imported lazily: a program that was examined before is started without it.
from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from palmette.mpi.launch.kept import keep, recall, signature

if TYPE_CHECKING:
    from elftools.elf.sections import SymbolTableSection

MAGIC = b"\x7fELF"
_HEADER_BYTES = 52
"""Size of the header of a 32-bit file; the header of a 64-bit one is longer."""


class Binary(NamedTuple):
    """The dynamic part of an ELF file.

    `machine` is word size in bits, byte order and architecture: a library serves a program only where they are equal.
    `rpath` counts only where `runpath` is empty. `loader` is the dynamic loader: None in a library or static program.
    """

    path: Path
    machine: tuple[int, bool, str]
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    loader: str | None

    @property
    def is_static(self) -> bool:
        """Whether the program starts without a dynamic loader: nothing can be preloaded into it."""
        return self.loader is None


def is_program(head: bytes) -> bool:
    """Return whether a file that begins with `head`, 64 bytes or more, is an ELF program or library, by its header."""
    if len(head) < _HEADER_BYTES or not head.startswith(MAGIC) or head[4] not in (1, 2) or head[5] not in (1, 2):
        return False
    (kind,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 16)
    return kind in (2, 3)  # ET_EXEC, ET_DYN


def _damaged() -> tuple[type[Exception], ...]:
    """Return what a damaged file can make the reader raise: its own errors and others."""
    from elftools.common.exceptions import ELFError

    return ELFError, KeyError, AttributeError, ValueError, struct.error


@cache
def read_binary(path: Path) -> Binary | None:
    """Return what `path` says, or None when it is no ELF file or a damaged one.

    Raises OSError when the file can't be read.
    """
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            return None
        from elftools.elf.dynamic import DynamicSegment
        from elftools.elf.elffile import ELFFile
        from elftools.elf.segments import InterpSegment

        try:
            elf = ELFFile(file)
            loader = None
            found: dict[str, list[str]] = {"needed": [], "rpath": [], "runpath": []}
            for segment in elf.iter_segments():
                if isinstance(segment, InterpSegment):
                    loader = segment.get_interp_name()
                elif isinstance(segment, DynamicSegment):
                    for tag in segment.iter_tags():
                        kind = str(tag.entry.d_tag).removeprefix("DT_").lower()
                        if kind in found:
                            found[kind].append(str(getattr(tag, kind)))
            machine = (elf.elfclass, elf.little_endian, str(elf["e_machine"]))
        except _damaged():
            return None
    return Binary(path, machine, tuple(found["needed"]), _paths(found["rpath"]), _paths(found["runpath"]), loader)


def _paths(entries: list[str]) -> tuple[str, ...]:
    return tuple(path for entry in entries for path in entry.split(":") if path)


def defines(path: Path, symbol: str) -> bool:
    """Return whether the program or library `path` itself holds a function or variable `symbol`.

    False for what is no ELF file, and for a stripped program that doesn't export it. Raises OSError. The answer is kept
    on disk for as long as the file doesn't change.
    """
    key = [str(path.absolute()), signature(path), symbol]
    known = recall("defines", key)
    if isinstance(known, bool) and key[1] is not None:
        return known
    found = _defines(path, symbol)
    keep("defines", key, found)
    return found


def _defines(path: Path, symbol: str) -> bool:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    with path.open("rb") as file:
        try:
            elf = ELFFile(file)
            for section in elf.iter_sections():
                if isinstance(section, SymbolTableSection) and _holds(section, symbol):
                    return True
        except _damaged():
            pass
    return False


def _holds(table: SymbolTableSection, name: str) -> bool:
    strings: bytes = table.stringtable.data()
    # Most programs don't know the name at all; walking through all symbols in Python would take seconds. A name may be
    # the end of another one (PMPI_Init), which linkers store once.
    if name.encode() + b"\0" not in strings:
        return False
    return any(_is_definition(entry) for entry in _named(table, name))


def _named(table: SymbolTableSection, name: str) -> Iterator[object]:
    yield from table.get_symbol_by_name(name) or ()


def _is_definition(symbol: object) -> bool:
    return bool(symbol["st_shndx"] != "SHN_UNDEF")  # type: ignore[index]
