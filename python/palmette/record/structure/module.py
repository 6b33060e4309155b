"""The structure of a module where addresses lie: functions, inlined calls, lines, loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile

from palmette.record.structure.branches import Code, Disassembler
from palmette.record.structure.debug_files import debug_file
from palmette.record.structure.libdw import Libdw
from palmette.record.structure.loops import Loop, Loops
from palmette.record.structure.names import Names
from palmette.record.structure.pyelf import Pyelf
from palmette.record.structure.scopes import DebugInformation, Line, Scope
from palmette.record.structure.symbol_table import SymbolTable

BATCH_BYTES = 1 << 20
"""Bytes of code that are disassembled at a time: their text is some 20 times as long."""
MANGLED = ("_Z", "_R")
"""Begin linkers' names of C++ and Rust."""
LONGEST = 16 << 20
"""Bytes of a function: more are no function."""


class CodePosition(NamedTuple):
    """What is around an address: a function, or one that is inlined, with the loops of it, the outermost first."""

    function: str
    file: str
    line: int
    """Line of the address, or of the call of what is inlined; 0 where it isn't known."""
    loops: tuple[tuple[str, str, int], ...] = ()
    """Name, file and line of each loop."""


class _Function(NamedTuple):
    """A function in which addresses lie."""

    scope: Scope | None
    """None where only the symbol table knows it."""
    ranges: tuple[tuple[int, int], ...]


class Module:
    """A module. Raises OSError, ELFError where it can't be read.

    Cost: that of its debug information, and some 10 us an instruction of the functions in which addresses lie.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self._elf = ELFFile(self._file)
        self.notes: list[str] = []
        """What couldn't be found out, and why."""
        self._names = Names()
        self._symbols: SymbolTable | None = None
        self._debug = self._debug_information()

    def close(self) -> None:
        """Close its files."""
        self._file.close()
        if self._debug is not None:
            self._debug.close()

    def _debug_information(self) -> DebugInformation | None:
        file = debug_file(self._path, self._elf)
        if file is None:
            return None
        try:
            try:
                return Libdw(file)
            except OSError:
                return Pyelf(file)
        except ValueError as error:
            self.notes.append(f"{file}: {error}: calls are shown by their functions, without lines")
            return None

    def places(self, addresses: Sequence[int]) -> Iterator[tuple[int, list[CodePosition]]]:
        """Give for each address, of which something is known, what is around it, the innermost first. Loops aren't
        among it.
        """
        if self._debug is None:
            return
        found: list[tuple[int, Scope | None, Line]] = [
            (one, self._debug.function(one), self._debug.line(one)) for one in addresses
        ]
        self._names.add(scope.name for address, top, _ in found if top for scope in top.chain(address))
        self.notes += self._debug.notes
        for address, top, line in found:
            chain = top.chain(address) if top else []
            if not chain or not (line.file or chain[-1].called.number):
                # Of code in assembler the line alone.
                symbol = self._symbol_table().at(address) if line.file else None
                if symbol:
                    yield address, [CodePosition(self._names.of(symbol.name), *line)]
                continue
            yield address, self._around(chain, line, [])

    def loops(self, addresses: Sequence[int]) -> Iterator[tuple[int, list[CodePosition]]]:
        """Give for each address that lies in a loop what is around it, its loops among it."""
        try:
            disassembler = Disassembler(self._elf["e_machine"], is_little_endian=self._elf.little_endian)
            for batch in self._batches(addresses):
                code = [self._code(function) for function, _ in batch]
                for (function, inside), instructions in zip(batch, disassembler.read(code), strict=True):
                    yield from self._looped(function, inside, instructions)
        except ValueError as error:
            self.notes.append(f"{self._path.name}: {error}")

    def _looped(
        self, function: _Function, inside: Sequence[int], instructions: Any
    ) -> Iterator[tuple[int, list[CodePosition]]]:
        entry = max(function.ranges, key=lambda one: one[1] - one[0])[0]
        loops = Loops(instructions, function.scope, entry, self._debug.line if self._debug else _nowhere)
        for address in inside:
            around = loops.at(address)
            if not around:
                continue
            if function.scope is not None and self._debug is not None:
                line = self._debug.line(address)
                yield address, self._around(function.scope.chain(address), line, around, entry)
            elif symbol := self._symbol_table().at(address):
                told = tuple((_loop_name(one, entry), "", 0) for one in around)
                yield address, [CodePosition(self._names.of(symbol.name), "", 0, told)]

    def _around(self, chain: Sequence[Scope], line: Line, loops: Sequence[Loop], entry: int = 0) -> list[CodePosition]:
        lines = [*(scope.called for scope in chain[1:]), line]
        told: list[list[tuple[str, str, int]]] = [[] for _ in chain]
        least = 0
        for one in loops:
            # A loop is inside of the loops around it.
            least = max(least, min(one.depth, len(chain) - 1))
            name = (_loop_name(one, entry), *one.line)
            if name not in told[least]:
                told[least].append(name)
        return [
            CodePosition(self._name(scope, is_outermost=scope is chain[0]), at.file, at.number, tuple(own))
            for scope, at, own in zip(chain, lines, told, strict=True)
        ][::-1]

    def _name(self, scope: Scope, *, is_outermost: bool) -> str:
        name = scope.name
        # Of local functions of C++ the symbol table alone has the whole name.
        if is_outermost and not name.startswith(MANGLED):
            symbol = self._symbol_table().at(scope.ranges[0][0])
            if symbol and symbol.name.startswith(MANGLED) and name in symbol.name:
                name = symbol.name
        return self._names.of(name) or "(no name)"

    def _batches(self, addresses: Sequence[int]) -> Iterator[list[tuple[_Function, list[int]]]]:
        """Give functions with the addresses in them, as many as are disassembled at a time."""
        functions: dict[int, tuple[_Function, list[int]]] = {}
        for address in addresses:
            top = self._debug.function(address) if self._debug else None
            if top is not None:
                function = _Function(top, tuple(top.ranges))
            else:
                symbol = self._symbol_table().at(address)
                if symbol is None or symbol.begin == symbol.end:
                    continue
                function = _Function(None, ((symbol.begin, symbol.end),))
            functions.setdefault(function.ranges[0][0], (function, []))[1].append(address)
        batch: list[tuple[_Function, list[int]]] = []
        left = BATCH_BYTES
        for function, inside in functions.values():
            length = sum(end - begin for begin, end in function.ranges)
            if length > LONGEST:
                continue
            if batch and length > left:
                yield batch
                batch, left = [], BATCH_BYTES
            batch.append((function, inside))
            left -= length
        if batch:
            yield batch

    def _code(self, function: _Function) -> Code:
        return Code(tuple((begin, self._bytes(begin, end)) for begin, end in function.ranges))

    def _bytes(self, begin: int, end: int) -> bytes:
        for segment in self._elf.iter_segments("PT_LOAD"):
            first = segment["p_vaddr"]
            if first <= begin and end <= first + segment["p_filesz"]:
                self._file.seek(segment["p_offset"] + begin - first)
                return self._file.read(end - begin)
        return b""

    def _symbol_table(self) -> SymbolTable:
        if self._symbols is None:
            self._symbols = SymbolTable(self._elf)
        return self._symbols


def _nowhere(_: int) -> Line:
    return Line("", 0)


def _loop_name(loop: Loop, entry: int) -> str:
    if loop.line.number:
        return f"loop at {Path(loop.line.file).name}:{loop.line.number}"
    return f"loop at +{loop.header - entry:#x}"
