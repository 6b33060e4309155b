"""Checks and measures palmette on a node of many cores, or with GPUs. It needs Python 3.10 or newer there, no network,
and nothing else. Long because it is the one file that is carried there.

Usage: node_check.py pack OUT.tar [--without-wheels]      on a machine with a built palmette (and a network, for mpi4py)
       node_check.py run [OPTION]...                      in the unpacked folder, or in the repository
         --minutes M     time for all steps, 10
         --output DIR    results.json and results.md, node-check
         --steps A,B     these steps only: machine ipc costs kernels collectives crossover arrays nccl one-node
         --ranks N,N     of the collectives, 2,4,8,16
         --fake          on the test driver of tests/fakes, without a GPU
         --short         one size and kind of each

Each step runs in processes of its own with a time limit; one that fails or can't be done says why, and the next one
runs. results.json is written after each step, so that an interrupted run leaves what it has.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import math
import os
import platform
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MOST_BYTES = 60_000_000
MPIS = {"mpich": "mpich", "openmpi": "ompi"}
"""Name and ABI."""
KINDS = ("cuda", "managed", "pinned", "pool", "mapped")
"""Kinds of memory: choices of collbench's --memory."""
MOVES = "allreduce,bcast,allgather,alltoall,reduce_scatter_block"
K = 1024

Found = dict[str, Any]


class CannotError(Exception):
    """Why a step can't be done here."""


# --- files ---


@dataclass(frozen=True)
class Files:
    """Where things are: in the unpacked folder, or in the repository."""

    package: Path
    mpis: Path
    fakes: Path
    site: Path
    ptx: Path | None

    def program(self, mpi: str) -> Path:
        """Return the benchmark for an MPI."""
        return self.package / "bin" / f"collbench.{MPIS[mpi]}"

    def preload(self, mpi: str) -> Path:
        """Return the preload library for an MPI."""
        return self.package / "lib" / f"libpalmette_{MPIS[mpi]}.so"

    def probe(self) -> Path:
        """Return the program that asks drivers."""
        return self.package / "run" / "device_probe.py"


def files() -> Files:
    """Return what lies beside this script."""
    if (HERE / "palmette").is_dir():
        ptx = HERE / "kernels.ptx"
        return Files(HERE / "palmette", HERE / "mpi", HERE / "fakes", HERE / "site", ptx if ptx.is_file() else None)
    root = HERE.parent
    build = root / "build" / "release"
    return Files(root / "python" / "palmette", root / ".mpi", build / "tests" / "fakes", root / "no-site", None)


# --- packing ---


