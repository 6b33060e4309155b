"""GPUs of this machine, and what palmette does with buffers in their memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette.mpi.install import Installation

_PROBE = Path(__file__).with_name("device_probe.py")
TIME_LIMIT_S = 30.0
"""A driver needs seconds for its first context on a machine with many devices."""


@dataclass(frozen=True)
class Devices:
    """What the drivers say; `ipc`: whether processes can open each other's device memory, None: not tried."""

    cuda: dict[str, Any] | None = None
    hip: dict[str, Any] | None = None
    nccl: dict[str, Any] | None = None
    ipc: dict[str, Any] | None = None
    mpis: dict[str, bool | None] = field(default_factory=dict)
    problem: str = ""

    @property
    def has_driver(self) -> bool:
        """Whether a driver is there, with devices or without."""
        return self.cuda is not None or self.hip is not None


def _ask(words: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what the probe prints; `problem` where it printed nothing."""
    # Another library's preload would come into the probe, too.
    env = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(_PROBE), *words],
            env=env,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"no answer within {TIME_LIMIT_S:.0f} s"}
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        ended = f"by signal {-done.returncode}" if done.returncode < 0 else f"with status {done.returncode}"
        return {"problem": f"the process that asked ended {ended}"}
    return found


def find_devices(environment: Mapping[str, str], mpis: Sequence[Installation] = ()) -> Devices:
    """Ask the drivers in processes of their own; the rest only where there is a device."""
    found = _ask([], environment)
    cuda = found.get("cuda")
    devices = bool(cuda and cuda["devices"])
    return Devices(
        cuda=cuda,
        hip=found.get("hip"),
        nccl=found.get("nccl"),
        ipc=_ask(["ipc"], environment) if devices else None,
        mpis={mpi.name: _ask_mpi(mpi, environment) for mpi in mpis} if devices else {},
        problem=str(found.get("problem", "")),
    )


def _ask_mpi(mpi: Installation, environment: Mapping[str, str]) -> bool | None:
    """Return what MPIX_Query_cuda_support says; None where it isn't known."""
    if mpi.library_dir is None:
        return None
    for name in ("libmpi.so.12", "libmpi.so.40"):
        if (path := mpi.library_dir / name).exists():
            answer = _ask(["mpi", str(path)], mpi.environment(environment)).get("cuda")
            return answer if isinstance(answer, bool) else None
    return None


def version_text(version: int) -> str:
    """Return 12040 as 12.4, as CUDA counts, and 60300000 as 6.3, as HIP does."""
    if version >= 10_000_000:
        return f"{version // 10_000_000}.{version // 100_000 % 100}"
    return f"{version // 1000}.{version % 1000 // 10}"


def nccl_text(version: int) -> str:
    """Return 22803 as 2.28.3, and 2708 as 2.7.8, as NCCL counts."""
    major, minor, patch = (version // 10000, version // 100 % 100, version % 100) if version >= 10000 else (
        version // 1000, version // 100 % 10, version % 100
    )  # fmt: skip
    return f"{major}.{minor}.{patch}"


def sentences(found: Devices) -> list[tuple[str, bool, str]]:
    """Return name, whether it is there, and a sentence; one where there is no GPU."""
    if not found.has_driver:
        why = f"drivers can't be asked: {found.problem}" if found.problem else "no driver of CUDA or HIP"
        return [("GPU", False, why)]
    lines = []
    for name, driver in (("CUDA", found.cuda), ("HIP", found.hip)):
        if driver is not None:
            lines.append((name, bool(driver["devices"]), _driver_text(driver)))
    if not (found.cuda and found.cuda["devices"]):
        return lines
    lines.append(("device memory", True, "any MPI's calls are served: staged in pinned memory of the host"))
    ipc = found.ipc or {}
    works = ipc.get("works") is True
    lines.append(("CUDA IPC", works, "processes of a node read each other's device memory" if works else _no_ipc(ipc)))
    nccl = found.nccl
    if nccl is None:
        lines.append(("NCCL", False, "no libnccl.so.2; PALMETTE_NCCL names one elsewhere"))
    else:
        known = "problem" not in nccl
        lines.append(
            ("NCCL", known, f"{nccl['library']}, {nccl_text(nccl['version'])}" if known else str(nccl["problem"]))
        )
    lines += [
        (f"{name}'s CUDA", bool(knows), _mpi_text(knows)) for name, knows in found.mpis.items()
    ]  # fmt: skip
    return lines


def _driver_text(driver: dict[str, Any]) -> str:
    kernel = f", kernel driver {driver['kernel_driver']}" if driver.get("kernel_driver") else ""
    version = f"driver for {version_text(driver['version'])}{kernel}"
    if "problem" in driver:
        return f"{version}: {driver['problem']}"
    if not driver["devices"]:
        return f"{version}: no device"
    names: dict[str, int] = {}
    for device in driver["devices"]:
        memory = f", {device['memory_bytes'] / 2**30:.0f} GiB" if device.get("memory_bytes") else ""
        capability = f", capability {device['capability']}" if device.get("capability") else ""
        names[device["name"] + memory + capability] = names.get(device["name"] + memory + capability, 0) + 1
    return "; ".join([*(f"{count} x {name}" for name, count in names.items()), version])


def _no_ipc(ipc: dict[str, Any]) -> str:
    return f"{ipc.get('problem', 'not tried')}: data of device memory goes through the host's"


def _mpi_text(knows: bool | None) -> str:
    if knows is None:
        return "it doesn't say whether it reads device memory (palmette doesn't need it)"
    if knows:
        return "it says that it reads device memory: new kinds of calls on it are left to it"
    return "it can't read device memory, says MPIX_Query_cuda_support (palmette doesn't need it)"
