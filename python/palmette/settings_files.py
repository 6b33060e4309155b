"""Settings that stand in files: a user's, and those that an administrator has laid down for everybody.

The preload library reads the same files by src/palmette/base/settings_files.cpp, which must give the same values and
the same complaints: tests/python/test_settings_files.py compares them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from palmette import settings
from palmette.settings import Setting, SettingError

LIBRARY = Path(__file__).resolve().parent / "lib" / "libpalmette_mpich.so"
"""A preload library's place, by which the folder is known that palmette is installed below."""
MOST_BYTES = 65536
"""Larger files are none of settings."""
COUNTING = {"topology.json": "PALMETTE_TOPOLOGY", "table.json": "PALMETTE_TABLE"}
"""Files of a site that are a setting's value by being there."""


class FileValue(NamedTuple):
    """A setting's text in a file; `where` is FILE:LINE, or a file that counts by being there."""

    text: str
    where: str
    origin: Literal["site", "user"]


class SettingsFiles(NamedTuple):
    """What files say. `mistakes`: a sentence for each line without effect, with file, line and what to do."""

    values: dict[str, FileValue]
    mistakes: tuple[str, ...]
    files: tuple[str, ...]


def installation_prefix(library: str) -> str:
    """Return the folder that palmette is installed below, by the path of a preload library; empty if unknown."""
    folder = library.rpartition("/")[0]
    for packages in ("/site-packages/palmette/lib", "/dist-packages/palmette/lib"):
        if folder.endswith(packages):
            above = folder.removesuffix(packages).rpartition("/")[0].rpartition("/")[0]  # of lib/python3.11
            return above.removesuffix("/libexec/palmette")
    parent, _, last = folder.rpartition("/")
    if last in ("lib", "lib64"):
        return parent
    above, _, last = parent.rpartition("/")  # lib/x86_64-linux-gnu
    return above if last == "lib" else ""


def site_folders(environment: Mapping[str, str], library: str = str(LIBRARY)) -> list[str]:
    """Return the folders in which the site's files are looked for, the first one first."""
    site = environment.get("PALMETTE_SITE", "")
    if site:
        return [] if site == "0" else [site]
    prefix = installation_prefix(library)
    own = [f"{prefix}/etc/palmette"] if prefix not in ("", "/usr") else []
    return [*own, "/etc/palmette"]


def read_files(environment: Mapping[str, str] | None = None, library: str = str(LIBRARY)) -> SettingsFiles:
    """Return what the user's file and those of the site say; a user's lines count over the site's."""
    environment = os.environ if environment is None else environment
    site = environment.get("PALMETTE_SITE", "")
    reader = _Reader()
    if site != "0":
        listed = site_folders(environment, library)
        folders = [folder for folder in listed if Path(folder).exists()]
        if site and not folders:
            reader.mistakes.append(f"PALMETTE_SITE={site}: no such folder; correct it, or 0 for none")
        any(reader.settings(f"{folder}/settings", "site") for folder in folders)
        for name, setting in COUNTING.items():
            any(reader.counts(f"{folder}/{name}", setting) for folder in folders)
        if user := _user_file(environment):
            reader.settings(user, "user")
    return SettingsFiles(reader.values, tuple(reader.mistakes), tuple(reader.files))


def with_files(environment: Mapping[str, str], files: SettingsFiles) -> dict[str, str]:
    """Return `environment` with what files say where it doesn't, so that no rank reads other files, nor tells their
    mistakes again.
    """
    if not files.files and not files.values and not files.mistakes:
        return dict(environment)
    said = {name: value.text for name, value in files.values.items()}
    return {**said, **environment, "PALMETTE_SITE": "0"}


def value_in_force(name: str) -> str:
    """Return a setting's text in this process: from the environment, a file, or its default."""
    if name in os.environ:
        return os.environ[name] or settings.find(name).default
    said = read_files().values.get(name)
    return (said.text if said else "") or settings.find(name).default


