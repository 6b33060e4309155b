"""The settings (PALMETTE_* environment variables), each declared once in settings.json.

The preload library, the command line and the documentation all derive from that file: CMake generates a C++ header
from it (`palmette/interpose/settings_list.hpp`), and this module reads it for Python.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

Kind = Literal[
    "flag", "choice", "count", "share", "path", "report", "force", "device", "site", "joblog", "sharp", "rate"
]
"""What a value is: flag 0 or 1; choice one of the declared `choices`; count 0 or more; share 0 or a percentage such as
1%; report 0, 1 or a path that ends in .json; force FUNCTION=ALGORITHM, several with `;`; device auto, off, staging, ipc
or nccl, then ,mpi or ,no-mpi; site 0 or a folder; joblog 0, syslog, syslog:/SOCKET or a path, a folder's too; sharp
auto, off or a path; rate 0, a number from 1 to 10000 or a percentage."""

DECLARATIONS = Path(__file__).with_name("settings.json")
FORCE = "PALMETTE_FORCE"


_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")


def _is_share(value: str) -> bool:
    """Return whether `value` is 0 or a percentage of at most 50."""
    match = _SHARE.fullmatch(value)
    return value == "0" or (match is not None and float(match[1]) <= 50)


def _is_rate(value: str) -> bool:
    """Return whether `value` is a share, or a number from 1 to 10000, maybe with `:events` behind it."""
    match = re.fullmatch(r"(\d{1,5}(?:\.\d+)?)(?::events)?", value)
    return _is_share(value) or (match is not None and 1 <= float(match[1]) <= 10000)


class SettingError(ValueError):
    """A variable holds a value that its kind doesn't allow."""


_DEVICE = re.compile(r"(auto|off|staging|ipc|nccl)(,mpi|,no-mpi)?")


def _one_of(words: Sequence[str]) -> str:
    """Return `0, 1 or 2`."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def _expected(kind: Kind, choices: Sequence[str], value: str) -> str:
    """Return what a value should have been; nothing for one that is allowed.

    base/settings_files.cpp has the same rules and words.
    """
    allowed, expected = {
        "flag": (value in ("0", "1"), "0 or 1"),
        "choice": (value in choices, _one_of(choices) if choices else ""),
        "count": (re.fullmatch(r"[0-9]{1,9}", value), "0 or more"),
        "share": (_is_share(value), "0 or a percentage such as 1%, at most 50%"),
        "path": (True, ""),
        "report": (value in ("0", "1") or value.endswith(".json"), "0, 1 or a path that ends in .json"),
        "force": (_is_force(value), "FUNCTION=ALGORITHM, several with ;, such as allreduce=ring;bcast=mpi"),
        "device": (_DEVICE.fullmatch(value), "auto, off, staging, ipc or nccl, then ,mpi or ,no-mpi or nothing"),
        "site": (value == "0" or value.startswith("/"), "0 or a folder that begins with /"),
        "joblog": (
            value in ("0", "syslog") or value.startswith(("/", "syslog:/")),
            "0, syslog, syslog:/SOCKET or a path that begins with /",
        ),
        "rate": (
            _is_rate(value),
            "0, samples a second from 1 to 10000 (1000:events: by the kernel's events), or a percentage such as 0.5%, "
            "at most 50%",
        ),
        "sharp": (value in ("auto", "off") or "/" in value, "auto, off or a path with a /"),
    }[kind]
    return "" if allowed else expected


class Setting(NamedTuple):
    """One declaration of settings.json.

    `agree`: what ranks must have in common for calls to be served: the value, its presence (it isn't empty, 0 or off),
    or nothing (`no`).
    """

    name: str
    kind: Kind
    default: str
    help: str
    choices: Sequence[str] = ()
    agree: Literal["value", "presence", "no"] = "value"

    @property
    def key(self) -> str:
        """The name without its prefix, in small letters: `topology`."""
        return self.name.removeprefix("PALMETTE_").lower()

    @property
    def option(self) -> str:
        """The option of the command line that sets it: `--topology`."""
        return "--" + self.key.replace("_", "-")

    def check(self, value: str) -> None:
        """Raise SettingError unless `value` is one that this setting takes.

        An empty value stands for the default. Whether a file exists or an algorithm is known is not checked here.
        """
        if value and (expected := _expected(self.kind, self.choices, value)):
            raise SettingError(f"{self.name}={value}: expected {expected}")


@cache
def _file() -> dict[str, Any]:
    """Return the contents of settings.json."""
    contents: dict[str, Any] = json.loads(DECLARATIONS.read_text(encoding="utf-8"))
    return contents


@cache
def declared() -> tuple[Setting, ...]:
    """Return all settings in the order of their declaration."""
    settings = tuple(Setting(**row) for row in _file()["settings"])
    for setting in settings:
        if setting.kind not in get_args(Kind):
            raise SettingError(f"{DECLARATIONS.name}: {setting.name} has the unknown kind {setting.kind}")
    return settings


def find(key: str) -> Setting:
    """Return the setting with the given name (`PALMETTE_TOPOLOGY`) or key (`topology`); KeyError if there is none."""
    for setting in declared():
        if key in (setting.name, setting.key):
            return setting
    raise KeyError(key)


class Value(NamedTuple):
    """A setting with its effective text and where that comes from."""

    setting: Setting
    text: str
    origin: Literal["default", "environment"]


def values(environment: Mapping[str, str] | None = None) -> tuple[Value, ...]:
    """Return every setting's value in `environment` (this process's by default).

    Raises SettingError for the first value that isn't allowed.
    """
    environment = os.environ if environment is None else environment
    result = []
    for setting in declared():
        text = environment.get(setting.name, "")
        setting.check(text)
        result.append(Value(setting, text or setting.default, "environment" if text else "default"))
    return tuple(result)


@cache
def former() -> dict[str, str]:
    """Return former settings with what holds now, as a phrase that follows the name."""
    each = {f"PALMETTE_{name.upper()}": f"is PALMETTE_FORCE={name}=ALGORITHM now" for name in functions()}
    return {**_file()["former"], **each}


def functions() -> tuple[str, ...]:
    """Return the MPI functions whose algorithm can be forced: `allreduce`."""
    return tuple(_file()["functions"])


def forced(text: str) -> dict[str, str]:
    """Return function -> algorithm (or `mpi`) of a value of PALMETTE_FORCE; of two for one function the last counts."""
    return dict(_forced_parts(text))


def _forced_parts(text: str) -> list[tuple[str, str]]:
    parts = (part.partition("=") for part in text.split(";") if part.strip())
    return [(name.strip(), algorithm.strip()) for name, _, algorithm in parts]


def force(**algorithms: str) -> dict[str, str]:
    """Return the variable that forces algorithms by function, as for a job's environment."""
    return {FORCE: ";".join(f"{name}={algorithm}" for name, algorithm in algorithms.items())}


def _is_force(value: str) -> bool:
    parts = _forced_parts(value)
    return bool(parts) and all(name in functions() and algorithm for name, algorithm in parts)


def of_one_run() -> tuple[str, ...]:
    """Return the settings that can't stand in a file, for they belong to one run."""
    return tuple(_file()["of_one_run"])


def unknown(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the undeclared PALMETTE_ variables of `environment`, sorted: mostly misspelt names.

    Variables that our own programs pass to each other (`internal_prefixes` of settings.json) are left out.
    """
    environment = os.environ if environment is None else environment
    known = {setting.name for setting in declared()}
    internal = tuple(_file()["internal_prefixes"])
    return sorted(
        name
        for name in environment
        if name.startswith("PALMETTE_") and name not in known and not name.startswith(internal)
    )
