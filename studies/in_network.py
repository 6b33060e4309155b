"""Allreduce through aggregators on the emulated cluster, beside the best plan of the hosts and each MPI alone.

Labs with an aggregator at the top: its link unlimited, as slow as a node's, and above two groups only, where it may not
be chosen. Jobs of palmette without aggregators (its table chooses) and with them (it chooses, too) take turns; ratios
are those of neighbours. Calls begin at a common time. The bytes out of adapters are differences of interface counters
between many calls and few. Root is needed, as for every lab.

Usage: in_network.py OUTPUT.json [--mpi mpich,openmpi,impi] [--rounds 3] [--calls 12]

Labs that OUTPUT.json has are not measured again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.mpi.abi import LIBRARIES
from palmette.mpi.install import find
from palmette_lab.lab import Lab

ROOT = Path(__file__).resolve().parent.parent
LABS = {
    "four leaves": "aggregator:4leaf@50Mbit/s:2node@100Mbit/s:2core",
    "eight nodes": "aggregator:8node@50Mbit/s:2core",
    "three uneven leaves": "aggregator:3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core",
    "eight nodes, slow aggregator": "aggregator@50Mbit/s:8node@50Mbit/s:2core",
    "two leaves": "aggregator:2leaf@50Mbit/s:2node@100Mbit/s:2core",
}
SIZES = (1 << 18, 1 << 20)
PLACEMENT = "random:1"
ABIS = {"mpich": "mpich", "impi": "mpich", "openmpi": "ompi"}
VARIANTS = ("hosts", "aggregators")
COUNTED = {4: "aggregator:4node@50Mbit/s:2core", 8: "aggregator:8node@50Mbit/s:2core"}
FEW_CALLS, MANY_CALLS = 4, 24
FORCED = {
    "four leaves": ("in_network", "in_network:window=64"),
    "eight nodes, slow aggregator": ("ring:segment=32K", *(f"in_network:share={n}" for n in ("auto", 20, 15, 10, 6))),
}
"""Plans whose difference shows what pacing and the vector's share do; MPICH."""


def main() -> None:
    """Measure, write all samples, print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--mpi", default="mpich,openmpi,impi")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=12)
    asked = parser.parse_args()
    if asked.rounds < 1 or asked.calls < 2 or not asked.output.absolute().parent.is_dir():
        parser.error("--rounds is 1 or more, --calls 2 or more, and the output's folder must be there")
    mpis = asked.mpi.split(",")
    new: dict[str, Any] = {"placement": PLACEMENT, "labs": LABS, "jobs": [], "bytes": []}
    found = json.loads(asked.output.read_text()) if asked.output.is_file() else new
    jobs = found["jobs"]
    for name in [name for name in LABS if all(job["lab"] != name for job in jobs)]:
        jobs += measured(name, mpis, asked.rounds, asked.calls)
        save(asked.output, found)
    if not found["bytes"]:
        found["bytes"] = [counted(nodes, variant) for nodes in COUNTED for variant in VARIANTS]
        save(asked.output, found)
    if not found.get("forced"):
        found["forced"] = [one for name, specs in FORCED.items() for one in forced(name, specs, asked.calls)]
        save(asked.output, found)
    print(times(jobs))
    print()
    print(adapters(found["bytes"]))
    print()
    print(plans(found["forced"]))


def save(path: Path, found: dict[str, Any]) -> None:
    """Write what has been measured so far."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(found) + "\n")
    new.replace(path)


def program(mpi: str) -> Path:
    """Compile the program for an MPI; those of MPICH's ABI share one."""
    made = ROOT / "build" / f"in_network_study.{ABIS[mpi]}"
    compiler = find("openmpi" if mpi == "openmpi" else "mpich").mpiexec.parent / "mpicc"
    options = ["-O1", "-Wl,--enable-new-dtags"]
    subprocess.run([compiler, *options, ROOT / "studies" / "in_network.c", "-o", made], check=True)
    return made


