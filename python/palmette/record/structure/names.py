"""Names of functions as they stand in the source: of C++, Fortran and Rust, from the names that the linker knows."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

FORTRAN = (
    re.compile(r"__(?P<module>\w+)_MOD_(?P<name>\w+)"),  # gfortran
    re.compile(r"_QM(?P<module>\w+?)(?:S\w+?)?P(?P<name>[a-z]\w*)"),  # flang
    re.compile(r"(?P<module>[a-z]\w*)_mp_(?P<name>\w+?)_"),  # ifort, ifx
    re.compile(r"(?P<module>[a-z]\w*?)_MP_(?P<name>\w+)"),  # NAG
)
"""Procedures of modules."""
CLONE = re.compile(r"(\.(cold|constprop|isra|part|lto_priv|llvm|localalias)(\.\d+)*)+$")
"""What compilers add to parts and variants of a function."""
RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
RUST_ESCAPES = {
    "$LT$": "<", "$GT$": ">", "$LP$": "(", "$RP$": ")", "$C$": ",", "$RF$": "&", "$BP$": "*", "$SP$": "@",
    "$u20$": " ", "$u27$": "'", "$u5b$": "[", "$u5d$": "]", "$u7b$": "{", "$u7d$": "}", "$u7e$": "~", "..": "::",
}  # fmt: skip
"""Escapes in Rust's names that have the form of C++'s."""
FILTER_S = 10.0
"""Time limit of c++filt, which is asked for Rust's newer names alone."""


class Names:
    """Names as their sources have them. Cost: some microseconds a name, once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._demangle, self._free = _demangler()

    def add(self, names: Iterable[str]) -> None:
        """Learn names that only a program knows, all at once."""
        unknown = sorted({name for name in names if name.startswith("_R") and name not in self._known})
        program = shutil.which("c++filt")
        if not unknown or program is None:
            return
        with suppress(OSError, subprocess.TimeoutExpired):
            told = subprocess.run(
                [program], input="\n".join(unknown), capture_output=True, text=True, errors="replace", check=False,
                timeout=FILTER_S,
            ).stdout.splitlines()  # fmt: skip
            if len(told) == len(unknown):
                self._known |= zip(unknown, told, strict=True)

    def of(self, name: str) -> str:
        """Return a name as the source has it; the same where it isn't a linker's."""
        if name not in self._known:
            self._known[name] = self._read(CLONE.sub("", name))
        return self._known[name]

    def _read(self, name: str) -> str:
        if name.startswith("_Z"):
            told = self._of_cpp(name)
            if RUST_HASH.search(told):
                told = RUST_HASH.sub("", told)
                for escape, sign in RUST_ESCAPES.items():
                    told = told.replace(escape, sign)
                # An impl's path begins with a sign that no identifier has.
                told = told.replace("::_<", "::<").removeprefix("_") if "_<" in told else told
            return _without_result(told)
        for form in FORTRAN:
            if found := form.fullmatch(name):
                return f"{found['module']}::{found['name']}"
        return name

    def _of_cpp(self, name: str) -> str:
        if self._demangle is None:
            return name
        status = ctypes.c_int()
        found = self._demangle(name.encode("utf-8", "surrogateescape"), None, None, ctypes.byref(status))
        if not found:
            return name
        told = ctypes.string_at(found).decode("utf-8", "replace")
        self._free(found)
        return told


def _without_result(name: str) -> str:
    """Return a function's name without the type of its result, which stands before templates' names."""
    if "operator" in name:
        return name
    depth, begin = 0, 0
    for at, sign in enumerate(name):
        if sign in "<(":
            if sign == "(" and depth == 0 and at > begin and not name.startswith("(anonymous", at):
                return name[begin:]
            depth += 1
        elif sign in ">)":
            depth -= 1
        elif sign == " " and depth == 0:
            begin = at + 1
    return name


def _demangler() -> tuple[Any, Any]:
    """Return the C++ library's demangler and what frees its answers; None where there is none."""
    for library in ("libstdc++.so.6", "libc++abi.so.1"):
        with suppress(OSError, AttributeError):
            demangle = ctypes.CDLL(library).__getattr__("__cxa_demangle")
            demangle.restype = ctypes.c_void_p
            demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
            free = ctypes.CDLL(None).free
            free.argtypes, free.restype = (ctypes.c_void_p,), None
            return demangle, free
    return None, None
