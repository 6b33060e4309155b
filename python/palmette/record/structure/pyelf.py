"""Debug information by pyelftools, for machines without libdw: the same answers, some 50 times slower.

It doesn't read split units (.dwo) and supplementary files (dwz), which a note tells.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elftools.elf.elffile import ELFFile

from palmette.record.structure.scopes import NOWHERE, Intervals, Line, Scope

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.die import DIE

BLOCKS = ("DW_TAG_lexical_block", "DW_TAG_try_block", "DW_TAG_catch_block", "DW_TAG_with_stmt")
OUTER = (
    "DW_TAG_namespace", "DW_TAG_class_type", "DW_TAG_structure_type", "DW_TAG_module", "DW_TAG_subprogram", *BLOCKS,
)  # fmt: skip
"""Entries in which functions may stand."""
ORIGINS = ("DW_AT_abstract_origin", "DW_AT_specification")


class _Unit:
    """A unit of compilation in which an address lies."""

    def __init__(self, cu: CompileUnit) -> None:
        self.cu = cu
        self.functions: list[DIE] = []
        intervals = []
        left = [cu.get_top_DIE()]
        while left:
            for die in left.pop().iter_children():
                if die.tag == "DW_TAG_subprogram":
                    intervals += [(begin, end, len(self.functions)) for begin, end in _ranges(die)]
                    self.functions.append(die)
                if die.tag in OUTER and die.has_children:
                    left.append(die)
        self.intervals = Intervals(intervals)
        self.scopes: dict[int, Scope] = {}
        self.files: list[str] = []
        self.rows: list[tuple[int, int, int]] = []
        """Address, file and line, by address; line 0 where nothing is told from there on."""
        self._read_lines()

    def _read_lines(self) -> None:
        program = self.cu.dwarfinfo.line_program_for_CU(self.cu)
        if program is None:
            return
        head, top = program.header, self.cu.get_top_DIE()
        base = _string(top, "DW_AT_comp_dir")
        folders = [os.fsdecode(one) for one in head["include_directory"]]
        if head["version"] < 5:
            folders.insert(0, base)
            self.files.append("")
        for one in head["file_entry"]:
            folder = folders[one.dir_index] if one.dir_index < len(folders) else ""
            self.files.append(str(Path(base, folder, os.fsdecode(one.name))))
        for entry in program.get_entries():
            if entry.state is not None:
                line = 0 if entry.state.end_sequence else entry.state.line
                self.rows.append((entry.state.address, entry.state.file, line))
        # Stable: of several lines of an address the last one counts, and the end of a sequence before the next one.
        self.rows.sort(key=lambda row: row[0])

    def line(self, address: int) -> Line:
        at = bisect_right(self.rows, address, key=lambda row: row[0]) - 1
        if at < 0 or not self.rows[at][2]:
            return NOWHERE
        return Line(self.file(self.rows[at][1]), self.rows[at][2])

    def file(self, number: int) -> str:
        return self.files[number] if 0 <= number < len(self.files) else ""

    def scope(self, number: int) -> Scope:
        if number not in self.scopes:
            die = self.functions[number]
            self.scopes[number] = Scope(_ranges(die), _name(die), inlined=self._inlined(die))
        return self.scopes[number]

    def _inlined(self, outer: DIE) -> list[Scope]:
        found = []
        for die in outer.iter_children() if outer.has_children else ():
            if die.tag in BLOCKS:
                found += self._inlined(die)
            elif die.tag == "DW_TAG_inlined_subroutine" and (ranges := _ranges(die)):
                file, line = (_number(die, name) for name in ("DW_AT_call_file", "DW_AT_call_line"))
                called = Line(self.file(file), line) if line else NOWHERE
                found.append(Scope(ranges, _name(die), called, self._inlined(die)))
        return found


class Pyelf:
    """The debug information of a file. Raises OSError, ValueError where it has none that can be read.

    Cost: O(units) once, O(entries and lines of a unit) for the first address in it.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        elf = ELFFile(self._file)
        if not elf.has_dwarf_info(strict=True):
            self._file.close()
            raise ValueError("no debug information")
        dwarf = elf.get_dwarf_info(follow_links=False)
        self.notes = ["libdw isn't here (elfutils): debug information is read slowly"]
        if elf.get_section_by_name(".gnu_debugaltlink"):
            self.notes.append("what dwz has moved into another file isn't told without libdw")
        self._cus: list[CompileUnit] = []
        self._units: dict[int, _Unit] = {}
        intervals = []
        for cu in dwarf.iter_CUs():
            top = cu.get_top_DIE()
            if {"DW_AT_dwo_name", "DW_AT_GNU_dwo_name"} & top.attributes.keys() and len(self.notes) < 3:
                self.notes.append("functions of split units (.dwo) aren't told without libdw")
            intervals += [(begin, end, len(self._cus)) for begin, end in _ranges(top)]
            self._cus.append(cu)
        self._intervals = Intervals(intervals)

    def function(self, address: int) -> Scope | None:
        """Return the innermost function with an address."""
        unit = self._unit(address)
        number = unit.intervals.at(address) if unit else None
        return unit.scope(number) if unit and number is not None else None

    def line(self, address: int) -> Line:
        """Return the line of an address."""
        unit = self._unit(address)
        return unit.line(address) if unit else NOWHERE

    def close(self) -> None:
        """Close its file."""
        self._file.close()

    def _unit(self, address: int) -> _Unit | None:
        number = self._intervals.at(address)
        if number is None:
            return None
        if number not in self._units:
            self._units[number] = _Unit(self._cus[number])
        return self._units[number]


