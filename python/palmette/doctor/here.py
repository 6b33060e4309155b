"""`palmette doctor`: the MPIs, preload libraries and other prerequisites on this machine."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from palmette import _core, settings, settings_files
from palmette.mpi.abi import ABIS, LIBRARIES, MEANING, SONAMES, Abi, abis_of_launcher
from palmette.mpi.allocation import allocation
from palmette.mpi.elf import defines
from palmette.mpi.errors import RunError
from palmette.mpi.install import NAMES, Installation, MpiNotFoundError, find, find_all
from palmette.mpi.installed import usable
from palmette.mpi.launch.identify import LauncherKind, identify
from palmette.run.choices import table_mistake
from palmette.run.devices import Devices, find_devices, sentences
from palmette.run.node_memory import shared_memory, single_copy, xpmem
from palmette.run.sharp import find_sharp
from palmette.topology.file import TopologyError, load
from palmette.units import plural


@dataclass(frozen=True)
class FoundMpi:
    """An MPI by the name that `--mpi` takes. `problem` says why it can't be used; then the rest is empty."""

    name: str
    version: str = ""
    prefix: str = ""
    mpiexec: str = ""
    abis: tuple[Abi, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class FoundLauncher:
    """A launcher of PATH: the word that one types, and what `palmette run` takes it for."""

    word: str
    kind: LauncherKind
    version: str
    path: str


@dataclass(frozen=True)
class Check:
    """A prerequisite that is available or not, with a sentence about it."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Findings:
    """All that was found. `devices`: sentences on GPUs, `found_devices`: what they rest on. `settings`: those that
    aren't defaults, with their origin; `mistakes`: those that have no effect or an invalid value.
    """

    mpis: list[FoundMpi]
    launchers: list[FoundLauncher]
    preloads: list[Check]
    checks: list[Check]
    devices: list[Check]
    found_devices: Devices
    settings: list[Check]
    mistakes: list[str]

    @property
    def can_run(self) -> bool:
        """Whether `palmette run` can serve any program with the current settings."""
        return any(check.ok for check in self.preloads) and not self.mistakes

    def to_json(self) -> dict[str, object]:
        """Return everything as JSON values."""
        return {**asdict(self), "can_run": self.can_run, "verdict": self.verdict}

    @property
    def verdict(self) -> str:
        """What works here and what to do next, or what is missing first, as one sentence."""
        served = {abi for check, abi in zip(self.preloads, ABIS, strict=True) if check.ok}
        if not served:
            refused = next((check.detail for check in self.preloads if "install palmette" in check.detail), "")
            if refused:
                return f"not ready: {refused}"
            return "not ready: no preload library is built; `make build` in a checkout, or install the package again"
        if self.mistakes:
            wrong = "a setting is" if len(self.mistakes) == 1 else f"{len(self.mistakes)} settings are"
            return f"not ready: {wrong} wrong; `palmette settings` explains each"
        ready = [
            label
            for kind, label in LABELS.items()
            if any(NAMES[mpi.name] == kind and served & set(mpi.abis) for mpi in self.mpis if mpi.problem is None)
            or any(one.kind == kind and served & set(abis_of_launcher(kind)) for one in self.launchers)
        ]
        if not ready:
            return "no MPI is here: load its module, or put its mpiexec into PATH; then palmette doctor again"
        word = self.launchers[0].word if self.launchers else next(mpi.mpiexec for mpi in self.mpis if mpi.mpiexec)
        word = f"{word} run" if word == "flux" else word
        return f"ready for {', '.join(ready)}; next: palmette run --report {word} -n 4 ./app"


LABELS: dict[LauncherKind, str] = {
    "hydra": "MPICH",
    "prrte": "Open MPI",
    "intel_hydra": "Intel MPI",
    "srun": "programs under srun",
    "flux": "programs under flux run",
    "aprun": "programs under aprun",
    "pals": "programs under PALS",
}
"""What each kind of launcher starts."""
_WORDS = ("mpiexec", "mpirun", "srun", "mpiexec.hydra", "mpiexec.mpich", "mpiexec.openmpi", "prterun", "flux", "aprun")


def examine(environment: Mapping[str, str] | None = None, libraries: Path = LIBRARIES) -> Findings:
    """Check everything; nothing is changed. Launchers are called with `--version`; namespaces and contexts are
    made for a moment.
    """
    environment = os.environ if environment is None else environment
    found = find_devices({**os.environ, **environment}, find_all())
    files = settings_files.read_files(environment)
    in_force = settings_files.with_files(environment, files)
    return Findings(
        mpis=[_mpi(name) for name in NAMES],
        launchers=find_launchers(environment.get("PATH", os.environ.get("PATH", ""))),
        preloads=[_preload(abi, libraries) for abi in ABIS],
        checks=[
            *_job(environment),
            _topology(in_force),
            _hwloc(),
            Check("shared memory", *shared_memory()),
            Check("single copy", *single_copy()),
            Check("XPMEM", *xpmem()),
            _sharp(in_force),
        ],
        devices=[Check(*line) for line in sentences(found)],
        found_devices=found,
        settings=_settings(environment, files),
        mistakes=[*_mistakes(environment, in_force), *files.mistakes],
    )


def _job(environment: Mapping[str, str]) -> list[Check]:
    """Return the batch job that this is in, if it is in one."""
    found = allocation(environment)
    return [Check("job", not found.problem, found.sentence)] if found is not None else []


def find_launchers(path: str) -> list[FoundLauncher]:
    """Return the launchers of PATH, each file once."""
    found: dict[Path, FoundLauncher] = {}
    for word in _WORDS:
        place = shutil.which(word, path=path)
        if place is None or Path(place).resolve() in found:
            continue
        identified = identify(Path(place).absolute())
        if identified is not None:
            found[Path(place).resolve()] = FoundLauncher(word, identified.kind, identified.version, place)
    return list(found.values())


def _settings(environment: Mapping[str, str], files: settings_files.SettingsFiles) -> list[Check]:
    """Return what isn't a default, with where it comes from."""
    found = []
    for setting in settings.declared():
        said = files.values.get(setting.name)
        text = environment.get(setting.name)
        if text:
            found.append(Check(setting.name, True, f"{text} (environment)"))
        elif text is None and said is not None and said.text:
            same = said.text == said.where
            found.append(Check(setting.name, True, said.text if same else f"{said.text} ({said.where})"))
    return found


def _mpi(name: str) -> FoundMpi:
    try:
        found = find(name)
    except MpiNotFoundError as error:
        return FoundMpi(name, problem=str(error))
    return FoundMpi(name, found.version, str(found.prefix), str(found.mpiexec), _abis(found))


def _abis(found: Installation) -> tuple[Abi, ...]:
    """Return the ABIs for which the MPI has a library; its native one where the system's loader finds the library."""
    if found.library_dir is None:
        return ("ompi",) if found.name == "openmpi" else ("mpich",)
    return tuple(abi for abi, soname in SONAMES.items() if (found.library_dir / soname).exists())


def _preload(abi: Abi, libraries: Path) -> Check:
    path = libraries / f"libpalmette_{abi}.so"
    what = f"for {SONAMES[abi]}: {MEANING[abi]}"
    if not path.is_file():
        return Check(path.name, False, f"not built ({what})")
    try:
        whole = defines(path, "MPI_Gather")
    except OSError as error:
        return Check(path.name, False, f"can't be read: {error.strerror}")
    if not whole:
        return Check(path.name, False, "damaged; build it again")
    try:
        used = usable(path)
    except RunError as error:
        return Check(path.name, False, str(error))
    return Check(path.name, True, what if used == path else f"{what}; preloaded as {used}")


def _topology(environment: Mapping[str, str]) -> Check:
    name = "topology"
    path = environment.get("PALMETTE_TOPOLOGY", "")
    if not path:
        return Check(name, True, "no PALMETTE_TOPOLOGY: levels come from the MPI and the kernel")
    try:
        load(path)
        machine = _core.Machine.from_file(path)
    except (TopologyError, _core.Error) as error:
        return Check(name, False, str(error))
    host = socket.gethostname()
    refresh = f"`palmette discover --refresh {shlex.quote(str(path))}`"
    known = (
        "this host is in it"
        if machine.find_host(host) is not None
        else f"this host, {host}, is not in it: {refresh} reads its sources again"
    )
    levels = ", ".join(machine.levels)
    return Check(name, True, f"{path}: {plural(len(machine.hosts), 'host')}, levels {levels}; {known}")


def _hwloc() -> Check:
    """Load hwloc as `palmette discover` does."""
    library = "libhwloc.so.15"
    try:
        version = int(ctypes.CDLL(library).hwloc_get_api_version())
    except (OSError, AttributeError):
        return Check("hwloc", False, f"no {library}; the inside of a node is read from /sys instead")
    return Check("hwloc", True, f"{library}, API {version >> 16}.{(version >> 8) & 0xFF}.{version & 0xFF}")


def _sharp(environment: Mapping[str, str]) -> Check:
    """Whether switches will reduce, or the first thing that is missing."""
    found = find_sharp(environment, environment.get("PALMETTE_SHARP", ""))
    path = environment.get("PALMETTE_TOPOLOGY", "")
    if not found.usable or not path:
        return Check("SHARP", False, found.detail if not found.usable else f"{found.detail}; but no PALMETTE_TOPOLOGY")
    try:
        machine = _core.Machine.from_file(path).with_reducing_switches().to_json()
    except _core.Error as error:
        return Check("SHARP", False, str(error))
    if not _has_switches(machine["tree"]):
        return Check("SHARP", False, f"{found.detail}; but no switch of the topology can reduce")
    return Check("SHARP", True, f"{found.detail}, for the switches of {path} that can reduce")


def _has_switches(node: Mapping[str, Any]) -> bool:
    here = any(one.get("kind") == "sharp" for one in node.get("aggregators", []))
    return here or any(_has_switches(child) for child in node.get("children", []))


def _mistakes(environment: Mapping[str, str], in_force: Mapping[str, str]) -> list[str]:
    former = settings.former()
    found = [
        f"{name} {former[name]}; unset it"
        if name in former
        else f"{name} is set, but no setting has that name; correct or unset it"
        for name in settings.unknown(environment)
    ]
    for setting in settings.declared():
        try:
            setting.check(environment.get(setting.name, ""))
        except settings.SettingError as error:
            found.append(f"{error}; correct or unset it")
    if mistake := table_mistake(in_force.get("PALMETTE_TABLE", "")):
        found.append(mistake)
    return found
