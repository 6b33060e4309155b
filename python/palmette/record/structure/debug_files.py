"""Where the debug information of a module lies: in itself, or in a separate file, as gdb looks for one.

Nothing is fetched. What `debuginfod-find debuginfo FILE` has fetched before is found in its cache.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from palmette.record.structure.symbol_table import build_id

DEBUG = Path("/usr/lib/debug")
"""Where distributions put separate debug files."""


def debug_file(module: Path, elf: ELFFile) -> Path | None:
    """Return the file with a module's debug information; None where there is none."""
    if elf.has_dwarf_info(strict=True):
        return module
    number = build_id(elf)
    for file in _by_build_id(number) if number else ():
        if _is_of(file, number):
            return file
    link = elf.get_section_by_name(".gnu_debuglink")
    if link is None:
        return None
    name, _, rest = link.data().partition(b"\0")
    crc = struct.unpack("<I" if elf.little_endian else ">I", rest[-4:])[0] if len(rest) >= 4 else None
    folder = module.resolve().parent
    for file in (folder / os.fsdecode(name), folder / ".debug" / os.fsdecode(name),
                 DEBUG / str(folder).lstrip("/") / os.fsdecode(name)):  # fmt: skip
        if file != module.resolve() and file.is_file() and (_is_of(file, number) if number else _crc(file) == crc):
            return file
    return None


def _by_build_id(number: str) -> Iterator[Path]:
    yield DEBUG / ".build-id" / number[:2] / f"{number[2:]}.debug"
    cache = os.environ.get("DEBUGINFOD_CACHE_PATH")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or "/", ".cache"))
    yield (Path(cache) if cache else home / "debuginfod_client") / number / "debuginfo"


def _is_of(file: Path, number: str) -> bool:
    """Whether a file is of the module with this build id, and has debug information."""
    try:
        with file.open("rb") as opened:
            elf = ELFFile(opened)
            return build_id(elf) == number and bool(elf.has_dwarf_info(strict=True))
    except (OSError, ELFError):
        return False


def _crc(file: Path) -> int:
    found = 0
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            found = zlib.crc32(part, found)
    return found
