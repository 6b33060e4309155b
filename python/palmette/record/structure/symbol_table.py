"""The symbols of a module: which function an address lies in, by name, where there is no debug information."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection


class Symbol(NamedTuple):
    """A function."""

    name: str
    begin: int
    end: int
    """Address behind the last byte; `begin` where the length isn't known."""


class SymbolTable:
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

    def at(self, address: int) -> Symbol | None:
        """Return the function that an address lies in, by its length; at its first address, whatever its length."""
        index = int(np.searchsorted(self._starts, np.uint64(address), side="right")) - 1
        if index < 0:
            return None
        begin, size = int(self._starts[index]), int(self._sizes[index])
        if address >= begin + max(size, 1):
            return None
        table, at = self._names[index].tolist()
        text = self._texts[table]
        end = text.find(b"\0", at)
        name = text[at : end if end >= 0 else len(text)].decode("utf-8", "replace")
        return Symbol(name, begin, begin + size) if name else None


def build_id(elf: ELFFile) -> str:
    """Return the build id in hexadecimal digits; empty where there is none."""
    for section in elf.iter_sections():
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return ""
