"""libsharp_coll, NVIDIA's library for reductions by switches: whether the ranks on this machine would take it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

SONAME = "libsharp_coll.so.5"
GUARDS = ("sharp_coll_do_allgather_nb", "sharp_coll_caps_query")
"""As in src/palmette/aggregate/sharp/library.cpp: libraries with these have the structures that palmette knows."""


class FoundSharp(NamedTuple):
    """Whether it can be used, and a sentence about it."""

    usable: bool
    detail: str


def places(environment: Mapping[str, str], wanted: str) -> Iterator[str]:
    """Yield what the runtime tries, in its order."""
    if wanted != "auto":
        yield wanted
        return
    yield from (SONAME, "libsharp_coll.so")
    folders = [f"{environment['HPCX_SHARP_DIR']}/lib"] if environment.get("HPCX_SHARP_DIR") else []
    for folder in [*folders, "/opt/mellanox/sharp/lib"]:
        yield from (f"{folder}/{SONAME}", f"{folder}/libsharp_coll.so")


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
        missing = [name for name in GUARDS if not hasattr(library, name)]
        if missing:
            return FoundSharp(False, f"{place} has no {missing[0]}: it is older than SHARP 3")
        return FoundSharp(True, place)
    where = SONAME if wanted == "auto" else wanted
    return FoundSharp(False, f"no {where}: switches don't reduce, hosts do")
