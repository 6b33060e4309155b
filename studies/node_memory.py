"""A node's memory, simulated against measured: plans by shared memory with two ranks on this machine's two cores.

    python studies/node_memory.py                   # two minutes; the machine should have nothing else to do

Measured under MPICH by `palmette bench`'s program, from a common start to the end of the last rank; simulated by
`palmette-lab simulate`, the same plan. A barrier gives the simulation the latency of a flag, broadcasts of 16 and 128
KB through the ring the rate of a core, and of 128 KB and 1 MB by single copy what pages take. All other rows are the
check: simulated over measured. `messages` is the MPI alone against the simulator's own algorithms of that MPI.

The fastest twentieth of all calls counts, as any load holds up one of two ranks. The simulation has no caches: data
that lies in one is faster, memory that is touched first slower.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from palmette import _core
from palmette.bench.side_by_side import geometric_mean
from palmette.bench.text import size_text
from palmette.mpi.abi import LIBRARIES, PROGRAMS
from palmette.mpi.install import find
from palmette.settings import force
from palmette.units import time_text
from palmette_lab.simulate import parameters, run, simgrid
from palmette_lab.simulate.cluster import from_spec, prepared
from palmette_lab.simulate.job import make_job

RING = "shared:single=1G"
"""Copied into the segment, and out of it."""
SINGLE = "shared:single=4K"
"""Read where it lies, from 4 KB on."""
COLLECTIVES = ("bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")
SIZES = (8, 1 << 10, 16 << 10, 128 << 10, 1 << 20)
BARRIER = ("barrier", RING, 0)
CORE = ("bcast", RING, 16 << 10), ("bcast", RING, 128 << 10)
PAGES = ("bcast", SINGLE, 128 << 10), ("bcast", SINGLE, 1 << 20)

Key = tuple[str, str, int]
"""Collective, algorithm, bytes; the algorithm is `messages` for the MPI alone."""


@dataclass(frozen=True)
class Row:
    """One plan with one size; seconds."""

    key: Key
    measured_s: float
    simulated_s: float

    @property
    def ratio(self) -> float:
        """Simulated over measured."""
        return self.simulated_s / self.measured_s


def measured(algorithm: str, seconds: float) -> dict[Key, float]:
    """Run all collectives by this algorithm, and by the MPI alone."""
    mpi = find("mpich")
    settings = {"LD_PRELOAD": str(LIBRARIES / "libpalmette_mpich.so"), "PALMETTE_COMPARE": "0"}
    settings |= {"PALMETTE_SERVE_AFTER": "0"}
    settings |= force(**dict.fromkeys((*COLLECTIVES, "barrier"), algorithm))
    words = [str(mpi.mpiexec), "-n", "2", "-bind-to", "core"]
    words += [word for name, value in settings.items() for word in ("-genv", name, value)]
    words += [str(PROGRAMS / "collbench.mpich"), "--wait", "spin", "--window-us", "200", "--seconds", str(seconds)]
    words += ["--max-iterations", "2000"]
    cells = [f"{name}:{size}" for name in COLLECTIVES for size in SIZES if size * 2 <= 2 << 20]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PALMETTE_")}
    done = subprocess.run(
        [*words, "--cells", ",".join([*cells, "barrier:0"])],
        env=mpi.environment(own), capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"collbench: status {done.returncode}: {done.stderr.strip()[-300:]}")
    found: dict[Key, float] = {}
    for line in done.stdout.splitlines():
        event = json.loads(line)
        if event["event"] != "cell":
            continue
        for name, times in ((algorithm, event["palmette_s"]), ("messages", event["alone_s"])):
            found[event["collective"], name, event["size_bytes"]] = statistics.quantiles(times, n=20)[0]
    return found


def fitted(times: dict[Key, float]) -> parameters.Parameters:
    """The parameters of this machine, by three of its times. Two ranks can't tell that they share a memory."""
    ring_s, single_s = (
        (times[more] - times[less]) / (more[2] - less[2]) for less, more in (CORE, PAGES)
    )  # for a byte: two copies, and one with its page
    if min(ring_s, single_s) <= 0:
        raise SystemExit("longer broadcasts were no slower: this machine is too busy to measure anything")
    core, flag_s = 2 / ring_s, times[BARRIER]
    page_s = max(single_s - 1 / core, 0.0) * parameters.PAGE_BYTES
    values = parameters.read(parameters.file_named("servers"))
    return replace(values, flag_latency_s=flag_s, core_bytes_per_s=core, page_s=page_s, memory_bytes_per_s=2 * core)


def simulated(smpirun: str, values: parameters.Parameters, keys: Sequence[Key]) -> dict[Key, float]:
    """Simulate these, one job for each collective and algorithm."""
    job = make_job(prepared(from_spec("1node:2core"), values), "block", None)
    found: dict[Key, float] = {}
    for name, algorithm in dict.fromkeys((name, algorithm) for name, algorithm, _ in keys):
        sizes = [size for one, other, size in keys if (one, other) == (name, algorithm)]
        contender = "mpich" if algorithm == "messages" else run.PALMETTE
        environment = force(**{name: algorithm}) if contender == run.PALMETTE else {}
        outcome = run.simulate(smpirun, job, values, contender, name, sizes, environment=environment)
        if outcome.trouble:
            raise SystemExit(f"{name} by {algorithm}: {outcome.trouble}")
        found |= {(name, algorithm, size): time for size, time in outcome.times_s.items()}
    return found


def main() -> int:
    """Measure, fit, simulate, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.3, help="to measure each cell (0.3)")
    options = parser.parse_args()
    smpirun = simgrid.find_smpirun()
    before = os.getloadavg()[0]
    times: dict[Key, float] = {}
    for algorithm in (RING, SINGLE):
        # The MPI alone is measured beside each: the faster one counts.
        for key, time in measured(algorithm, options.seconds).items():
            times[key] = min(time, times.get(key, time))
    after = os.getloadavg()[0]
    values = fitted(times)
    print(
        f"load {before:.1f} before and {after:.1f} after; a flag {time_text(values.flag_latency_s)}, a core"
        f" {_core.format_rate(values.core_bytes_per_s)}, a page {time_text(values.page_s)}\n"
    )
    wanted = [key for key in times if key not in (*CORE, *PAGES) and key[0] != "barrier"]
    wanted = [key for key in wanted if key[1] != SINGLE or key[2] >= 16 << 10]
    found = simulated(smpirun, values, wanted)
    rows = [Row(key, times[key], found[key]) for key in wanted]
    print("| collective | by | size | measured | simulated | ratio |\n|---|---|---|---|---|---|")
    for row in rows:
        name, algorithm, size = row.key
        took = f"{time_text(row.measured_s)} | {time_text(row.simulated_s)} | {row.ratio:.2f}"
        print(f"| {name} | {algorithm} | {size_text(size)} | {took} |")
    print()
    for algorithm in (RING, SINGLE, "messages"):
        ratios = [row.ratio for row in rows if row.key[1] == algorithm]
        middle = geometric_mean(ratios)
        print(f"{algorithm}: geometric mean {middle:.2f}, {min(ratios):.2f} to {max(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
