"""Neighbourhood collectives by palmette and by the MPI: on the emulated cluster, or on a simulated one of 1,024 ranks.

All ways (studies/neighbours.c) take turns in one job; a ratio is that of palmette's call and the MPI's in the same
turn. Root is needed for the lab; the simulation needs `cmake --build build/release --target neighbours_simulated`.

Usage: neighbours.py lab OUTPUT.json [--mpi mpich,openmpi,impi] [--rounds 3] [--calls 15] [--sizes 8,64,...]
       neighbours.py simulate OUTPUT.json [--sizes 8,64,...] [--placements block,random:1]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outside_collectives import interval

from palmette.mpi.abi import LIBRARIES
from palmette.mpi.install import find
from palmette_lab.lab import Lab
from palmette_lab.simulate import cluster, simgrid
from palmette_lab.simulate.job import make_job
from palmette_lab.simulate.parameters import read
from palmette_lab.simulate.platform import platform_xml
from palmette_lab.simulate.run import BASE_SELECTION

ROOT = Path(__file__).resolve().parent.parent
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
SIMULATED = "4leaf@12.5GB/s:16node@12.5GB/s:16core"
PLACEMENT = "random:1"
ABIS = {"mpich": "mpich", "impi": "mpich", "openmpi": "ompi"}
SIZES = "8,64,256,1024,4096,16384,65536"
WAYS = "mpi,palmette"


def main() -> None:
    """Measure, write all samples, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", choices=("lab", "simulate"))
    parser.add_argument("output", type=Path)
    parser.add_argument("--mpi", default="mpich,openmpi,impi")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=15)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--ways", default=WAYS)
    parser.add_argument("--placements", default=f"block,{PLACEMENT}", help="simulated")
    asked = parser.parse_args()
    if not asked.output.absolute().parent.is_dir():
        parser.error("the output's folder must be there")
    rows = list(on_lab(asked) if asked.where == "lab" else simulated(asked))
    asked.output.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print(table(rows, asked.ways.split(",")))


def on_lab(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run a job for each MPI and round."""
    with Lab.up(LAB, name="neighbours-study") as lab:
        for turn in range(asked.rounds):
            for mpi in asked.mpi.split(","):
                made = ROOT / "build" / f"neighbours_study.{ABIS[mpi]}"
                compiler = find("openmpi" if mpi == "openmpi" else "mpich").mpiexec.parent / "mpicc"
                options = ["-O2", "-Wl,--enable-new-dtags", "-ldl"]
                subprocess.run([compiler, ROOT / "studies" / "neighbours.c", *options, "-o", made], check=True)
                preload = str(LIBRARIES / f"libpalmette_{ABIS[mpi]}.so")
                settings = {"LD_PRELOAD": preload, "PALMETTE_COMPARE": "0", "PALMETTE_SERVE_AFTER": "0",
                            "PALMETTE_TOPOLOGY": str(lab.topology_path)}  # fmt: skip
                words = [str(made), str(asked.calls), asked.sizes, asked.ways]
                done = lab.run(words, mpi=mpi, placement=PLACEMENT, env=settings, capture=True)
                if done.returncode != 0:
                    sys.exit(f"neighbours.py: {mpi}: status {done.returncode}\n{done.stdout}{done.stderr}")
                yield from ({"mpi": mpi, "round": turn, **row} for row in rows_of(done.stdout))
                print(f"round {turn + 1}, {mpi}", file=sys.stderr, flush=True)


def simulated(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Simulate a call of each kind: times there are the same each time."""
    parameters = read()
    simulation = cluster.prepared(cluster.from_spec(SIMULATED), parameters)
    program = ROOT / "build" / "release" / "studies" / "neighbours.smpi"
    costs = [cost.text for cost in parameters.ends.values()] + [f"{parameters.eager_bytes:.0f}"]
    for placement in asked.placements.split(","):
        for size in asked.sizes.split(","):
            job = make_job(simulation, placement, None)
            with tempfile.TemporaryDirectory(prefix="palmette-neighbours-") as name:
                folder = Path(name)
                (folder / "topology.json").write_text(json.dumps(job.cluster.topology.to_json()), encoding="utf-8")
                (folder / "platform.xml").write_text(platform_xml(job.cluster.topology, parameters), encoding="utf-8")
                (folder / "hosts").write_text("".join(f"{seat}\n" for seat in job.seats), encoding="utf-8")
                ended = simgrid.start(
                    simgrid.find_smpirun(), folder, len(job.seats), program,
                    simgrid.configuration(parameters, BASE_SELECTION), ["1", size, asked.ways, *costs],
                    {"PALMETTE_TOPOLOGY": "topology.json"}, 1500,
                )  # fmt: skip
            if ended.trouble:
                sys.exit(f"neighbours.py: {placement}, {size}: {ended.trouble}\n{ended.output}{ended.errors}")
            yield from ({"mpi": placement, "round": 0, **row} for row in rows_of(ended.output))
            print(f"{placement}, {size} B", file=sys.stderr, flush=True)


def rows_of(text: str) -> list[dict[str, Any]]:
    """Return the program's lines."""
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"pattern"')]


def table(rows: list[dict[str, Any]], ways: list[str]) -> str:
    """Return medians of all rounds in ms, and how many times as fast as the first way each other one is.

    `slower` is said where most rounds show it: the median of the ratios above 1.02, and its interval above 1.
    """
    samples: dict[tuple[str, ...], dict[str, list[list[float]]]] = {}
    for row in rows:
        cell = samples.setdefault((row["pattern"], row["function"], row["bytes"], row["mpi"]), {})
        cell.setdefault(row["way"], []).append(row["seconds"])
    places = list(dict.fromkeys(row["mpi"] for row in rows))
    out = ["| pattern | function | block | " + " | ".join(f"{place}: {', '.join(ways)}" for place in places) + " |"]
    out.append("|---|---|---:|" + "---:|" * len(places))
    for pattern, function, size in dict.fromkeys(where[:3] for where in samples):
        cells = [cell_of(samples[pattern, function, size, place], ways) for place in places]
        out.append(f"| {pattern} | {function} | {size} B | " + " | ".join(cells) + " |")
    return "\n".join(out)


def cell_of(of: dict[str, list[list[float]]], ways: list[str]) -> str:
    """Return the medians, and the factors of the first way's."""
    medians = {way: statistics.median(one for each in of[way] for one in each) for way in ways}
    digits = {way: 0 if one > 0.1 else 1 if one > 0.01 else 2 if one > 0.001 else 3 for way, one in medians.items()}
    texts = {way: f"{one * 1e3:.{digits[way]}f}" for way, one in medians.items()}
    out = [texts[ways[0]]]
    for way in ways[1:]:
        slower = 0
        for base, own in zip(of[ways[0]], of[way], strict=True):
            each = [b / a for a, b in zip(base, own, strict=True)]
            slower += statistics.median(each) > 1.02 and interval(each)[0] > 1
        mark = ", slower" if slower > len(of[way]) / 2 else ""
        out.append(f"{texts[way]} ({medians[ways[0]] / medians[way]:.2f}{mark})")
    return ", ".join(out)


if __name__ == "__main__":
    main()
