"""Sums and spreads of a tomographic projection on the emulated cluster: three ways to exchange, ranks scattered.

Runs examples/tomography/reconstruct.py --measure in one job of 16 ranks on the lab for each repetition; the ways take
turns in it, each from a common start. Root is needed, as for every lab, and a Python with mpi4py and SciPy.

Usage: sparse_sum.py OUTPUT.json --python PYTHON [--cells 256] [--angles 192] [--slices 16] [--tile 8] [--repeats 3]
                     [--mpi mpich,openmpi,impi]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from palmette import _core

ROOT = Path(__file__).resolve().parent.parent
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
WAYS = ("allreduce", "alltoallv", "palmette")


def main() -> None:
    """Measure, write all samples, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--python", required=True)
    for name, default in (("cells", 256), ("angles", 192), ("slices", 16), ("tile", 8), ("repeats", 3), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--mpi", default="mpich,openmpi,impi")
    parser.add_argument("--placement", default="random:1")
    parser.add_argument("--factoring")
    asked = parser.parse_args()
    if asked.repeats < 1 or not asked.output.absolute().parent.is_dir():
        parser.error("--repeats is 1 or more, and the output's folder must be there")
    samples = [{"mpi": mpi, **measured(mpi, asked)} for _ in range(asked.repeats) for mpi in asked.mpi.split(",")]
    figures = {"lab": LAB, "placement": asked.placement, "samples": samples}
    asked.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(table(samples))


def measured(mpi: str, asked: argparse.Namespace) -> dict[str, object]:
    """Return the figures of one job."""
    with tempfile.TemporaryDirectory() as folder:
        figures, topology = Path(folder) / "figures.json", Path(folder) / "topology.json"
        machine = _core.Machine.synthetic(LAB).to_json()
        document = {"format": "palmette-topology", "version": 1, "machine": machine}
        topology.write_text(json.dumps(document), encoding="utf-8")
        words = [str(ROOT / ".venv/bin/palmette-lab"), "run", "--lab", LAB, "--placement", asked.placement]
        words += ["--mpi", mpi, "--env", f"PALMETTE_TOPOLOGY={topology}", "--env", "OMP_NUM_THREADS=1", "--"]
        words += [asked.python, str(ROOT / "examples/tomography/reconstruct.py"), "--iterations", "1"]
        for name in ("cells", "angles", "slices", "tile"):
            words += [f"--{name}", str(getattr(asked, name))]
        words += ["--measure", str(asked.rounds), "--json", str(figures)]
        words += ["--factoring", asked.factoring] if asked.factoring else []
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        print(done.stdout, file=sys.stderr, flush=True)
        made: dict[str, object] = json.loads(figures.read_text(encoding="utf-8"))
        return made


def table(samples: list[dict[str, object]]) -> str:
    """Return medians over all rounds of all jobs: sum, spread, both, and both as a multiple of palmette's."""
    lines = [f"{'':20} {'sum':>10} {'spread':>10} {'both':>10}  of palmette's"]
    for mpi in dict.fromkeys(str(sample["mpi"]) for sample in samples):
        medians: dict[str, tuple[float, float]] = {}
        for way in WAYS:
            both = [sample["measured"][way] for sample in samples if sample["mpi"] == mpi]  # type: ignore[index]
            medians[way] = tuple(  # type: ignore[assignment]
                statistics.median(value for one in both for value in one[what]) for what in ("sum", "spread")
            )
        for way, (forth, back) in medians.items():
            times = (forth + back) / sum(medians["palmette"])
            columns = " ".join(f"{seconds * 1e3:7.1f} ms" for seconds in (forth, back, forth + back))
            lines.append(f"{mpi + ', ' + way:20} {columns}  {times:.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
