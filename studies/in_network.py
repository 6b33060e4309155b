"""Allreduce through aggregators on the emulated cluster, beside the best plan of the hosts and each MPI alone.

Labs with an aggregator at the top: its link unlimited, as slow as a node's, and above two groups only, where it may not
be chosen. `palmette bench` measures the MPI alone, palmette without aggregators and palmette through them in each of
several runs; ratios are those within a run. The bytes out of adapters are differences of interface counters between
many calls and few. Root is needed, as for every lab.

Usage: in_network.py OUTPUT.json [--mpi mpich,openmpi,impi] [--sizes 256K,1M] [--runs 3] [--seconds 2]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from palmette.lab import Lab
from palmette.mpi.abi import LIBRARIES
from palmette.mpi.install import find

ROOT = Path(__file__).resolve().parent.parent
LABS = {
    "four leaves": "aggregator:4leaf@50Mbit/s:2node@100Mbit/s:2core",
    "eight nodes": "aggregator:8node@50Mbit/s:2core",
    "three uneven leaves": "aggregator:3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core",
    "eight nodes, slow aggregator": "aggregator@50Mbit/s:8node@50Mbit/s:2core",
    "two leaves": "aggregator:2leaf@50Mbit/s:2node@100Mbit/s:2core",
}
PLACEMENT = "random:1"
COUNTED = {4: "aggregator:4node@50Mbit/s:2core", 8: "aggregator:8node@50Mbit/s:2core"}
FEW, MANY, BYTES = 4, 24, 1 << 20


def main() -> None:
    """Measure, write all figures, print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--mpi", default="mpich,openmpi,impi")
    parser.add_argument("--sizes", default="256K,1M")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    asked = parser.parse_args()
    if asked.runs < 1 or not asked.output.absolute().parent.is_dir():
        parser.error("--runs is 1 or more, and the output's folder must be there")
    cells = [cell for run in range(asked.runs) for lab in LABS for cell in measured(lab, run, asked)]
    counts = [counted(nodes, variant) for nodes in COUNTED for variant in ("hosts", "in_network")]
    asked.output.write_text(
        json.dumps({"placement": PLACEMENT, "labs": LABS, "cells": cells, "bytes": counts}, indent=1)
    )
    print(times(cells))
    print()
    print(adapters(counts))


def measured(lab: str, run: int, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the cells of one run of `palmette bench` on one lab."""
    words = [str(ROOT / ".venv/bin/palmette"), "bench", "allreduce", "--lab", LABS[lab], "--placement", PLACEMENT]
    words += ["--variant", "hosts", "--variant", "in_network", "--mpi", asked.mpi, "--sizes", asked.sizes]
    words += ["--seconds", str(asked.seconds), "--store", str(asked.output.with_suffix(".sqlite")), "--json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"in_network.py: {' '.join(words)} ended with status {done.returncode}")
    found = json.loads(done.stdout)
    keep = ("mpi", "size_bytes", "alone", "palmette", "pairs", "wrong", "algorithm", "bound_s", "network_bound_s")
    return [{"lab": lab, "run": run, **{key: cell[key] for key in keep}} for cell in found["cells"]]


def times(cells: list[dict[str, Any]]) -> str:
    """Return medians over the runs, and the ratio of each run."""
    out = ["| lab | bytes | MPI | alone | hosts | through aggregators | of hosts, by run | of the bound | chosen |"]
    out.append("|---|---|---|---|---|---|---|---|---|")
    by = {(c["lab"], c["size_bytes"], c["mpi"], c["run"]): c for c in cells}
    for lab, size, mpi in dict.fromkeys((c["lab"], c["size_bytes"], c["mpi"]) for c in cells if "/" not in c["mpi"]):
        runs = sorted(run for where in by if where[:3] == (lab, size, mpi) for run in where[3:])
        own = [by[lab, size, mpi, run] for run in runs]
        hosts = [by[lab, size, f"{mpi}/hosts", run]["palmette"]["median_s"] for run in runs]
        through = [by.get((lab, size, f"{mpi}/in_network", run)) for run in runs]
        served = [t["palmette"]["median_s"] for t in through if t and t["algorithm"] == "in_network"]
        alone = statistics.median(c["alone"]["median_s"] for c in own)
        chosen = "/".join(sorted({c["algorithm"] for c in own}))
        row = f"| {lab} | {size // 1024}K | {mpi} | {alone * 1e3:.1f} ms | {statistics.median(hosts) * 1e3:.1f} ms |"
        if served:
            ratios = ", ".join(f"{t / h:.2f}" for t, h in zip(served, hosts, strict=True))
            bound = statistics.median(served) / own[0]["network_bound_s"]
            row += f" {statistics.median(served) * 1e3:.1f} ms | {ratios} | {bound:.2f} |"
        else:
            row += " refused | | |"
        out.append(f"{row} {chosen} |")
    return "\n".join(out)


def counted(nodes: int, variant: str) -> dict[str, Any]:
    """Return the bytes that a call sends out of each host's adapter, by the lab's interface counters."""
    program = ROOT / "build" / "in_network_study"
    mpi = find("mpich")
    compiler = mpi.mpiexec.parent / "mpicc"
    subprocess.run([compiler, "-O1", ROOT / "studies" / "in_network.c", "-o", program], check=True)
    settings = {
        "LD_PRELOAD": str(LIBRARIES / "libpalmette_mpich.so"),
        "PALMETTE_ALLREDUCE": "ring" if variant == "hosts" else "in_network",
    }
    out: dict[int, dict[str, tuple[int, int]]] = {}
    with Lab.up(COUNTED[nodes], name="in-network-study") as lab:
        settings["PALMETTE_TOPOLOGY"] = str(lab.topology_path)
        for calls in (FEW, MANY):
            words = [str(program), str(BYTES), str(calls)]
            before = lab.link_bytes()
            ran = lab.run(words, mpi="mpich", placement=PLACEMENT, env=settings)
            if ran.returncode != 0:
                sys.exit(f"in_network.py: {' '.join(words)} ended with status {ran.returncode}")
            after = lab.link_bytes()
            out[calls] = {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in after}
    hosts = [name for name in out[FEW] if name.startswith("h")]
    sent = {name: (out[MANY][name][0] - out[FEW][name][0]) / (MANY - FEW) for name in hosts}
    return {"nodes": nodes, "variant": variant, "vector_bytes": BYTES, "sent_bytes": sent}


def adapters(counts: list[dict[str, Any]]) -> str:
    """Return the bytes out of an adapter as multiples of the vector, frames counted as payload of 1448 in 1514."""
    out = ["| nodes | plan | out of an adapter | least and most |", "|---|---|---|---|"]
    for count in counts:
        shares = [sent * 1448 / 1514 / count["vector_bytes"] for sent in count["sent_bytes"].values()]
        out.append(
            f"| {count['nodes']} | {count['variant']} | {statistics.mean(shares):.3f} N |"
            f" {min(shares):.3f} to {max(shares):.3f} |"
        )
    return "\n".join(out)


if __name__ == "__main__":
    main()
