"""Stand-ins for packages that commands use only when they run: whoever only reads the options does without them.

Completion and the generator of the man pages import command modules for their click declarations. Importing numpy, rich
and the like takes longer than all else of a completion, and where man pages are made they may not be installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

HEAVY_MODULES = (
    "numpy",
    "scipy",
    "rich",
    "jinja2",
    "markupsafe",
    "yaml",
    "ClusterShell",
    "elftools",
    "sqlite3",
    "urllib.request",
)
"""What commands' modules import, but no declaration of an option needs."""


class _Anything(type):
    """Class of the one stand-in, which may be called, subscripted, iterated over and derived from at import."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        return StandIn if cls is StandIn else super().__call__(*arguments, **named)

    def __getitem__(cls, key: object) -> type:
        return StandIn

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


class StandIn(metaclass=_Anything):
    """Every name of a module that is stood in for."""


class _Module(ModuleType):
    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn


class _Finder:
    # Without the base classes of importlib.abc, whose import takes as long as click's.
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self._names):
            return ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is executed."""


def install(*more: str) -> None:
    """Stand in for HEAVY_MODULES and `more` in this process, which must only read declarations from now on."""
    sys.meta_path.insert(0, _Finder((*HEAVY_MODULES, *more)))
