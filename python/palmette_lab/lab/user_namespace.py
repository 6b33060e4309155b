"""Labs without root: the command that brings one up runs as root of a user namespace of its own.

Only trying tells whether that works: policies differ by system, and some allow the namespace but nothing inside of it.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from palmette_lab.lab.errors import LabError
from palmette_lab.lab.helpers import helper
from palmette_lab.lab.namespaces import explain

Way = Literal["root", "user namespace"]

_TIMEOUT_S = 30
_REFUSED = 125
_SYSCTLS = Path("/proc/sys")
OUTER_TMPDIR = "PALMETTE_LAB_OUTER_TMPDIR"
"""Set within `command_inside` alone: the folder for temporary files that are to outlive the command."""

_HIDES_NOTHING = ("/var/opt", "/etc/opt", "/var/local", "/usr/local/etc", "/usr/local/games", "/srv")
"""Where the tmpfs of a lab may lie: folders of most systems, mostly empty, that nobody writes results to."""

_TRIAL = """
ip link add name p0 type veth peer name p1
ip link add name b0 type bridge
tc qdisc replace dev p0 root tbf rate 1mbit burst 3200 limit 8000000
"""
"""Commands each of which needs another module of the kernel."""


def way() -> Way:
    """Return how this process can bring up a lab, found by trying (some 10 ms). Raises LabError where it can't.

    As root without the rights for it, as in most containers, a user namespace is tried, too.
    """
    for tool in ("ip", "tc", "sysctl"):
        if shutil.which(tool, path=search_path()) is None:
            raise LabError(f"the program {tool} is not in PATH; install iproute2 and procps")
    refused = _try("OWN") if os.geteuid() == 0 else "no root"
    if refused is None:
        return "root"
    if OUTER_TMPDIR in os.environ:
        raise LabError(f"this user namespace allows no lab ({refused}); call it with sudo")
    complaint = _try("NEW")
    if complaint is None:
        return "user namespace"
    who = "no root" if os.geteuid() != 0 else f"root without the rights for it ({refused})"
    raise LabError(f"{who}, and no user namespace ({complaint}): {advice(complaint)}")


def search_path() -> str:
    """Return PATH with the folders of `ip`, `tc` and `sysctl`, which ordinary users often lack."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def command_inside(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words and the environment that run `palmette-lab ARGUMENTS` as root of a new user namespace.

    State and temporary files are in a tmpfs that ends with the command, as all else in the namespace.
    """
    # Not -m: the present folder would come first where modules are looked for.
    code = "import sys; sys.path[:] = filter(None, sys.path); from palmette_lab.cli.main import main; sys.exit(main())"
    folder = _folder()
    environment = {
        **os.environ,
        "PATH": search_path(),
        "PALMETTE_LAB_STATE": f"{folder}/labs",
        "TMPDIR": folder,
        OUTER_TMPDIR: tempfile.gettempdir(),
    }
    return [str(helper("palmette-lab-userns")), "NEW", folder, sys.executable, "-c", code, *arguments], environment


def is_inside() -> bool:
    """Whether this process is in a user namespace, by `command_inside` or as in containers without root."""
    try:
        return Path("/proc/self/uid_map").read_text(encoding="utf-8").split() != ["0", "0", "4294967295"]
    except OSError:
        return False


def advice(complaint: str) -> str:
    """Return what helps where the kernel refuses with `complaint` (palmette-lab-userns's, or a tool's)."""
    step, _, error = complaint.rpartition(": ")
    if error == os.strerror(errno.ENOSPC):
        if step == "user namespace":
            return "user.max_user_namespaces is too low; `sysctl user.max_user_namespaces=1000` as root"
        return (
            "user.max_net_namespaces, or that of pid or mnt, is too low; `sysctl user.max_net_namespaces=1000` as root"
        )
    if error in (os.strerror(errno.EINVAL), os.strerror(errno.ENOSYS)):
        return "this kernel is built without them; call it with sudo"
    if error not in (os.strerror(errno.EPERM), os.strerror(errno.EACCES)):
        return "call it with sudo"
    if step == "user namespace":
        if _sysctl("kernel/unprivileged_userns_clone") == "0":
            return "`sysctl kernel.unprivileged_userns_clone=1` as root allows them"
        return (
            "a container or a security policy forbids them; start the container with --privileged, or call it with sudo"
        )
    if _sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "AppArmor allows nothing in them; `sysctl kernel.apparmor_restrict_unprivileged_userns=0` as root"
    if step.startswith("mount "):
        return "a container hides parts of /proc or /sys; start it with --privileged, or work outside of it"
    return "a security policy allows nothing in them; call it with sudo"


def _try(whose: Literal["OWN", "NEW"]) -> str | None:
    """Make the namespaces, a link, a switch and a rate limit; return the complaint, or None where all of it works."""
    try:
        done = subprocess.run(
            [helper("palmette-lab-userns"), whose, _folder(), "sh", "-ec", _TRIAL],
            env={**os.environ, "PATH": search_path(), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    complaint = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
    return complaint.removeprefix("palmette-lab-userns: ") if done.returncode == _REFUSED else explain(complaint)


def _folder() -> str:
    """Return where the tmpfs of a lab lies: a folder that is empty, so that it hides nothing, or /run."""
    for folder in map(Path, _HIDES_NOTHING):
        try:
            # Where the user may write, results could lie that would vanish with the tmpfs.
            if os.geteuid() != 0 and os.access(folder, os.W_OK):
                continue
            if not folder.is_symlink() and not os.path.ismount(folder) and not any(folder.iterdir()):
                return str(folder)
        except OSError:
            continue
    return "/run"


def _sysctl(name: str) -> str | None:
    try:
        return (_SYSCTLS / name).read_text(encoding="utf-8").strip()
    except OSError:
        return None
