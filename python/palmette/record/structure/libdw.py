"""Debug information by elfutils' libdw (https://sourceware.org/elfutils), loaded where it is installed.

It reads DWARF 2 to 5, compressed sections, split units (.dwo) and supplementary files (dwz). Of the tree of entries
only the functions of units in which an address lies are gone through, and of these only the ones with an address.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_ssize_t, c_ubyte, c_uint, c_ulong, c_void_p
from pathlib import Path
from typing import Any

from palmette.record.structure.scopes import NOWHERE, Intervals, Line, Scope

LIBRARIES = ("libdw.so.1", "libelf.so.1")
# DWARF 5, 7.5.3 and 7.5.4: numbers of tags and attributes.
LEXICAL_BLOCK, TRY_BLOCK, CATCH_BLOCK, WITH_STMT, INLINED = 0x0B, 0x32, 0x25, 0x22, 0x1D
BLOCKS = (LEXICAL_BLOCK, TRY_BLOCK, CATCH_BLOCK, WITH_STMT)
NAME, CALL_FILE, CALL_LINE, LINKAGE_NAME, MIPS_LINKAGE_NAME = 0x03, 0x58, 0x59, 0x6E, 0x2007
COMP_DIR, DWO_NAME, GNU_DWO_NAME = 0x1B, 0x76, 0x2130
SKELETON_UNIT = 0x04
"""Unit type of DW_UT_* whose entries are in another file."""


class _Die(ctypes.Structure):
    """`Dwarf_Die` of libdw.h: an entry of the tree."""

    _fields_ = (("addr", c_void_p), ("cu", c_void_p), ("abbrev", c_void_p), ("padding", ctypes.c_long))


class _Attribute(ctypes.Structure):
    """`Dwarf_Attribute` of libdw.h."""

    _fields_ = (("code", c_uint), ("form", c_uint), ("valp", c_void_p), ("cu", c_void_p))


_Visit = ctypes.CFUNCTYPE(c_int, POINTER(_Die), c_void_p)


def _library() -> Any:
    """Return libdw with the types of what is called in it. Raises OSError where it isn't there."""
    dw, elf = (ctypes.CDLL(name) for name in LIBRARIES)
    elf.elf_version.restype = c_uint
    elf.elf_version(1)  # EV_CURRENT
    die, address = POINTER(_Die), POINTER(c_ulong)
    for name, result, arguments in (
        ("dwarf_begin", c_void_p, (c_int, c_int)),
        ("dwarf_end", c_int, (c_void_p,)),
        ("dwarf_errmsg", c_char_p, (c_int,)),
        ("dwarf_get_units", c_int, (c_void_p, c_void_p, POINTER(c_void_p), c_void_p, POINTER(c_ubyte), die, die)),
        ("dwarf_cu_info", c_int, (c_void_p, c_void_p, POINTER(c_ubyte), die, die, c_void_p, c_void_p, c_void_p)),
        ("dwarf_ranges", c_ssize_t, (die, c_ssize_t, address, address, address)),
        ("dwarf_getfuncs", c_ssize_t, (die, _Visit, c_void_p, c_ssize_t)),
        ("dwarf_child", c_int, (die, die)),
        ("dwarf_siblingof", c_int, (die, die)),
        ("dwarf_tag", c_int, (die,)),
        ("dwarf_attr", c_void_p, (die, c_uint, POINTER(_Attribute))),
        ("dwarf_attr_integrate", c_void_p, (die, c_uint, POINTER(_Attribute))),
        ("dwarf_formstring", c_char_p, (POINTER(_Attribute),)),
        ("dwarf_formudata", c_int, (POINTER(_Attribute), address)),
        ("dwarf_getsrcfiles", c_int, (die, POINTER(c_void_p), POINTER(c_size_t))),
        ("dwarf_filesrc", c_char_p, (c_void_p, c_size_t, c_void_p, c_void_p)),
        ("dwarf_getsrc_die", c_void_p, (die, c_ulong)),
        ("dwarf_lineno", c_int, (c_void_p, POINTER(c_int))),
        ("dwarf_linesrc", c_char_p, (c_void_p, c_void_p, c_void_p)),
    ):
        function = getattr(dw, name)
        function.restype, function.argtypes = result, arguments
    return dw


class _Unit:
    """A unit of compilation in which an address lies."""

    def __init__(self, die: _Die, functions: list[_Die], intervals: Intervals) -> None:
        self.die, self.functions, self.intervals = die, functions, intervals
        self.scopes: dict[int, Scope] = {}
        self.files = c_void_p()
        self.file_count = 0