def run(lab: Lab, mpi: str, words: list[str], settings: dict[str, str]) -> str:
    """Return what a job prints."""
    done = lab.run([str(program(mpi)), *words], mpi=mpi, placement=PLACEMENT, env=settings, capture=True)
    if done.returncode != 0:
        sys.exit(f"in_network.py: {mpi}, {settings}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def settings_of(lab: Lab, mpi: str, variant: str) -> dict[str, str]:
    """Return the environment of the ranks; `alone`: without palmette."""
    if variant == "alone":
        return {}
    preload = {"LD_PRELOAD": str(LIBRARIES / f"libpalmette_{ABIS[mpi]}.so"), "PALMETTE_COMPARE": "0"}
    token = {"PALMETTE_AGGREGATOR_TOKEN": ""} if variant == "hosts" else {}
    return {**preload, **token, "PALMETTE_TOPOLOGY": str(lab.topology_path)}


def measured(name: str, mpis: list[str], rounds: int, calls: int) -> Iterator[dict[str, Any]]:
    """Run the jobs of one lab: each MPI alone once, then palmette's variants by turns."""
    with Lab.up(LABS[name], name="in-network-study") as lab:
        for mpi in mpis:
            turns = [(0, "alone")] + [(turn, variant) for turn in range(rounds) for variant in VARIANTS]
            for turn, variant in turns:
                words = [str(calls), *map(str, SIZES)]
                for line in run(lab, mpi, words, settings_of(lab, mpi, variant)).splitlines():
                    size, *seconds = line.split()
                    where = {"lab": name, "mpi": mpi, "variant": variant, "round": turn, "bytes": int(size)}
                    yield {**where, "seconds": [float(one) for one in seconds]}
                print(f"{name}, {mpi}, {variant}", file=sys.stderr, flush=True)


def bounds(name: str, size: int) -> tuple[float, float]:
    """Return the hosts' lower bound in seconds, and that with aggregators, for TCP payload."""
    job = _core.Job(_core.Machine.synthetic(LABS[name]), PLACEMENT)
    hosts, network = (_core.bound(job, "allreduce", size, 0, in_network=one).seconds for one in (False, True))
    return hosts * 1514 / 1448, network * 1514 / 1448


def times(jobs: list[dict[str, Any]]) -> str:
    """Return medians over all rounds, and the ratio of each round."""
    head = "| lab | vector | MPI | alone | hosts | with aggregators | of hosts, by round | of the bound with them |"
    out = [head, "|---|---|---|---|---|---|---|---|"]
    by = {(job["lab"], job["bytes"], job["mpi"], job["variant"], job["round"]): job["seconds"] for job in jobs}
    for name, size, mpi in sorted({where[:3] for where in by}, key=lambda w: (list(LABS).index(w[0]), w[1])):
        rounds = sorted({where[4] for where in by if where[:4] == (name, size, mpi, "hosts")})
        each = {v: [by[name, size, mpi, v, turn] for turn in rounds] for v in VARIANTS}
        median = {v: statistics.median(chain.from_iterable(each[v])) for v in VARIANTS}
        ratios = [statistics.median(a) / statistics.median(h) for h, a in zip(*each.values(), strict=True)]
        alone = statistics.median(by[name, size, mpi, "alone", 0])
        out.append(
            f"| {name} | {size // 1024}K | {mpi} | {alone * 1e3:.0f} ms | {median['hosts'] * 1e3:.1f} ms |"
            f" {median['aggregators'] * 1e3:.1f} ms | {', '.join(f'{one:.2f}' for one in ratios)} |"
            f" {median['aggregators'] / bounds(name, size)[1]:.2f} |"
        )
    return "\n".join(out)


def counted(nodes: int, variant: str) -> dict[str, Any]:
    """Return the bytes that a call sends out of each host's adapter, by the lab's interface counters."""
    sent: list[dict[str, int]] = []
    with Lab.up(COUNTED[nodes], name="in-network-study") as lab:
        for calls in (FEW_CALLS, MANY_CALLS):
            before = lab.link_bytes()
            run(lab, "mpich", [str(calls), str(SIZES[-1])], settings_of(lab, "mpich", variant))
            after = lab.link_bytes()
            sent.append({host: after[host][0] - before[host][0] for host in lab.hosts})
        per_call = {host: (sent[1][host] - sent[0][host]) / (MANY_CALLS - FEW_CALLS) for host in lab.hosts}
    return {"nodes": nodes, "variant": variant, "vector_bytes": SIZES[-1], "sent_bytes": per_call}


def forced(name: str, specs: Sequence[str], calls: int) -> Iterator[dict[str, Any]]:
    """Run each plan three times by turns on one lab."""
    with Lab.up(LABS[name], name="in-network-study") as lab:
        for turn in range(3):
            for spec in specs:
                settings = settings_of(lab, "mpich", "aggregators") | {"PALMETTE_FORCE": f"allreduce={spec}"}
                words = [str(calls), *map(str, SIZES)]
                for line in run(lab, "mpich", words, settings).splitlines():
                    size, *seconds = line.split()
                    where = {"lab": name, "plan": spec, "round": turn, "bytes": int(size)}
                    yield {**where, "seconds": [float(one) for one in seconds]}


def plans(found: list[dict[str, Any]]) -> str:
    """Return the median of each plan."""
    out = ["| lab | plan | 256K | 1M |", "|---|---|---|---|"]
    for name, spec in dict.fromkeys((one["lab"], one["plan"]) for one in found):
        of = [[s for one in found if (one["lab"], one["plan"], one["bytes"]) == (name, spec, size)
               for s in one["seconds"]] for size in SIZES]  # fmt: skip
        out.append(f"| {name} | `{spec}` | " + " | ".join(f"{statistics.median(s) * 1e3:.1f} ms" for s in of) + " |")
    return "\n".join(out)


def adapters(counts: list[dict[str, Any]]) -> str:
    """Return the bytes out of an adapter as multiples of the vector, with 1448 bytes of payload in frames of 1514."""
    out = ["| nodes | palmette | out of an adapter | least and most |", "|---|---|---|---|"]
    for count in counts:
        shares = [sent * 1448 / 1514 / count["vector_bytes"] for sent in count["sent_bytes"].values()]
        out.append(
            f"| {count['nodes']} | {count['variant']} | {statistics.mean(shares):.3f} N |"
            f" {min(shares):.3f} to {max(shares):.3f} |"
        )
    return "\n".join(out)


if __name__ == "__main__":
    main()
