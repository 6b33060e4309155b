"""SimGrid on this machine: where smpirun and the benchmark program are, and how a simulated job is started."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import palmette
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.parameters import Parameters

VERSION = "3.32"
"""The version that times are pinned to: another one gives others, by about 1 % (docs/decisions/0011-simgrid.md)."""
PROGRAM = Path(palmette.__path__[0]) / "bin" / "simbench.smpi"
ALONE = PROGRAM.with_name("simbench-alone.smpi")
"""PROGRAM without palmette, for rivals: SimGrid copies the program for each rank, and this one is small."""
START = PROGRAM.with_name("simbench-start.so")
"""Preloaded into the simulator: the start of a job without p² messages (src/programs/simbench/start.cpp)."""
_MAKE = "`make simulate` in palmette's source installs SimGrid and builds the program (Debian 12, as root)"
_PALMETTE = {
    "PALMETTE_SHARED": "0",
    "PALMETTE_COMPARE": "0",
    "PALMETTE_WAIT": "mpi",
    "PALMETTE_ENABLE": "1",
    "PALMETTE_SERVE_AFTER": "0",
}
"""Properties of the real machine don't apply to the simulated one, and each simulation is about one call."""
KILLED = "killed, by a user or for lack of memory"
"""A failure that is no property of the simulation, and not cached."""
UNKNOWN = "SimGrid has no such selector or algorithm for it"
_running: set[int] = set()
_stopped = threading.Event()


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """How a simulated job ended."""

    output: str
    errors: str
    trouble: str
    """Empty: it ended well. Otherwise what happened."""


def find_smpirun() -> str:
    """Return the path of smpirun. Raises SimulateError when SimGrid or the benchmark program is missing."""
    found = shutil.which("smpirun")
    if found is None:
        raise SimulateError(f"SimGrid {VERSION} isn't installed: there is no smpirun; {_MAKE}")
    for part in (PROGRAM, ALONE, START):
        if not part.is_file():
            raise SimulateError(f"the simulated benchmark isn't built: there is no {part.name}; {_MAKE}")
    return found


@cache
def version(smpirun: str) -> str:
    """Return SimGrid's version, like `3.32`. Raises SimulateError when it can't be read."""
    text = subprocess.run([smpirun, "-version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"version (\d+\.\d+)", text)
    if match is None:
        raise SimulateError(f"{smpirun} -version prints no version; reinstall SimGrid {VERSION}")
    return match[1]


def configuration(parameters: Parameters, selector: dict[str, str]) -> list[str]:
    """Return SimGrid's settings: the links' plain values, without the simulator's calibration of another cluster."""
    eager = f"{parameters.eager_bytes:.0f}"
    settings = {
        "smpi/privatization": "dlopen",
        "smpi/simulate-computation": "no",
        "smpi/host-speed": "10Gf",
        "smpi/bw-factor": "0:1",
        "smpi/lat-factor": "0:1",
        "network/weight-S": "0",
        "network/crosstraffic": "0",
        "smpi/async-small-thresh": eager,
        "smpi/send-is-detached-thresh": eager,
        "smpi/test": "0",
        "smpi/iprobe": "1e-7",
        "smpi/grow-injected-times": "no",
        "smpi/wtime": "0",
        "contexts/stack-size": "256",
        "smpi/shared-malloc": "global",
        "smpi/shared-malloc-blocksize": str(1 << 24),
        **selector,
    }
    return ["--log=root.thres:critical", *(f"--cfg={name}:{value}" for name, value in settings.items())]


def start(
    smpirun: str,
    folder: Path,
    ranks: int,
    program: Path,
    settings: list[str],
    arguments: list[str],
    environment: dict[str, str],
    cpu_limit_s: int,
) -> SimulationResult:
    """Run PROGRAM or ALONE on `folder`'s platform.xml and hosts; it ends after `cpu_limit_s` of CPU at the latest."""
    command = [smpirun, "-np", str(ranks), "-platform", "platform.xml", "-hostfile", "hosts", *settings]
    command += [str(program), *arguments]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PALMETTE_")}
    preloaded = ":".join(filter(None, [str(START), own.get("LD_PRELOAD", "")]))

    def limit() -> None:
        # A process group, to be killed as a whole. Not a session: Linux schedules sessions fairly, not jobs.
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit_s, cpu_limit_s + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with subprocess.Popen(
        command,
        cwd=folder,
        # The simulator's copies of the program, one a rank, are removed with the folder.
        env=own | {"TMPDIR": str(folder), "LD_PRELOAD": preloaded} | _PALMETTE | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        preexec_fn=limit,
    ) as process:
        _running.add(process.pid)
        try:
            if _stopped.is_set():
                # Started while the others were being stopped.
                os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate(timeout=20 * cpu_limit_s)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return SimulationResult(output, errors, f"did not end within {20 * cpu_limit_s} s")
        finally:
            _running.discard(process.pid)
    return SimulationResult(output, errors, _trouble(process.returncode, output + errors, cpu_limit_s))


@contextlib.contextmanager
def ended_with() -> Iterator[None]:
    """End the simulations that other threads of this process run when the block ends with an error or an interrupt."""
    _stopped.clear()
    try:
        yield
    except BaseException:
        _stop_all()
        raise


def _stop_all() -> None:
    _stopped.set()
    for group in list(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _trouble(status: int, text: str, cpu_limit_s: int) -> str:
    if status == 0:
        return ""
    number = -status if status < 0 else status - 128
    if "has no algorithm" in text:
        known = re.search(r"Valid algorithms: ([^\n]*?)\.?\n", text)
        return UNKNOWN + (f": there are {known[1]}" if known else "")
    if "eadlock" in text:
        return "deadlock"
    if number == signal.SIGKILL:
        return KILLED
    if number == signal.SIGXCPU:
        return f"over its {cpu_limit_s} s of CPU"
    if status > 128 or status < 0:
        name = signal.Signals(number).name if number in list(signal.Signals) else str(number)
        # Some patterns of many short messages break SimGrid 3.32's solver (docs/method/simulating.md).
        solver = number == signal.SIGABRT and "MaxMin::do_solve" in text
        return f"SimGrid's solver failed ({name})" if solver else f"the simulator crashed ({name})"
    match = re.search(r"xbt_assert|Segmentation fault|Access violation|simbench: .*|Unknown.*|no such.*", text)
    return f"failed ({match[0].strip()[:60]})" if match else f"failed (status {status})"
