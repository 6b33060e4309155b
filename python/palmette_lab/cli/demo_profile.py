"""`palmette demo --profile`: a small program with known troubles is recorded, and its report shown."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from palmette.cli.common import CliError
from palmette.cli.report_recording import report
from palmette.measure.places import LocalPlace
from palmette.mpi.abi import abi_of_launcher, measuring_program, preload_library, record_library
from palmette.mpi.install import find
from palmette.record.reading import SUFFIX

RANKS = 4
TIMEOUT_S = 120.0


def _clear(calls: Path) -> None:
    """Remove the recording of an earlier demonstration, and nothing else. Raises CliError."""
    if not calls.exists() and not calls.is_symlink():
        return
    inside = [] if calls.is_symlink() or not calls.is_dir() else list(calls.iterdir())
    if calls.is_symlink() or not calls.is_dir() or any(path.suffix != SUFFIX or not path.is_file() for path in inside):
        raise CliError(f"{calls} is no recording of a demonstration; choose another folder with --folder")
    shutil.rmtree(calls)


def demonstrate(folder: Path, mpi: str, say: Callable[[str], None], *, as_json: bool) -> None:
    """Record the program in `folder`/demo-calls, write `folder`/profile.html and print the report. Raises CliError."""
    found = find(mpi)
    abi = abi_of_launcher(found.launcher)
    assert abi is not None, "every MPI that is found by name has a launcher of its own"
    heat = measuring_program("heat", abi, CliError)
    calls, page = folder / "demo-calls", folder / "profile.html"
    _clear(calls)
    line = f"palmette run --trace {shlex.quote(str(calls))} mpiexec -n {RANKS} heat"
    say(f"{line}        # rank 1 has most to do, rank 0 writes results\n")
    place = LocalPlace(RANKS, folder.absolute())
    environment = {
        "PALMETTE_TRACE": str(calls.absolute()),
        "LD_PRELOAD": f"{record_library(abi)}:{preload_library(abi)}",
    }
    command = place.command(found, ["localhost"] * RANKS, [str(heat)], environment)
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CliError(f"the program of the demonstration didn't run: {error}", status=1) from None
    if ended.returncode != 0:
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        raise CliError(f"the program of the demonstration ended with status {ended.returncode}: {last}", status=1)
    report(calls, page, None, None, "json" if as_json else "")
    say(f"\nOpen {page}. Your own program: palmette run --trace calls mpiexec -n 64 ./app")
