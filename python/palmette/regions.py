"""Regions of a Python program, whose calls and times `palmette run --profile` and `--trace` record exactly.

    from palmette import region

    with region("solve"):
        ...

    @region("assemble")
    def assemble(): ...

    @region            # named as the function: module.assemble
    def assemble(): ...

They nest with those of C, C++ and Fortran in the same thread. Without a recorder they do nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import ContextDecorator
from functools import cache
from types import TracebackType
from typing import Any


@cache
def _functions() -> tuple[Callable[[bytes], int], Callable[[bytes], int]] | None:
    """Return the recorder's functions; None where it isn't in the process."""
    # The interpreter's lock is kept: both take tens of nanoseconds, and belong to this thread.
    library = ctypes.PyDLL(None)
    try:
        found = library.palmette_region_begin, library.palmette_region_end
    except AttributeError:
        return None
    for one in found:
        one.argtypes = [ctypes.c_char_p]
    return found


class Region(ContextDecorator):
    """A region of that name, to be entered by `with` as often as wanted, or around a function.

    Not around coroutines and generators, which others run in the midst of. Cost: 0.4 us to enter and leave one.
    """

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        if not self._name or b"\0" in self._name:
            raise ValueError(f"region {name!r}: a name has at least one character, and none of them is NUL")
        self._functions = _functions()

    def __enter__(self) -> Region:
        if self._functions is not None:
            self._functions[0](self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._functions is not None:
            self._functions[1](self._name)


def region(what: str | Callable[..., Any]) -> Any:
    """Return a region of that name, for `with` or as a decorator; of a function, that function within a region which is
    named as it is. Raises ValueError for a name that can't be one.
    """
    if callable(what):
        return Region(f"{what.__module__}.{what.__qualname__}")(what)
    return Region(what)
