"""Branches of functions, as objdump (binutils) disassembles them.

The code of the functions that are asked for is laid side by side into one file, so that one run of objdump reads these
alone, however large the module is. Branches are relative: their targets lie as far from them there as in the module.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Machine:
    """How objdump is asked for a machine's code, and which of its instructions branch."""

    name: str
    gap: bytes
    """Padding between functions: instructions that do nothing, after which decoding is in step again."""
    kinds: tuple[tuple[str, re.Pattern[str]], ...]


X86_KINDS = (
    ("conditional", re.compile(r"j(?!mp)\w+(,p[nt])?|loop\w*|xbegin")), ("jump", re.compile("jmp[lqw]?")),
    ("leave", re.compile(r"ret\w*|ud[12]\w*|hlt|iret\w*")),
)  # fmt: skip
MACHINES = {
    "EM_X86_64": Machine("i386:x86-64", b"\x90" * 16, X86_KINDS),
    "EM_386": Machine("i386", b"\x90" * 16, X86_KINDS),
    "EM_AARCH64": Machine(
        "aarch64", bytes.fromhex("1f2003d5"),
        (
            ("conditional", re.compile(r"bc?\.\w+|cbn?z|tbn?z")), ("jump", re.compile("b")),
            ("indirect", re.compile(r"br[a-z]*")), ("leave", re.compile(r"ret[a-z]*|udf|brk|eret\w*")),
        ),
    ),
}  # fmt: skip
"""Instruction sets by e_machine of ELF files."""
LINE = re.compile(
    r"^ *([0-9a-f]+):\t(?:(?:bnd|notrack|addr32|data16|rep|repn?z|cs|ds) )*([^\s]+)[ \t]*([^\n]*)$", re.MULTILINE
)
TARGET = re.compile(r"(?:^|[ ,\t])(?:0x)?([0-9a-f]+)(?: *(?://|#|<).*)?$")
"""The last operand where it is a number."""


class Instruction(NamedTuple):
    """An instruction. Addresses are the module's."""

    address: int
    following: int
    """Address of the next instruction."""
    target: int
    """Target address of a conditional branch or a jump; else -1."""
    kind: str
    """conditional, jump, indirect or leave (the function); empty of others, calls among them."""


@dataclass(frozen=True)
class Code:
    """A function: first addresses of its parts, and their bytes."""

    parts: tuple[tuple[int, bytes], ...]


class _FilePart(NamedTuple):
    """A part of a function in the file that objdump reads."""

    begin: int
    end: int
    move: int
    """Offset from the address in the text to the address in the module."""
    function: int


class Disassembler:
    """Disassembles functions of a module. Raises ValueError, with the reason, where that can't be done here."""

    def __init__(self, machine: str, *, is_little_endian: bool) -> None:
        """`machine` as e_machine has it."""
        program = shutil.which("objdump")
        if program is None:
            raise ValueError("objdump isn't here (a part of binutils): loops aren't told")
        if machine not in MACHINES or not is_little_endian:
            raise ValueError(f"the code of this machine ({machine}) isn't understood: loops aren't told")
        self._program, self._machine = program, MACHINES[machine]
        self._kinds: dict[str, str] = {}

    def read(self, functions: Sequence[Code]) -> list[list[Instruction]]:
        """Return the instructions of functions, each by address. Cost: some 3 us an instruction. Raises ValueError."""
        laid: list[_FilePart] = []
        with tempfile.NamedTemporaryFile(prefix="palmette-code-") as file:
            at = 0
            for number, function in enumerate(functions):
                for begin, part in function.parts:
                    laid.append(_FilePart(at, at + len(part), begin - at, number))
                    padded = part + bytes(-len(part) % 4) + self._machine.gap
                    file.write(padded)
                    at += len(padded)
            file.flush()
            text = self._text(Path(file.name))
        found: list[list[Instruction]] = [[] for _ in functions]
        for one, number in self._parsed(text, laid):
            found[number].append(one)
        for members in found:
            members.sort()
        return found

    def _text(self, file: Path) -> str:
        command = [self._program, "-D", "-z", "-b", "binary", "-m", self._machine.name, "--no-show-raw-insn", str(file)]
        try:
            made = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise ValueError(f"{error}: loops aren't told") from None
        if made.returncode != 0:
            told = (made.stderr.strip().splitlines() or ["no reason told"])[0]
            raise ValueError(f"objdump fails ({told}): loops aren't told")
        return made.stdout

    def _parsed(self, text: str, laid: Sequence[_FilePart]) -> list[tuple[Instruction, int]]:
        """Return instructions and the number of their function."""
        found = []
        begins = [one.begin for one in laid]
        part = _FilePart(0, 0, 0, 0)
        before: tuple[int, int, str] | None = None
        for match in LINE.finditer(text):
            at = int(match[1], 16)
            if before is not None:
                following = min(at, part.end) + part.move
                found.append((Instruction(before[0], following, before[1], before[2]), part.function))
                before = None
            if not part.begin <= at < part.end:
                number = bisect_right(begins, at) - 1
                if number < 0 or at >= laid[number].end:
                    continue
                part = laid[number]
            kind, target = self._kind(match[2]), -1
            if kind in ("conditional", "jump"):
                # An indirect one has a register or memory where a direct one has its target.
                to = None if "*" in match[3] else TARGET.search(match[3])
                kind, target = (kind, (int(to[1], 16) + part.move) % 2**64) if to else ("indirect", -1)
            before = (at + part.move, target, kind)
        if before is not None:
            found.append((Instruction(before[0], part.end + part.move, before[1], before[2]), part.function))
        return found

    def _kind(self, name: str) -> str:
        if name not in self._kinds:
            self._kinds[name] = next((kind for kind, form in self._machine.kinds if form.fullmatch(name)), "")
        return self._kinds[name]
