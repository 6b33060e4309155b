"""Measures how long functions, lines, inlined calls and loops of a module take to be found.

Usage: structure_speed.py MODULE [SHARE]

Of SHARE (0.01) of its functions, drawn at random, an address each 64 bytes is asked for, as samples would. Prints wall
time, processor time of all processes, and what became known.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from palmette.record import symbols
from palmette.record.structure.symbol_table import build_id
from palmette.record.symbols import Frame, Resolver

EACH_BYTES = 64


def functions_of(module: Path) -> tuple[str, list[tuple[int, int]]]:
    """Return the build id, and address and length of all functions."""
    found = {}
    with module.open("rb") as file:
        elf = ELFFile(file)
        for section in elf.iter_sections():
            if isinstance(section, SymbolTableSection):
                raw = np.frombuffer(
                    section.data(),
                    np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
                              ("size", "<u8")]),
                )  # fmt: skip
                raw = raw[(raw["info"] & 0xF == 2) & (raw["size"] > 0) & (raw["value"] > 0)]
                found |= dict(zip(raw["value"].tolist(), raw["size"].tolist(), strict=True))
        return build_id(elf), sorted(found.items())


def main(module: Path, share: float) -> None:
    """Measure one module."""
    symbols.READING_S = 3600.0
    identity, functions = functions_of(module)
    chosen = random.Random(7).sample(functions, max(1, round(len(functions) * share)))  # noqa: S311
    frames = [
        Frame(str(module), identity, at + 1)
        for begin, length in chosen
        for at in range(begin, begin + length, EACH_BYTES)
    ]
    resolver = Resolver()
    begun = time.monotonic()
    resolver.add(frames)
    took = time.monotonic() - begun
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    places = [resolver.places(frame) for frame in frames if resolver.knows(frame)]
    print(
        f"{module.name}: {module.stat().st_size / 1e6:.0f} MB, {len(functions):,} functions of "
        f"{sum(length for _, length in functions) / 1e6:.0f} MB; asked: {len(chosen):,} functions of "
        f"{sum(length for _, length in chosen) / 1e6:.1f} MB, {len(frames):,} addresses"
    )
    print(
        f"{took:.1f} s wall, {sum(one.ru_utime + one.ru_stime for one in used):.1f} s processor time, "
        f"{max(one.ru_maxrss for one in used) / 1e6:.2f} GB"
    )
    print(
        f"{len(places):,} addresses known, {sum(place[0].line > 0 for place in places):,} with lines, "
        f"{sum(len(place) > 1 for place in places):,} in inlined functions, "
        f"{sum(any(one.loops for one in place) for place in places):,} in loops"
    )
    print("\n".join(resolver.notes[:5]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.01)
