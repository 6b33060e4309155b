"""Programs built with the address sanitizer, whose runtime insists on being the first library of the process."""

from __future__ import annotations

import re
from pathlib import Path

NAME = "ASAN_OPTIONS"
_FLAG = "verify_asan_link_order"
_RUNTIME = re.compile(r"lib(?:asan|clang_rt\.asan(?:-\w+)?)\.so(?:\.\d+)*$")


def is_asan(library: str) -> bool:
    """Return whether a library of that name is the address sanitizer's runtime: gcc's, or clang's with -shared-libasan.

    A runtime in the program itself, as clang has it by default, doesn't ask who comes first.
    """
    return _RUNTIME.match(library) is not None


def knows_flag(runtime: Path) -> bool:
    """Return whether that runtime has a flag to disable this check; old ones don't. False where it can't be read."""
    try:
        return _FLAG.encode() in runtime.read_bytes()
    except OSError:
        return False


def with_flag(present: str | None) -> str:
    """Return the value of ASAN_OPTIONS that adds the flag to the value that is there.

    The order is harmless here: palmette's libraries replace none of the functions that the sanitizer does, and its
    runtime still comes before the C library. Unlike the runtime in LD_PRELOAD, the flag doesn't affect the program's
    children: shells and other programs that aren't built with the sanitizer.
    """
    if not present:
        return f"{_FLAG}=0"
    return f"{present}:{_FLAG}=0"
