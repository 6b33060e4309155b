"""Palmette's own libraries and programs under names by which they can be loaded and executed.

LD_PRELOAD separates names by blanks and colons, and has no way to write these; launchers do so with commas. What lies
in a file system that is mounted noexec can't be mapped for execution. In the first case a link to the folder is used,
in the second a copy of the file.
"""

from __future__ import annotations

import binascii
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from palmette.mpi.errors import RunError

_SEPARATORS = frozenset(" :,;$\t\n\\'\"")


def usable(path: Path) -> Path:
    """Return a path by which the loader, or the kernel, can take the file at `path`: mostly that one.

    Links and copies are made in the user's cache folder, which other hosts mostly see, or else below /tmp or /var/tmp;
    a copy is made again where the file has changed. Raises RunError where none can be made. Cost: one system call.
    """
    library = ".so" in path.name
    if is_noexec(path.parent):
        why = f"{path.parent} is on a file system that is mounted noexec"
        return _placed(path, _copied, why, executed=True)
    if library and not _SEPARATORS.isdisjoint(str(path)):
        why = f"the path {path.parent} has a blank, a colon or a comma, at which LD_PRELOAD ends"
        return _placed(path, _linked, why, executed=False)
    return path


def is_temporary(path: Path) -> bool:
    """Whether what `usable` returned lies where other hosts have other files."""
    return any(path.is_relative_to(folder) for folder in _temporary_bases())


def is_noexec(folder: Path) -> bool:
    """Whether nothing can be executed from there, because its file system is mounted so."""
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)
    except OSError:
        return False


def _placed(path: Path, make: Callable[[Path, Path], Path], why: str, *, executed: bool) -> Path:
    problems = []
    for base in _bases():
        if not _SEPARATORS.isdisjoint(str(base)):
            problems.append(f"{base}: such a path, too")
            continue
        try:
            _own(base)
            if executed and is_noexec(base):
                problems.append(f"{base}: mounted noexec, too")
                continue
            return make(path, base)
        except OSError as error:
            problems.append(f"{base}: {error.strerror}")
    raise RunError(
        f"{why}, and nothing can be put in its place ({'; '.join(problems)}); install palmette in another folder, or"
        " set XDG_CACHE_HOME to one that is better"
    )


def _bases() -> list[Path]:
    """Return the folders for links and copies, the best first."""
    found = []
    cache, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if cache.startswith("/"):
        found.append(Path(cache) / "palmette")
    elif home.startswith("/"):
        found.append(Path(home) / ".cache" / "palmette")
    return [*found, *_temporary_bases()]


def _temporary_bases() -> list[Path]:
    return [Path(place) / f"palmette-{os.geteuid()}" for place in ("/tmp", "/var/tmp")]  # noqa: S108


def _own(folder: Path) -> None:
    """Make a folder. Raises OSError for one that others may write to: what is in it is loaded into programs."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(1, "not a folder of yours alone", str(folder))


def _linked(path: Path, base: Path) -> Path:
    link = base / f"lib-{_number(str(path.parent))}"
    if not link.is_symlink() or link.readlink() != path.parent:
        temporary = _temporary(link)
        temporary.symlink_to(path.parent)
        temporary.replace(link)
    return link / path.name


def _copied(path: Path, base: Path) -> Path:
    found = path.stat()
    folder = base / f"copy-{_number(f'{path} {found.st_size} {found.st_mtime_ns}')}"
    copy = folder / path.name
    try:
        if copy.stat().st_size == found.st_size:
            return copy
    except OSError:
        pass
    folder.mkdir(mode=0o700, exist_ok=True)
    temporary = _temporary(copy)
    try:
        shutil.copyfile(path, temporary)
        temporary.chmod(0o755)
        temporary.replace(copy)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return copy


def _temporary(path: Path) -> Path:
    """Return a name beside `path` that no other process, on any host, takes at the same time."""
    return path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")


def _number(text: str) -> str:
    return f"{binascii.crc32(text.encode('utf-8', 'surrogateescape')):08x}"
