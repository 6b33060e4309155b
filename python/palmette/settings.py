"""The settings (PALMETTE_* environment variables), each declared once in settings.json.

The preload library, the command line and the documentation all derive from that file: CMake generates a C++ header
from it (`palmette/interpose/settings_list.hpp`), and this module reads it for Python.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

Kind = Literal[
    "flag", "level", "count", "path", "report", "wait", "grids", "share", "device_path", "device_mpi", "algorithm",
    "site", "joblog", "sharp"
]  # fmt: skip
"""What a value is: flag 0 or 1; wait auto, mpi or poll; grids halo or exchange; share 0 or a percentage such as 1%;
level 0, 1 or 2; count 0 or more; device_path auto, staging, ipc or nccl; device_mpi auto, 0 or 1; sharp auto, off or a
path; report 0, 1 or a path that ends in .json; algorithm an algorithm's specification or `mpi`; site 0 or a folder;
joblog 0, syslog, syslog:/SOCKET or a path, a folder's too."""

DECLARATIONS = Path(__file__).with_name("settings.json")


_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")


def _is_share(value: str) -> bool:
    """Return whether `value` is 0 or a percentage of at most 50."""
    match = _SHARE.fullmatch(value)
    return value == "0" or (match is not None and float(match[1]) <= 50)


class SettingError(ValueError):
    """A variable holds a value that its kind doesn't allow."""


class Setting(NamedTuple):
    """One declaration: the variable's name, the kind of its value, its default as text, and a sentence."""

    name: str
    kind: Kind
    default: str
    help: str

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
        if not value:
            return
        expected = {
            "flag": "0 or 1" if value not in ("0", "1") else "",
            "level": "0, 1 or 2" if value not in ("0", "1", "2") else "",
            "count": "0 or more" if not re.fullmatch(r"[0-9]{1,9}", value) else "",
            "wait": "auto, mpi or poll" if value not in ("auto", "mpi", "poll") else "",
            "grids": "halo or exchange" if value not in ("halo", "exchange") else "",
            "device_path": "auto, staging, ipc or nccl" if value not in ("auto", "staging", "ipc", "nccl") else "",
            "device_mpi": "auto, 0 or 1" if value not in ("auto", "0", "1") else "",
            "share": "0 or a percentage such as 1%, at most 50%" if not _is_share(value) else "",
            "report": "0, 1 or a path that ends in .json"
            if value not in ("0", "1") and not value.endswith(".json")
            else "",
            "site": "0 or a folder that begins with /" if value != "0" and not value.startswith("/") else "",
            "sharp": "auto, off or a path with a /" if value not in ("auto", "off") and "/" not in value else "",
            "joblog": "0, syslog, syslog:/SOCKET or a path that begins with /"
            if value not in ("0", "syslog") and not value.startswith(("/", "syslog:/"))
            else "",
        }.get(self.kind, "")
        if expected:
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


def former() -> dict[str, str]:
    """Return former settings with what holds now, as a phrase that follows the name."""
    return dict(_file()["former"])


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
