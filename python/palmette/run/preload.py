"""LD_PRELOAD: our libraries in addition to those that the user preloads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from palmette.mpi.elf import defines

NAME = "LD_PRELOAD"


# Only palmette's libraries for this job are kept, not those of an enclosing `palmette run`.
_OURS = re.compile(r"libpalmette_(?:record_)?(?:mpich|ompi|abi)\.so$")


def with_preload(libraries: Sequence[Path], present: str | None) -> str:
    """Return the value of LD_PRELOAD that adds `libraries`, in their order, to the value that is there.

    The user's libraries keep the first places, which sanitizers insist on and allocators may; but ours go before the
    first that wraps MPI functions itself (a profiler), for such a library calls PMPI_ and would bypass ours.
    """
    ours = [str(library) for library in libraries]
    folder = libraries[-1].parent
    words = [word for word in re.split("[: ]+", present or "") if word and word not in ours]
    words = [word for word in words if not (_OURS.match(Path(word).name) and Path(word).parent == folder)]
    place = next((index for index, word in enumerate(words) if _replaces_mpi(word)), len(words))
    return ":".join([*words[:place], *ours, *words[place:]])


def is_ours(word: str) -> bool:
    """Whether a word of LD_PRELOAD is one of palmette's libraries."""
    return _OURS.match(Path(word).name) is not None


def _replaces_mpi(word: str) -> bool:
    path = Path(word)
    try:
        return path.is_absolute() and any(defines(path, name) for name in ("MPI_Init", "MPI_Gather"))
    except OSError:
        return False