class Value(NamedTuple):
    """A setting with its effective text and where that comes from; `where` names the file and line."""

    setting: Setting
    text: str
    origin: Literal["default", "environment", "user", "site"]
    where: str = ""


def values(environment: Mapping[str, str] | None = None, files: SettingsFiles | None = None) -> tuple[Value, ...]:
    """Return every setting's value, by the environment and files.

    Raises SettingError for the first value of the environment that isn't allowed.
    """
    environment = os.environ if environment is None else environment
    files = read_files(environment) if files is None else files
    result = []
    for value in settings.values(environment):
        said = files.values.get(value.setting.name)
        if value.setting.name in environment or said is None or not said.text:
            result.append(Value(value.setting, value.text, value.origin))
        else:
            result.append(Value(value.setting, said.text, said.origin, said.where))
    return tuple(result)


class _Reader:
    def __init__(self) -> None:
        self.values: dict[str, FileValue] = {}
        self.mistakes: list[str] = []
        self.files: list[str] = []

    def settings(self, path: str, origin: Literal["site", "user"]) -> bool:
        """Read a file of NAME=VALUE lines; return whether there is one."""
        try:
            text = _text_of(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            self.files.append(path)
            self.mistakes.append(f"{path}: can't be read ({error.strerror}); correct it or its permissions")
            return True
        self.files.append(path)
        lines: dict[str, int] = {}
        for number, whole in enumerate(text.split("\n"), 1):
            line = whole.strip(_BLANK)
            if not line or line.startswith("#"):
                continue
            if any((one < " " and one != "\t") or one == "\x7f" or "\udc80" <= one <= "\udcff" for one in line):
                self.mistakes.append(f"{path}:{number}: characters that are no text; correct or remove the line")
                continue
            name, equals, value = (part.strip(_BLANK) for part in line.partition("="))
            mistake = _mistake_in(name, value) if equals and name else "expected NAME=VALUE"
            if mistake:
                self.mistakes.append(f"{path}:{number}: {mistake}; correct or remove the line")
            elif name in lines:
                first = lines[name]
                self.mistakes.append(f"{path}:{number}: {name} stands in line {first} already; remove one of them")
            else:
                lines[name] = number
                self.values[name] = FileValue(value, f"{path}:{number}", origin)
        return True

    def counts(self, path: str, name: str) -> bool:
        """Take a file that is a setting's value by being there; return whether it is."""
        if not Path(path).exists():
            return False
        self.files.append(path)
        self.values.setdefault(name, FileValue(path, path, "site"))
        return True


_BLANK = " \t\r\n"


def _mistake_in(name: str, value: str) -> str:
    if name in settings.former():
        return f"{name} {settings.former()[name]}"
    try:
        setting = settings.find(name) if name.startswith("PALMETTE_") else None
    except KeyError:
        setting = None
    if setting is None:
        return f"{name} is no setting (`palmette settings` lists them)"
    if name in settings.of_one_run():
        return f"{name} can't stand in a file, for it belongs to one run"
    try:
        setting.check(value)
    except SettingError as error:
        return str(error)
    # The working directory is none of the file's.
    is_path = setting.kind == "path" or (setting.kind == "report" and value not in ("0", "1"))
    if value and is_path and not value.startswith("/"):
        return f"{name}={value}: expected a path that begins with /"
    return ""


def _text_of(path: str) -> str:
    """Return a file's text. Raises OSError, whose `strerror` says what is wrong."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "no plain file")
    with open(handle, "rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(0, "larger than 64 KiB")
    return data.decode("utf-8", "surrogateescape")


def _user_file(environment: Mapping[str, str]) -> str:
    config, home = environment.get("XDG_CONFIG_HOME", ""), environment.get("HOME", "")
    if config:
        return f"{config}/palmette/settings"
    return f"{home}/.config/palmette/settings" if home else ""