def pack(out: Path, *, wheels: bool) -> None:
    """Write the archive."""
    root = HERE.parent
    have = files()
    missing = [str(path) for mpi in MPIS for path in (have.program(mpi), have.preload(mpi)) if not path.is_file()]
    if missing:
        raise CannotError(f"not built: {', '.join(missing)}; run tools/build.sh release")
    with tarfile.open(out, "w:gz", compresslevel=6) as archive:

        def add(path: Path, name: str) -> None:
            archive.add(path, f"node-check/{name}", recursive=False)

        add(HERE / "node_check.py", "node_check.py")
        for folder, name in ((have.package, "palmette"), (have.fakes, "fakes")):
            for path in _wanted(folder):
                add(path, f"{name}/{path.relative_to(folder)}")
        for mpi in MPIS:
            for path in _wanted(have.mpis / mpi):
                add(path, f"mpi/{mpi}/{path.relative_to(have.mpis / mpi)}")
        for name, data in _extras(root, wheels=wheels):
            entry = tarfile.TarInfo(f"node-check/{name}")
            entry.size = len(data)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(data))
    size = out.stat().st_size
    print(f"{out}: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        raise CannotError(f"{out} has {size / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f}")


def _wanted(folder: Path) -> Iterator[Path]:
    """Yield the files and links that are needed at run time."""
    left_out = {"__pycache__", "include", "python3.11", "CMakeFiles", "pages", "templates"}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_dir() or left_out & set(inside.parts) or path.suffix in (".a", ".la", ".pyi", ".cmake", ".html"):
            continue
        needed = path.name.startswith(("collbench.", "libpalmette_yield_sleep"))
        if inside.parts[0] == "bin" and folder.name == "palmette" and not needed:
            continue
        if inside.parts[0] == "lib" and folder.name == "palmette" and "record" in path.name:
            continue
        yield path


def _extras(root: Path, *, wheels: bool) -> Iterator[tuple[str, bytes]]:
    commit = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout
    yield "commit.txt", (commit.strip() or "unknown").encode()
    try:
        yield "kernels.ptx", _ptx(root).encode()
    except CannotError as error:
        print(f"no kernels.ptx: {error}", file=sys.stderr)
    if not wheels:
        return
    with tempfile.TemporaryDirectory() as folder:
        target = ["--python-version", "3.12", "--platform", "manylinux2014_x86_64", "--only-binary", ":all:"]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *target, "-d", folder, "mpi4py"],
            check=False,
            timeout=300,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            print(f"no mpi4py: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        for wheel in Path(folder).glob("*.whl"):
            with zipfile.ZipFile(wheel) as packed:
                for name in packed.namelist():
                    if not name.endswith("/"):
                        yield f"site/{name}", packed.read(name)


_PTX_MAIN = """
#include <cstdio>
#include "palmette/device/device_kernels.hpp"
int main() { std::fputs(palmette::device::kernels_ptx().c_str(), stdout); }
"""


def _ptx(root: Path) -> str:
    """Return the kernels' text, as the library has it."""
    libraries = [root / "build" / "release" / f"libpalmette_{name}.a" for name in ("device", "kernels", "base")]
    compiler = shutil.which("c++")
    if compiler is None or not all(path.is_file() for path in libraries):
        raise CannotError("no C++ compiler, or palmette's libraries aren't built")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "main.cpp"
        source.write_text(_PTX_MAIN, encoding="ascii")
        words = ["-std=c++20", "-I", str(root / "src"), str(source), *map(str, libraries), "-ldl", "-o"]
        done = subprocess.run(
            [compiler, *words, f"{folder}/main"], check=False, capture_output=True, text=True, timeout=120
        )
        if done.returncode != 0:
            raise CannotError(f"the kernels' text can't be taken out: {done.stderr.strip().splitlines()[-1]}")
        return subprocess.run([f"{folder}/main"], check=True, capture_output=True, text=True, timeout=30).stdout


# --- processes ---


@dataclass
class Context:
    """What all steps know."""

    files: Files
    fake: bool
    short: bool
    ranks: tuple[int, ...]
    deadline_s: float
    folder: Path
    counter: list[int] = field(default_factory=lambda: [0])

    @property
    def cores(self) -> int:
        """Cores that this process may use."""
        return len(os.sched_getaffinity(0))

    def crowded(self, ranks: int) -> bool:
        """Whether ranks must give way to each other: tests run beside others."""
        return self.fake or ranks > self.cores

    def left_s(self) -> float:
        """Time until the end of the run."""
        return self.deadline_s - time.monotonic()

    def environment(self) -> dict[str, str]:
        """Return what child processes get: nothing of palmette's, and the test driver where it is asked for."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PALMETTE_", "LD_PRELOAD"))}
        if self.fake:
            kept["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(self.files.fakes), kept.get("LD_LIBRARY_PATH", "")]))
            if "PALMETTE_FAKE_CUDA" in os.environ:
                kept["PALMETTE_FAKE_CUDA"] = os.environ["PALMETTE_FAKE_CUDA"]
        return kept

    def file(self, suffix: str) -> Path:
        """Return a new file's path."""
        self.counter[0] += 1
        return self.folder / f"{self.counter[0]}{suffix}"


@dataclass(frozen=True)
class ProcessResult:
    """How a process ended. `status` None: it had to be ended."""

    status: int | None
    out: str
    err: str

    def why(self) -> str:
        """Return one line on its end."""
        if self.status is None:
            return "ended at its time limit"
        lines = [line.strip() for line in (self.err + "\n" + self.out).splitlines() if line.strip()]
        ours = [line for name in ("collbench:", "palmette:") for line in lines if line.startswith(name)]
        return f"status {self.status}: {next(iter([*ours, *lines[-1:]]), 'it said nothing')}"[:300]


def execute(context: Context, words: Sequence[str], env: dict[str, str], limit_s: float) -> ProcessResult:
    """Run a command with all that it starts in a session of its own, which ends with it."""
    limit_s = min(limit_s, context.left_s())
    if limit_s < 1:
        raise CannotError("no time is left")
    # Output goes to files: what outlives the command must not keep a pipe open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            ["sh", "-c", 'ulimit -c 0; exec "$0" "$@"', *words],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status: int | None = None
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(5)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return ProcessResult(status, *texts)


def launch(
    context: Context,
    mpi: str,
    ranks: int,
    words: Sequence[str],
    *,
    limit_s: float,
    preload: bool = True,
    settings: dict[str, str] | None = None,
) -> ProcessResult:
    """Run a program under an MPI that was brought along."""
    prefix = context.files.mpis / mpi
    if not (prefix / "bin" / "mpiexec").exists():
        raise CannotError(f"{mpi} isn't in {context.files.mpis}")
    env = context.environment()
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(prefix / "lib"), env.get("LD_LIBRARY_PATH", "")]))
    own = dict(settings or {})
    if preload:
        own |= {"LD_PRELOAD": str(context.files.preload(mpi)), "PALMETTE_SERVE_AFTER": "0"}
    crowded = context.crowded(ranks)
    sleeper = context.files.package / "bin" / "libpalmette_yield_sleep.so"
    if crowded and mpi == "openmpi" and sleeper.is_file():
        own["LD_PRELOAD"] = " ".join(filter(None, [str(sleeper), own.get("LD_PRELOAD", "")]))
    if mpi == "mpich":
        if crowded:
            own |= {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
        options = [word for name, value in own.items() for word in ("-genv", name, value)]
    else:
        env |= {"OPAL_PREFIX": str(prefix), "PRTE_PREFIX": str(prefix), "PMIX_PREFIX": str(prefix)}
        env |= {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm"}
        options = ["--oversubscribe", "--bind-to", "none"] + (["--mca", "mpi_yield_when_idle", "1"] if crowded else [])
        options += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        options += [word for name, value in own.items() for word in ("-x", f"{name}={value}")]
    return execute(context, [str(prefix / "bin" / "mpiexec"), *options, "-n", str(ranks), *words], env, limit_s)


def collbench(
    context: Context,
    mpi: str,
    ranks: int,
    arguments: Sequence[str],
    *,
    limit_s: float,
    preload: bool = True,
    settings: dict[str, str] | None = None,
    partial: bool = False,
) -> tuple[list[Found], Found | None]:
    """Run the benchmark; return its events, and palmette's report. Raises CannotError where it failed; with `partial`
    only if there is no cell: what failed is then the last event, `problem`.
    """
    output, report = context.file(".jsonl"), context.file(".json")
    wait = "sleep" if context.crowded(ranks) else "spin"
    words = [str(context.files.program(mpi)), "--wait", wait, *arguments, "--output", str(output)]
    own = {"PALMETTE_REPORT": str(report), **(settings or {})}
    done = launch(context, mpi, ranks, words, limit_s=limit_s, preload=preload, settings=own)
    events = [json.loads(line) for line in _lines(output)]
    if done.status not in (0, 1) or not events or events[-1].get("event") != "end":
        cells = [event for event in events if event["event"] == "cell"]
        last = f" after {cells[-1]['collective']} of {cells[-1]['size_bytes']} B" if cells else ""
        if not (partial and cells):
            raise CannotError(f"{done.why()}{last}")
        events.append({"event": "problem", "text": f"{done.why()}{last}"})
    return events, json.loads("".join(_lines(report))) if report.is_file() else None


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]


def _json_of(context: Context, words: Sequence[str], limit_s: float) -> Found:
    """Run a Python program that prints a JSON object."""
    done = execute(context, [sys.executable, "-I", *words], context.environment(), limit_s)
    try:
        found: Found = json.loads(done.out)
    except ValueError:
        raise CannotError(done.why()) from None
    return found


# --- steps ---


def step_machine(context: Context) -> Found:
    """Machine, drivers, versions."""
    found: Found = {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "cores": context.cores,
        "cpu": _first("/proc/cpuinfo", "model name"),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "ptrace_scope": _text("/proc/sys/kernel/yama/ptrace_scope"),
        "container": [path for path in ("/.dockerenv", "/run/.containerenv") if Path(path).exists()],
        "locked_memory": _first("/proc/self/limits", "Max locked memory"),
        "commit": _text(str(HERE / "commit.txt")),
        "fake": context.fake,
    }
    found |= _json_of(context, [str(context.files.probe())], 60)
    smi = shutil.which("nvidia-smi")
    if smi and not context.fake:
        done = execute(context, [smi, "topo", "-m"], context.environment(), 30)
        found["nvidia_smi_topo"] = done.out.splitlines()[:20]
    for name in ("cupy", "torch", "mpi4py", "numpy"):
        done = execute(
            context,
            [sys.executable, "-c", f"import {name}; print({name}.__version__)"],
            _with_site(context),
            60,
        )
        found[name] = done.out.strip() if done.status == 0 else None
    return found


def step_ipc(context: Context) -> Found:
    """Whether a process can open another one's device memory."""
    return _json_of(context, [str(context.files.probe()), "ipc"], 60)


def step_costs(context: Context) -> Found:
    """What looking at a call's buffers costs; nanoseconds a call on two ranks."""
    table = context.file(".json")
    rows = [{"function": name, "algorithm": "mpi"} for name in ("barrier", "bcast", "allreduce")]
    table.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    rounds = "2" if context.short else "30"
    found: Found = {"rows": []}
    for mpi in list(MPIS)[: 1 if context.short else 2]:
        for memory in ("host", "cuda"):
            events, _ = collbench(
                context,
                mpi,
                2,
                ["--pass-through", "--memory", memory, "--min-iterations", rounds, "--max-iterations", rounds],
                limit_s=60,
                settings={"PALMETTE_TABLE": str(table)},
            )
            for event in events:
                if event["event"] == "pass_through":
                    pairs = list(zip(event["alone_ns"], event["palmette_ns"], strict=True))
                    found["rows"].append(
                        {
                            "mpi": mpi,
                            "driver": memory != "host",
                            "call": f"{event['function']}, {event['where']}",
                            "alone_ns": statistics.median(alone for alone, _ in pairs),
                            "more_ns": statistics.median(ours - alone for alone, ours in pairs),
                        }
                    )
    return found


def step_kernels(context: Context) -> Found:
    """Whether the reduction kernels load, and give the host's bits."""
    ptx = context.files.ptx
    if ptx is None and (HERE / "palmette").is_dir():
        raise CannotError("no kernels.ptx was packed")
    if ptx is None:
        ptx = context.file(".ptx")
        ptx.write_text(_ptx(HERE.parent), encoding="ascii")
    if not ptx.read_text(encoding="ascii").strip():
        raise CannotError("this palmette has no kernels")
    return _json_of(context, [str(Path(__file__).resolve()), "kernels", str(ptx)], 120)


def step_collectives(context: Context) -> Found:
    """All collectives on device memory, with results verified."""
    found: Found = {"runs": []}
    kinds = ("cuda", "mapped") if context.short else KINDS
    sizes = "4096" if context.short else "64,4096,65536,1048576"
    names = MOVES if context.short else ",".join(_names(context))
    for ranks in context.ranks:
        for mpi in list(MPIS)[: 1 if context.short else 2]:
            for kind in kinds:
                few = sizes if ranks <= 4 else "4096,65536"
                what = ["--collectives", names, "--sizes", few, "--memory", kind, "--copies"]
                once = ["--min-iterations", "1", "--max-iterations", "1", "--warmup", "0", "--seconds", "0"]
                row: Found = {"mpi": mpi, "ranks": ranks, "memory": kind}
                try:
                    events, report = collbench(context, mpi, ranks, [*what, *once], limit_s=90)
                    cells = [event for event in events if event["event"] == "cell"]
                    row["cells"] = len(cells)
                    row["wrong"] = [
                        f"{cell['collective']} {cell['size_bytes']}"
                        for cell in cells
                        if cell["wrong_ranks"]["palmette"] or cell["wrong_ranks"]["alone"]
                    ]
                    row["device"] = (report or {}).get("device")
                except CannotError as error:
                    row["problem"] = str(error)
                found["runs"].append(row)
    return found


def _names(context: Context) -> list[str]:
    done = launch(context, "mpich", 1, [str(context.files.program("mpich")), "--list"], limit_s=30, preload=False)
    if done.status != 0:
        raise CannotError(done.why())
    return [name for name in done.out.split() if "barrier" not in name]


def step_crossover(context: Context) -> Found:
    """Staging against IPC, and the program's own copies, by size: medians in seconds."""
    sizes = [65536] if context.short else [1 << power for power in range(12, 25, 2)]
    seconds = "0.02" if context.short else "0.3"
    found: Found = {"rows": [], "crossover": {}}
    ranks = 2 if context.short else 4
    times: dict[str, dict[tuple[str, int], float]] = {}
    for path in ("staging", "ipc"):
        events, report = collbench(
            context,
            "mpich",
            ranks,
            [
                *("--collectives", MOVES, "--sizes", ",".join(map(str, sizes)), "--memory", "cuda", "--copies"),
                *("--seconds", seconds, "--min-iterations", "3", "--max-iterations", "200", "--limit", "2"),
            ],
            limit_s=180,
            settings={"PALMETTE_DEVICE": path, "PALMETTE_COMPARE": "0"},
        )
        found[path] = {"device": (report or {}).get("device"), "notes": (report or {}).get("notes")}
        cells = {(event["collective"], event["size_bytes"]): event for event in events if event["event"] == "cell"}
        times[path] = {key: statistics.median(cell["palmette_s"]) for key, cell in cells.items()}
        times[f"{path} alone"] = {key: statistics.median(cell["alone_s"]) for key, cell in cells.items()}
    # What the report says, since a setting that palmette can't follow is no error.
    calls = ((found["ipc"]["device"] or {}).get("calls")) or []
    taken = {call["function"] for call in calls if call["in_place"] > 0}
    for key in times["staging"]:
        collective, size = key
        found["rows"].append(
            {
                "collective": collective,
                "size_bytes": size,
                "ranks": ranks,
                "own_copies_s": times["staging alone"][key],
                "staging_s": times["staging"][key],
                "ipc_s": times["ipc"][key] if collective in taken else None,
            }
        )
    for collective in MOVES.split(","):
        better = [
            row["size_bytes"]
            for row in found["rows"]
            if row["collective"] == collective and row["ipc_s"] is not None and row["ipc_s"] < row["staging_s"]
        ]
        found["crossover"][collective] = min(better) if better else None
    return found


_ARRAYS = """
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
if sys.argv[1] == "cupy":
    import cupy as xp
    def make(n): return xp.arange(n, dtype=xp.float32) + comm.rank
    def synchronize(): xp.cuda.get_current_stream().synchronize()
    def total(x): return float(x.sum())
else:
    import torch
    def make(n): return torch.arange(n, dtype=torch.float32, device="cuda") + comm.rank
    def synchronize(): torch.cuda.synchronize()
    def total(x): return float(x.sum())
for n in (16, 4096, 1 << 20):
    send, recv = make(n), make(n)
    synchronize()
    comm.Allreduce(send, recv)
    expected = total(make(n)) * comm.size + n * (comm.size * (comm.size - 1) / 2 - comm.rank * comm.size)
    assert abs(total(recv) - expected) <= 1e-3 * abs(expected), (n, total(recv), expected)
    comm.Bcast(send, root=0)
    assert abs(total(send) - (total(make(n)) - comm.rank * n)) <= 1e-3 * n * n, n
print("right", flush=True)
"""


def step_arrays(context: Context) -> Found:
    """Arrays of CuPy and PyTorch through mpi4py."""
    script = context.file(".py")
    script.write_text(_ARRAYS, encoding="ascii")
    found: Found = {}
    for library in ("cupy", "torch"):
        there = execute(context, [sys.executable, "-c", f"import {library}, mpi4py"], _with_site(context), 60)
        if there.status != 0:
            found[library] = f"not there: {there.why()}"
            continue
        for mpi in MPIS:
            site = {"PYTHONPATH": str(context.files.site), "MPI4PY_LIBMPI": str(_library(context, mpi))}
            done = launch(context, mpi, 2, [sys.executable, str(script), library], limit_s=120, settings=site)
            found[f"{library}, {mpi}"] = "right" if done.out.count("right") == 2 else done.why()
    return found


def _library(context: Context, mpi: str) -> Path:
    return context.files.mpis / mpi / "lib" / {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}[mpi]


def _with_site(context: Context) -> dict[str, str]:
    env = context.environment()
    if context.files.site.is_dir():
        env["PYTHONPATH"] = ":".join(filter(None, [str(context.files.site), env.get("PYTHONPATH", "")]))
    return env


def step_nccl(context: Context) -> Found:
    """NCCL by itself with one rank, and under palmette with several where its version allows one device for them."""
    found = _json_of(context, [str(Path(__file__).resolve()), "nccl"], 120)
    version = int(found.get("version", 0))
    runs: list[Found] = []
    found["runs"] = runs
    devices = int(found.get("devices", 1))
    several = version >= 23000 or devices > 1
    if not several:
        found["several"] = f"version {version} allows one rank a device, and there is {devices}"
        return found
    for ranks in (2, 4):
        if ranks > devices and version < 23000:
            continue
        row: Found = {"ranks": ranks}
        try:
            events, report = collbench(
                context,
                "mpich",
                ranks,
                [
                    *("--collectives", "allreduce,bcast,allgather,alltoall", "--memory", "cuda", "--copies"),
                    *("--sizes", "1048576,16777216", "--seconds", "0.3", "--max-iterations", "50", "--limit", "3"),
                ],
                limit_s=120,
                settings={"PALMETTE_DEVICE": "nccl", "NCCL_MULTI_RANK_GPU_ENABLE": "1", "PALMETTE_COMPARE": "0"},
            )
            row["cells"] = [
                {
                    "collective": event["collective"],
                    "size_bytes": event["size_bytes"],
                    "wrong": event["wrong_ranks"]["palmette"],
                    "own_copies_s": statistics.median(event["alone_s"]),
                    "palmette_s": statistics.median(event["palmette_s"]),
                }
                for event in events
                if event["event"] == "cell"
            ]
            row["device"] = (report or {}).get("device")
            row["notes"] = (report or {}).get("notes")
        except CannotError as error:
            row["problem"] = str(error)
        runs.append(row)
    return found


def step_one_node(context: Context) -> Found:
    """Collectives on host memory, with 2, 4, 8 ... ranks up to the cores: results, and times alone and with palmette.

    The medians of each cell are kept with the number of pairs. Jobs share the time that is left; those with most ranks
    come first, for few ranks have been measured elsewhere.
    """
    counts = [1 << exponent for exponent in range(1, 9) if 1 << exponent <= context.cores]
    counts += [context.cores] * (context.cores > 2 and context.cores not in counts)
    sizes = "64,65536" if context.short else "8,64,512,4096,32768,262144,1048576,4194304"
    seconds = "0.01" if context.short else "0.1"
    names = "allreduce,bcast" if context.short else ",".join(n for n in _names(context) if n[0] != "i")
    mpis = list(MPIS)[: 1 if context.short else 2]
    jobs = [(ranks, mpi) for ranks in sorted(counts or [2], reverse=True) for mpi in mpis]
    found: Found = {"rows": []}
    for number, (ranks, mpi) in enumerate(jobs):
        row: Found = {"mpi": mpi, "ranks": ranks, "cells": [], "wrong": []}
        try:
            arguments = ["--collectives", names, "--sizes", sizes, "--seconds", seconds, "--limit", "1"]
            limit_s = max(60.0, context.left_s() / (len(jobs) - number))
            events, _ = collbench(context, mpi, ranks, arguments, limit_s=limit_s, partial=True)
            if events[-1]["event"] == "problem":
                row["problem"] = events[-1]["text"]
            speeds: dict[str, list[float]] = {}
            for event in (event for event in events if event["event"] == "cell"):
                alone, ours = (statistics.median(event[name]) for name in ("alone_s", "palmette_s"))
                name, size = event["collective"], event["size_bytes"]
                cell = {"collective": name, "size_bytes": size, "alone_s": alone, "palmette_s": ours}
                row["cells"].append({**cell, "pairs": len(event["alone_s"])})
                row["wrong"] += [f"{name} {size} {which}" for which, ranks_ in event["wrong_ranks"].items() if ranks_]
                speeds.setdefault(name, []).append(alone / ours)
            row["speeds"] = {name: _geometric(values) for name, values in speeds.items()}
            if speeds:
                row["mean"] = _geometric([value for values in speeds.values() for value in values])
        except CannotError as error:
            row["problem"] = str(error)
        found["rows"].append(row)
    return found


def _geometric(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _first(path: str, name: str) -> str | None:
    for line in (_text(path) or "").splitlines():
        if line.startswith(name):
            return line.removeprefix(name).strip(" :\t")
    return None


STEPS: dict[str, Callable[[Context], Found]] = {
    "machine": step_machine,
    "ipc": step_ipc,
    "costs": step_costs,
    "kernels": step_kernels,
    "collectives": step_collectives,
    "crossover": step_crossover,
    "arrays": step_arrays,
    "nccl": step_nccl,
    "one-node": step_one_node,
}


# --- in child processes: the driver called by itself ---


class Cuda:
    """CUDA's driver with a context on the first device."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Raises RuntimeError where it fails."""
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def put(self, data: bytes) -> ctypes.c_uint64:
        """Return device memory that holds `data`."""
        memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", memory, data, ctypes.c_size_t(len(data)))
        self.call("cuCtxSynchronize")
        return memory

    def get(self, memory: ctypes.c_uint64, size: int) -> bytes:
        """Return what device memory holds."""
        copy = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", copy, memory, ctypes.c_size_t(size))
        return copy.raw


_FORMATS = {
    "f64": "d", "f32": "f", "f16": "e", "bf16": "H", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i",
    "u32": "I", "i64": "q", "u64": "Q",
}  # fmt: skip


def _as_float(value: float) -> float:
    """Round to binary32."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _from_bf16(bits: int) -> float:
    return float(struct.unpack("f", struct.pack("I", bits << 16))[0])


def _to_bf16(value: float) -> int:
    bits = int(struct.unpack("I", struct.pack("f", _as_float(value)))[0])
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _combine(op: str, kind: str, left: Any, right: Any) -> Any:
    """Return what the host's kernels do; of no NaN."""
    if kind == "bf16":
        return _to_bf16(_combine(op, "f32", _from_bf16(left), _from_bf16(right)))
    value = {
        "sum": lambda: left + right,
        "prod": lambda: left * right,
        "min": lambda: left if left < right else right,
        "max": lambda: left if left > right else right,
        "band": lambda: left & right,
        "bor": lambda: left | right,
        "bxor": lambda: left ^ right,
    }[op]()
    if kind == "f16":
        try:
            return struct.unpack("e", struct.pack("e", _as_float(value)))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
    if kind == "f32":
        return _as_float(value)
    if kind == "f64":
        return value
    bits = 8 * struct.calcsize(_FORMATS[kind])
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "i" and value >> (bits - 1) else value


def _random(kind: str, count: int, source: random.Random) -> bytes:
    """Numbers of all sizes, but no NaN and no infinity."""
    form = _FORMATS[kind]
    if kind == "bf16":
        numbers: list[Any] = [_to_bf16(source.gauss(0, 1) * 2.0 ** source.randint(-30, 30)) for _ in range(count)]
    elif kind == "f16":
        numbers = [source.gauss(0, 1) * 2.0 ** source.randint(-10, 6) for _ in range(count)]
    elif kind[0] == "f":
        numbers = [source.gauss(0, 1) * 2.0 ** source.randint(-30, 30) for _ in range(count)]
    else:
        return source.randbytes(count * struct.calcsize(form))
    return struct.pack(f"{count}{form}", *numbers)


def child_kernels(path: str) -> Found:
    """Load the kernels and compare each one's results with the host's."""
    cuda = Cuda()
    text = Path(path).read_bytes()
    names = sorted(line.split(b"(")[0].split()[-1].decode() for line in text.splitlines() if b".entry " in line)
    module = ctypes.c_void_p()
    started = time.monotonic()
    cuda.call("cuModuleLoadData", ctypes.byref(module), text + b"\0")
    found: Found = {"kernels": len(names), "load_s": time.monotonic() - started, "right": [], "wrong": {}}
    source = random.Random(1)  # noqa: S311 - test data
    count = 1003
    for name in names:
        _, op, kind = name.split("_")
        form = _FORMATS[kind]
        left, right = _random(kind, count, source), _random(kind, count, source)
        buffers = [cuda.put(left), cuda.put(right), cuda.put(bytes(len(left)))]
        function = ctypes.c_void_p()
        cuda.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        values = [*buffers, ctypes.c_uint64(count)]
        pointers = (ctypes.c_void_p * 4)(*[ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values])
        cuda.call("cuLaunchKernel", function, 4, 1, 1, 128, 1, 1, 0, None, pointers, None)
        cuda.call("cuCtxSynchronize")
        result = cuda.get(buffers[2], len(left))
        pairs = zip(struct.unpack(f"{count}{form}", left), struct.unpack(f"{count}{form}", right), strict=True)
        numbers = [_combine(op, kind, a, b) for a, b in pairs]
        expected = struct.pack(f"{count}{form}", *numbers)
        if result == expected:
            found["right"].append(name)
        else:
            width = struct.calcsize(form)
            at = next(i for i in range(0, len(result), width) if result[i : i + width] != expected[i : i + width])
            element = slice(at, at + width)
            found["wrong"][name] = (
                f"{left[element].hex()} {op} {right[element].hex()}: {result[element].hex()},"
                f" expected {expected[element].hex()}"
            )
        for memory in buffers:
            cuda.call("cuMemFree_v2", memory)
    return found


class _UniqueId(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_byte * 128),)


def child_nccl() -> Found:
    """Add up with NCCL on one rank."""
    cuda = Cuda()
    count = ctypes.c_int()
    cuda.call("cuDeviceGetCount", ctypes.byref(count))
    found: Found = {"devices": count.value}
    try:
        nccl = ctypes.CDLL(os.environ.get("PALMETTE_NCCL") or "libnccl.so.2")
    except OSError as error:
        return found | {"problem": str(error), "version": 0}
    version = ctypes.c_int()
    nccl.ncclGetVersion(ctypes.byref(version))
    found["version"] = version.value
    identity, communicator = _UniqueId(), ctypes.c_void_p()
    data = struct.pack("1000f", *range(1000))
    source, target = cuda.put(data), cuda.put(bytes(len(data)))
    nccl.ncclCommInitRank.argtypes = (ctypes.c_void_p, ctypes.c_int, _UniqueId, ctypes.c_int)
    started = time.monotonic()
    stream = ctypes.c_void_p()
    cuda.call("cuStreamCreate", ctypes.byref(stream), 1)
    for name, result in (
        ("ncclGetUniqueId", nccl.ncclGetUniqueId(ctypes.byref(identity))),
        ("ncclCommInitRank", nccl.ncclCommInitRank(ctypes.byref(communicator), 1, identity, 0)),
        (
            "ncclAllReduce",
            nccl.ncclAllReduce(source, target, ctypes.c_size_t(1000), 7, 0, communicator, stream),
        ),
    ):
        if result != 0:
            return found | {"problem": f"{name}: {result}"}
    cuda.call("cuStreamSynchronize", stream)
    found["one_rank_right"] = cuda.get(target, len(data)) == data
    found["one_rank_s"] = time.monotonic() - started
    nccl.ncclCommDestroy(communicator)
    return found


# --- results ---


def table(results: Found) -> str:
    """Return the results as Markdown."""
    machine = results["steps"].get("machine", {}).get("found", {})
    cuda = machine.get("cuda") or {}
    gpus = ", ".join(device["name"] for device in cuda.get("devices", [])) or "no GPU"
    lines = ["# Check of a node", "", f"{gpus}; driver {cuda.get('kernel_driver') or cuda.get('version', '-')};"]
    lines += [f"{machine.get('cpu', '-')}, {machine.get('cores', '-')} cores; commit {machine.get('commit')}", ""]
    lines += ["| step | seconds | result |", "|---|---:|---|"]
    for name, step in results["steps"].items():
        result = step.get("problem") or _summary(name, step["found"])
        lines.append(f"| {name} | {step['seconds']:.1f} | {result} |")
    found = {name: step.get("found") or {} for name, step in results["steps"].items()}
    if rows := found.get("costs", {}).get("rows"):
        lines += ["", "| call | MPI | driver | alone, ns | palmette adds, ns |", "|---|---|---|---:|---:|"]
        for row in rows:
            loaded = "loaded" if row["driver"] else "no"
            lines.append(f"| {row['call']} | {row['mpi']} | {loaded} | {row['alone_ns']:.0f} | {row['more_ns']:+.1f} |")
    if rows := found.get("collectives", {}).get("runs"):
        lines += ["", "| MPI | ranks | memory | cells | result |", "|---|---:|---|---:|---|"]
        for row in rows:
            result = row.get("problem") or (f"WRONG: {', '.join(row['wrong'])}" if row["wrong"] else "right")
            lines.append(f"| {row['mpi']} | {row['ranks']} | {row['memory']} | {row.get('cells', '-')} | {result} |")
    if rows := found.get("crossover", {}).get("rows"):
        lines += ["", "| collective | bytes | own copies, us | staging, us | IPC, us |", "|---|---:|---:|---:|---:|"]
        for row in rows:
            times = [row["own_copies_s"], row["staging_s"], row["ipc_s"]]
            shown = " | ".join("-" if value is None else f"{value * 1e6:.1f}" for value in times)
            lines.append(f"| {row['collective']} | {row['size_bytes']} | {shown} |")
    if rows := found.get("one-node", {}).get("rows"):
        lines += ["", "| MPI | ranks | alone / palmette, geometric mean |", "|---|---:|---:|"]
        for row in rows:
            result = f"{row['mean']:.2f}" if "mean" in row else "-"
            result += f"; WRONG: {', '.join(row['wrong'])}" if row["wrong"] else ""
            result += f" ({row['problem']})" if "problem" in row else ""
            lines.append(f"| {row['mpi']} | {row['ranks']} | {result} |")
    return "\n".join(lines) + "\n"


def _summary(name: str, found: Found) -> str:
    if name == "machine":
        nccl = found.get("nccl") or {}
        return f"CUDA {(found.get('cuda') or {}).get('version', 'no driver')}, NCCL {nccl.get('version', 'no')}"
    if name == "ipc":
        return "works" if found.get("works") else f"doesn't work: {found.get('problem')}"
    if name == "kernels":
        wrong = f"; WRONG: {', '.join(found['wrong'])}" if found["wrong"] else ""
        return f"{len(found['right'])} of {found['kernels']} right, loaded in {found['load_s']:.2f} s{wrong}"
    if name == "collectives":
        bad = [row for row in found["runs"] if row.get("problem") or row.get("wrong")]
        return f"{len(found['runs']) - len(bad)} of {len(found['runs'])} runs right"
    if name == "crossover":
        sizes = [f"{key} {value}" for key, value in found["crossover"].items() if value is not None]
        if all(row["ipc_s"] is None for row in found["rows"]):
            return "no call was in place: IPC was not taken"
        return f"IPC is faster from: {', '.join(sizes)}" if sizes else "IPC is never faster"
    if name == "nccl":
        if "problem" in found:
            return str(found["problem"])
        runs = "; ".join(f"{row['ranks']} ranks: {row.get('problem', 'done')}" for row in found["runs"])
        one = "right" if found["one_rank_right"] else "WRONG"
        return f"{found['version']}: one rank {one}; {runs or found.get('several', '')}"
    if name == "arrays":
        return "; ".join(f"{key}: {value}" for key, value in found.items())
    return "done"


def run(options: argparse.Namespace) -> int:
    """Run the steps. Returns 1 where results were wrong."""
    names = options.steps.split(",") if options.steps else list(STEPS)
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        raise CannotError(f"no step {unknown[0]}; there are {', '.join(STEPS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    results: Found = {"format": "palmette-node-check", "version": 1, "steps": {}}
    with tempfile.TemporaryDirectory(prefix="palmette-node-check-") as folder:
        ranks = tuple(int(word) for word in options.ranks.split(","))
        deadline = time.monotonic() + 60 * options.minutes
        context = Context(files(), options.fake, options.short, ranks, deadline, Path(folder))
        if options.fake and not (context.files.fakes / "libcuda.so.1").is_file():
            raise CannotError("the test driver isn't built: tools/build.sh release 2 palmette_fakes")
        for name in names:
            started = time.monotonic()
            step: Found = {}
            try:
                step["found"] = STEPS[name](context)
            except CannotError as error:
                step["problem"] = str(error)
            except Exception as error:  # whatever it is, the next step runs
                step["problem"] = f"{type(error).__name__}: {error}"
            step["seconds"] = time.monotonic() - started
            results["steps"][name] = step
            said = step.get("problem") or _summary(name, step["found"])
            print(f"{name}: {said} ({step['seconds']:.1f} s)", flush=True)
            (options.output / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            (options.output / "results.md").write_text(table(results), encoding="utf-8")
    print(f"{options.output}/results.md")
    return 1 if "WRONG" in table(results) else 0


def main(words: Sequence[str]) -> int:
    """Run the command line."""
    if words[:1] in (["kernels"], ["nccl"]):
        print(json.dumps(child_kernels(words[1]) if words[0] == "kernels" else child_nccl()))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("out", type=Path)
    packing.add_argument("--without-wheels", action="store_true")
    running = commands.add_parser("run")
    running.add_argument("--minutes", type=float, default=10)
    running.add_argument("--output", type=Path, default=Path("node-check"))
    running.add_argument("--steps", default="")
    running.add_argument("--ranks", default="2,4,8,16")
    running.add_argument("--fake", action="store_true")
    running.add_argument("--short", action="store_true")
    options = parser.parse_args(words)
    try:
        if options.command == "pack":
            pack(options.out, wheels=not options.without_wheels)
            return 0
        return run(options)
    except CannotError as error:
        print(f"node_check.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