def _ranges(die: DIE) -> list[tuple[int, int]]:
    own = die.attributes
    if "DW_AT_ranges" in own:
        lists = die.dwarfinfo.range_lists()
        unit: Any = die.cu
        return list(_listed(lists.get_range_list_at_offset(own["DW_AT_ranges"].value, unit), die)) if lists else []
    if "DW_AT_low_pc" not in own or "DW_AT_high_pc" not in own:
        return []
    begin, end = own["DW_AT_low_pc"].value, own["DW_AT_high_pc"].value
    # A length from DWARF 4 on, but where its form is that of an address.
    if not own["DW_AT_high_pc"].form.startswith("DW_FORM_addr"):
        end += begin
    return [(begin, end)] if 0 < begin < end else []


def _listed(entries: Any, die: DIE) -> Iterator[tuple[int, int]]:
    top = die.cu.get_top_DIE().attributes
    base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
    for entry in entries:
        if hasattr(entry, "base_address"):
            base = entry.base_address
            continue
        offset = 0 if getattr(entry, "is_absolute", False) else base
        begin, end = entry.begin_offset + offset, entry.end_offset + offset
        if 0 < begin < end:
            yield begin, end


def _name(die: DIE) -> str:
    linked = _string(die, "DW_AT_linkage_name") or _string(die, "DW_AT_MIPS_linkage_name")
    plain = _string(die, "DW_AT_name")
    return linked if linked.startswith(("_Z", "_R", "__", "_Q")) or not plain else plain


def _string(die: DIE, name: str) -> str:
    for _ in range(8):  # an inlined function, its definition, its declaration
        if name in die.attributes:
            value = die.attributes[name].value
            return os.fsdecode(value) if isinstance(value, bytes) else ""
        origin = next((one for one in ORIGINS if one in die.attributes), None)
        if origin is None or die.attributes[origin].form in ("DW_FORM_GNU_ref_alt", "DW_FORM_ref_sup4"):
            return ""
        die = die.get_DIE_from_attribute(origin)
    return ""


def _number(die: DIE, name: str) -> int:
    value = die.attributes[name].value if name in die.attributes else 0
    return value if isinstance(value, int) else 0
