"""libsharp_coll, NVIDIA's library for reductions by switches: whether the ranks on this machine would take it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

SONAME, FAMILY = "libsharp_coll.so.5", "libsharp_coll.so"
GUARDS = ("sharp_coll_do_allgather_nb", "sharp_coll_caps_query")
"""Functions of libraries with the structures that palmette knows (src/palmette/aggregate/sharp/library.cpp)."""


class FoundSharp(NamedTuple):
    """Whether it can be used, and a sentence about it."""

    usable: bool
    detail: str


def places(environment: Mapping[str, str], wanted: str) -> Iterator[str]:
    """Yield what the runtime tries, in its order."""
    if wanted != "auto":
        yield wanted
        return
    yield from (SONAME, FAMILY)
    folders = [f"{environment['HPCX_SHARP_DIR']}/lib"] if environment.get("HPCX_SHARP_DIR") else []
    for folder in [*folders, "/opt/mellanox/sharp/lib"]:
        yield from (f"{folder}/{SONAME}", f"{folder}/{FAMILY}")


def own_name(place: str) -> str:
    """Return the soname of a library that is loaded from a path, or by its name; nothing where it has none."""
    path = place
    if "/" not in place:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        path = next((words[5] for line in maps.splitlines() if len(words := line.split(None, 5)) == 6
                     and words[5].startswith("/") and FAMILY in words[5]), place)  # fmt: skip
    try:
        with Path(path).open("rb") as file:
            dynamic = ELFFile(file).get_section_by_name(".dynamic")
            tags: list[Any] = list(dynamic.iter_tags("DT_SONAME")) if isinstance(dynamic, DynamicSection) else []
            return str(tags[0].soname) if tags else ""
    except (OSError, ELFError):
        return ""


def find_sharp(environment: Mapping[str, str], setting: str) -> FoundSharp:
    """Look for the library as the runtime does; `setting`: PALMETTE_SHARP."""
    wanted = setting or "auto"
    if wanted == "off":
        return FoundSharp(False, "PALMETTE_SHARP=off: switches don't reduce")
    for place in places(environment, wanted):
        try:
            library = ctypes.CDLL(place, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            if "No such file" in str(error):
                continue
            return FoundSharp(False, f"{place} can't be loaded: {error}")
        if (name := own_name(place)) not in (SONAME, FAMILY):
            return FoundSharp(False, f"{place} calls itself '{name}': palmette knows {SONAME} alone")
        missing = [name for name in GUARDS if not hasattr(library, name)]
        if missing:
            return FoundSharp(False, f"{place} has no {missing[0]}: it is older than SHARP 3")
        return FoundSharp(True, place)
    where = SONAME if wanted == "auto" else wanted
    return FoundSharp(False, f"no {where}: switches don't reduce, hosts do")
