"""The network namespaces of a lab: starting the keeper process that holds them, and running commands in them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from palmette_lab.lab.errors import LabError
from palmette_lab.lab.helpers import helper
from palmette_lab.lab.network import LOGIN, LOGIN_ADDRESS
from palmette_lab.lab.processes import ProcessId

_COMMAND_TIMEOUT_S = 60

TMPDIR = "/dev/shm/tmp"  # noqa: S108 - private to each host
"""Temporary folder of a host: /dev/shm is the only part of the file system that is private to it."""


def check_can_build() -> None:
    """Raise LabError unless this process may and can make namespaces and links."""
    if os.geteuid() != 0:
        raise LabError(
            "root is needed for a lab that outlives its command; call it with sudo. `palmette-lab demo`, `bench"
            " --lab SPEC` and `run --lab SPEC` often work without"
        )
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            raise LabError(f"the program {tool} is not in PATH; install iproute2")


@dataclass
class Keeper:
    """The process that holds a lab: killing it ends everything that runs in the lab.

    `hosts` are the PIDs of the hosts' inits in the keeper's PID namespace. `hold` is the process whose stdin pipe, when
    closed, also ends the lab, until `detach` is called; None for a lab that another process started.
    """

    process: ProcessId
    hosts: Mapping[str, int]
    hold: subprocess.Popen[str] | None = None

    def detach(self) -> None:
        """Decouple the lab's lifetime from this process."""
        if self.hold is not None and self.hold.stdin is not None:
            self.hold.stdin.write("k")
            self.hold.stdin.close()
            self.hold = None

    def kill(self) -> None:
        """End the lab. Raises LabError when the kernel doesn't end it within ten seconds."""
        ended = self.process.kill()
        if self.hold is not None and self.hold.stdin is not None:
            with contextlib.suppress(OSError):
                self.hold.stdin.close()
            self.hold = None
        if not ended:
            raise LabError(f"process {self.process.pid}, which holds the lab, doesn't end; look at it and try again")

    def command(self, host: str | None, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` on `host`, or on the login host for None."""
        enter = str(helper("palmette-lab-enter"))
        inner = [] if host is None or host == LOGIN else [enter, str(self.hosts[host])]
        return [enter, str(self.process.pid), *inner, *argv]

    def run(self, host: str | None, argv: Sequence[str], text: str = "") -> str:
        """Run a short command on `host` with `text` as its input; returns its output. Raises LabError."""
        answer = subprocess.run(
            self.command(host, argv),
            input=text,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
        if answer.returncode != 0:
            complaint = answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"]
            raise LabError(f"'{' '.join(argv)}' failed on {host or LOGIN}: {explain(complaint[0])}")
        return answer.stdout

    def batch(self, host: str | None, tool: str, lines: Sequence[str]) -> None:
        """Run the lines in `ip` or `tc` on `host`. Raises LabError with the tool's first complaint."""
        self.run(host, [tool, "-batch", "-"], "\n".join(lines) + "\n")


def explain(complaint: str) -> str:
    """Return a tool's error message, with its meaning for the user where that isn't obvious."""
    if "qdisc kind is unknown" in complaint:
        return f"{complaint} (the kernel has no tbf: load the module sch_tbf)"
    if "Unknown device type" in complaint or "Operation not supported" in complaint:
        return f"{complaint} (the kernel needs the modules veth and bridge)"
    return complaint


def write_host_files(directory: Path, addresses: Mapping[str, str]) -> None:
    """Write the files that hosts see instead of the machine's: /etc/hosts, and a boot id per host."""
    everyone = {LOGIN: LOGIN_ADDRESS, **addresses}
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in everyone.items())]
    (directory / "etc_hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in everyone:
        (directory / f"boot_id.{name}").write_text(f"{uuid.uuid4()}\n", encoding="utf-8")


def start_keeper(directory: Path, hosts: Sequence[str], lifetime_s: float) -> Keeper:
    """Make the namespaces of the login host and of `hosts`. Raises LabError when the kernel refuses.

    The lab ends with this process until `detach` is called, and after `lifetime_s` seconds in any case.
    """
    program = helper("palmette-lab-keeper")
    hold = subprocess.Popen(
        [program, str(lifetime_s), directory, LOGIN, *hosts],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C goes to this process only, which then shuts the lab down in order
    )
    assert hold.stdout is not None and hold.stderr is not None and hold.stdin is not None
    process: ProcessId | None = None
    pids: dict[str, int] = {}
    try:
        ready = False
        for line in hold.stdout:
            words = line.split()
            if words[0] == "keeper":
                process = ProcessId.of(int(words[1]))
            elif words[0] == "host":
                pids[words[1]] = int(words[2])
            ready = ready or words[0] == "ready"
        complaint = " ".join(hold.stderr.read().split())
        status = hold.wait()
        hold.stdout.close()
        hold.stderr.close()
    except BaseException:
        hold.stdin.close()  # the keeper sees it and ends
        hold.wait()
        raise
    if not ready or process is None:
        hold.stdin.close()
        refused = "Operation not permitted" in complaint or "No space left" in complaint
        advice = "the kernel refuses namespaces here; try outside of this container" if refused else "see above"
        raise LabError(f"cannot make the hosts: {complaint or f'exit status {status}'}; {advice}")
    return Keeper(process, pids, hold)