class Libdw:
    """The debug information of a file. Raises OSError where libdw isn't there, ValueError where it can't read it.

    Cost: O(units) once, O(entries of a unit) for the first address in it, O(entries of a function) for the first in it.
    """

    def __init__(self, path: Path) -> None:
        self._dw = _library()
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # libdw keeps reading it
        self._dwarf = self._dw.dwarf_begin(self._fd, 0)
        if not self._dwarf:
            os.close(self._fd)
            raise ValueError((self._dw.dwarf_errmsg(-1) or b"no debug information").decode("utf-8", "replace"))
        self.notes: list[str] = []
        self._attribute = _Attribute()
        self._numbers = (c_ulong(), c_ulong(), c_ulong())
        self._cus: list[tuple[_Die, int]] = []
        """Entries of units, and of what kind these are."""
        self._units: dict[int, _Unit] = {}
        self._intervals = Intervals(list(self._all_units()))

    def function(self, address: int) -> Scope | None:
        """Return the innermost function with an address."""
        unit = self._unit(address)
        number = unit.intervals.at(address) if unit else None
        if unit is None or number is None:
            return None
        if number not in unit.scopes:
            die = unit.functions[number]
            unit.scopes[number] = Scope(list(self._ranges(die)), self._name(die), inlined=self._inlined(die, unit))
        return unit.scopes[number]

    def line(self, address: int) -> Line:
        """Return the line of an address."""
        unit = self._unit(address)
        if unit is None:
            return NOWHERE
        at = self._dw.dwarf_getsrc_die(byref(unit.die), address)
        number = c_int()
        if not at or self._dw.dwarf_lineno(at, byref(number)) or number.value <= 0:
            return NOWHERE
        return Line(self._file(unit, self._dw.dwarf_linesrc(at, None, None)), number.value)

    def close(self) -> None:
        """Close its file."""
        if self._dwarf:
            self._dw.dwarf_end(self._dwarf)
            self._dwarf = None
            os.close(self._fd)

    # Units.

    def _all_units(self) -> Iterator[tuple[int, int, int]]:
        kind, unit, following, die = c_ubyte(), c_void_p(), c_void_p(), _Die()
        while True:
            die = _Die()
            if self._dw.dwarf_get_units(self._dwarf, unit, byref(following), None, byref(kind), byref(die), None):
                return
            unit = c_void_p(following.value)
            self._cus.append((die, kind.value))
            for begin, end in self._ranges(die):
                yield begin, end, len(self._cus) - 1

    def _unit(self, address: int) -> _Unit | None:
        number = self._intervals.at(address)
        if number is None:
            return None
        if number not in self._units:
            self._units[number] = self._read(*self._cus[number])
        return self._units[number]

    def _read(self, die: _Die, kind: int) -> _Unit:
        whole = die
        if kind == SKELETON_UNIT or self._attribute_of(die, GNU_DWO_NAME):
            split = _Die()
            self._dw.dwarf_cu_info(die.cu, None, None, None, byref(split), None, None, None)
            if split.addr:
                whole = split
            else:
                name = self._string(die, DWO_NAME) or self._string(die, GNU_DWO_NAME)
                self.notes.append(f"{name} isn't found, which has its functions; lines are told without inlined calls")
        functions: list[_Die] = []
        intervals: list[tuple[int, int, int]] = []

        def visit(found: Any, _: Any) -> int:
            one = _Die.from_buffer_copy(found.contents)
            ranges = list(self._ranges(one))
            if ranges:
                intervals.extend((begin, end, len(functions)) for begin, end in ranges)
                functions.append(one)
            return 0  # DWARF_CB_OK

        self._dw.dwarf_getfuncs(byref(whole), _Visit(visit), None, 0)
        return _Unit(whole, functions, Intervals(intervals))

    # Entries.

    def _inlined(self, outer: _Die, unit: _Unit) -> list[Scope]:
        found: list[Scope] = []
        die = _Die()
        if self._dw.dwarf_child(byref(outer), byref(die)):
            return found
        while True:
            tag = self._dw.dwarf_tag(byref(die))
            if tag == INLINED:
                ranges = list(self._ranges(die))
                if ranges:
                    found.append(Scope(ranges, self._name(die), self._called(die, unit), self._inlined(die, unit)))
            elif tag in BLOCKS:
                found += self._inlined(die, unit)
            if self._dw.dwarf_siblingof(byref(die), byref(die)):
                return found

    def _ranges(self, die: _Die) -> Iterator[tuple[int, int]]:
        base, begin, end = self._numbers
        at = 0
        while (at := self._dw.dwarf_ranges(byref(die), at, byref(base), byref(begin), byref(end))) > 0:
            # What the linker has dropped begins at 0.
            if 0 < begin.value < end.value:
                yield begin.value, end.value

    def _name(self, die: _Die) -> str:
        linked = self._string(die, LINKAGE_NAME) or self._string(die, MIPS_LINKAGE_NAME)
        plain = self._string(die, NAME)
        return linked if linked.startswith(("_Z", "_R", "__", "_Q")) or not plain else plain

    def _called(self, die: _Die, unit: _Unit) -> Line:
        line, file = self._number(die, CALL_LINE), self._number(die, CALL_FILE)
        if not unit.files:
            count = c_size_t()
            self._dw.dwarf_getsrcfiles(byref(unit.die), byref(unit.files), byref(count))
            unit.file_count = count.value
        if not line or not file or not unit.files or file >= unit.file_count:
            return NOWHERE
        return Line(self._file(unit, self._dw.dwarf_filesrc(unit.files, file, None, None)), line)

    def _file(self, unit: _Unit, name: bytes | None) -> str:
        # libdw leaves folders of DWARF 5 relative to where the compiler was called.
        text = _text(name)
        base = self._string(unit.die, COMP_DIR) if text and not text.startswith("/") else ""
        return os.path.normpath(f"{base}/{text}") if base else text

    def _attribute_of(self, die: _Die, code: int) -> Any:
        return self._dw.dwarf_attr(byref(die), code, byref(self._attribute))

    def _string(self, die: _Die, code: int) -> str:
        # Of an inlined function it stands at the function itself.
        if not self._dw.dwarf_attr_integrate(byref(die), code, byref(self._attribute)):
            return ""
        return _text(self._dw.dwarf_formstring(byref(self._attribute)))

    def _number(self, die: _Die, code: int) -> int:
        value = self._numbers[0]
        if not self._attribute_of(die, code) or self._dw.dwarf_formudata(byref(self._attribute), byref(value)):
            return 0
        return value.value


def _text(told: bytes | None) -> str:
    return told.decode("utf-8", "replace") if told else ""
