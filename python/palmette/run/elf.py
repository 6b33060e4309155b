"""What an executable or a shared library says of itself: what it needs and where it looks for that."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from elftools.elf.segments import InterpSegment

MAGIC = b"\x7fELF"

# What a damaged file can make the reader raise besides its own errors.
_DAMAGED = (ELFError, KeyError, AttributeError, ValueError, struct.error)


@dataclass(frozen=True)
class Binary:
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


@cache
def read_binary(path: Path) -> Binary | None:
    """Return what `path` says, or None when it is no ELF file or a damaged one.

    Raises OSError when the file can't be read.
    """
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            return None
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
        except _DAMAGED:
            return None
    return Binary(path, machine, tuple(found["needed"]), _paths(found["rpath"]), _paths(found["runpath"]), loader)


def _paths(entries: list[str]) -> tuple[str, ...]:
    return tuple(path for entry in entries for path in entry.split(":") if path)


def defines(path: Path, symbol: str) -> bool:
    """Return whether the program or library `path` itself holds a function or variable `symbol`.

    False for what is no ELF file, and for a stripped program that doesn't export it. Raises OSError.
    """
    with path.open("rb") as file:
        try:
            elf = ELFFile(file)
            for section in elf.iter_sections():
                if isinstance(section, SymbolTableSection) and _holds(section, symbol):
                    return True
        except _DAMAGED:
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
