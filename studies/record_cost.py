"""What recording costs: nanoseconds a call, a request and a message of IMB's PingPong, on this machine.

Usage: record_cost.py [--pairs N] [--imb-pairs N] [--json FILE]
       record_cost.py --table FILE...      the tables of docs/results, of samples kept before

In one process, with recording on and off by turns, medians of the differences of pairs with their 95 % intervals. IMB
PingPong of 8 B between two ranks, with and without recording, by turns of jobs. Raw samples go into FILE.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

from palmette.record.reading import read_job
from palmette.run.prepared import prepare

ROOT = Path(__file__).resolve().parents[1]
MPICH = ROOT / ".mpi" / "mpich"
IMB = ROOT / ".mpi" / "impi" / "bin" / "IMB-MPI1"
LIBRARIES = {"LD_LIBRARY_PATH": str(MPICH / "lib")}
MODES = {
    "profile, no call paths": {"PALMETTE_PROFILE": "", "PALMETTE_CALL_PATHS": "0"},
    "profile": {"PALMETTE_PROFILE": ""},
    "trace, no call paths": {"PALMETTE_TRACE": "", "PALMETTE_CALL_PATHS": "0"},
    "trace": {"PALMETTE_TRACE": ""},
}


def interval(values: list[float]) -> tuple[float, float, float]:
    """Return the median and the bounds of its 95 % interval, by order statistics."""
    ordered = sorted(values)
    n = len(ordered)
    k = max(0, int(n / 2 - 0.98 * n**0.5))
    return statistics.median(ordered), ordered[k], ordered[n - 1 - k]


def recorded(words: list[str], settings: dict[str, str], folder: Path) -> str:
    """Run a command under the recorder and return its output."""
    values = {name: value or str(folder) for name, value in settings.items()}
    prepared = prepare(words, values, {**os.environ, **LIBRARIES})
    environment = {**os.environ, **prepared.environment, "PALMETTE_ENABLE": "0", **LIBRARIES}
    return subprocess.run(
        list(prepared.command), env=environment, capture_output=True, text=True, check=True, timeout=600
    ).stdout


def one_process(program: Path, settings: dict[str, str], pairs: int, folder: Path) -> dict[str, list[float]]:
    """Return kind -> differences on - off of pairs, in nanoseconds."""
    text = recorded([str(MPICH / "bin" / "mpiexec"), "-n", "1", str(program), str(pairs)], settings, folder)
    found: dict[str, list[tuple[str, float]]] = {}
    for line in text.splitlines():
        kind, which, value = line.split()
        found.setdefault(kind, []).append((which, float(value)))
    return {
        kind: [
            dict(values[i : i + 2])["on"] - dict(values[i : i + 2])["off"] for i in range(0, len(values), 2)
        ]
        for kind, values in found.items()
    }  # fmt: skip


def of_requests(found: dict[str, list[float]]) -> list[float]:
    """Return what a request costs, made and completed: three calls and two requests take place, less three calls."""
    call = statistics.median(found["call"])
    return [(both - 3 * call) / 2 for both in found["requests"]]


def print_tables(files: list[Path]) -> None:
    """Print what several runs found as Markdown: medians of each process, and IMB's differences."""
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    print("| | ns a call | of that, the clock | stated | ns a request, made and completed |\n|---|---|---|---|---|")
    for mode in MODES:
        columns = [
            [statistics.median(run[mode]["call"]) for run in runs], [run[mode]["clock"] for run in runs],
            [run[mode]["stated"] for run in runs], [statistics.median(of_requests(run[mode])) for run in runs],
        ]  # fmt: skip
        print(f"| {mode} | " + " | ".join(", ".join(f"{value:.0f}" for value in column) for column in columns) + " |")
    print("\n| IMB PingPong 8 B | alone, ns one way | more when recorded | 95 % interval | twice the stated cost |")
    print("|---|---|---|---|---|")
    for run in runs:
        for mode in MODES:
            if pairs := run.get(f"imb, {mode}"):
                middle, least, most = interval([on - off for off, on in pairs])
                alone = statistics.median(off for off, _ in pairs)
                twice = 2 * run[mode]["stated"]
                print(f"| {mode} | {alone:.0f} | {middle:+.0f} | {least:+.0f} to {most:+.0f} | {twice:.0f} |")


def imb(settings: dict[str, str] | None, folder: Path) -> float:
    """Return PingPong's time of 8 B in nanoseconds."""
    words = [str(MPICH / "bin" / "mpiexec"), "-n", "2", str(IMB), "PingPong", "-msglog", "3:3", "-iter", "200000",
             "-iter_policy", "off", "-time", "30"]  # fmt: skip
    if settings is None:
        text = subprocess.run(
            words, env={**os.environ, **LIBRARIES}, capture_output=True, text=True, check=True, timeout=600
        ).stdout
    else:
        text = recorded(words, settings, folder)
    match = re.search(r"^\s+8\s+\d+\s+([0-9.]+)", text, re.MULTILINE)
    if match is None:
        raise SystemExit(f"record_cost: no time of 8 B in IMB's output:\n{text}")
    return float(match[1]) * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--imb-pairs", type=int, default=15)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE")
    asked = parser.parse_args()
    if asked.table:
        print_tables(asked.table)
        return
    samples: dict[str, object] = {"machine": platform.platform(), "cpu": _cpu()}
    with tempfile.TemporaryDirectory() as temporary:
        program = Path(temporary) / "record_cost"
        subprocess.run(
            ["cc", "-O2", f"-I{MPICH / 'include'}", str(ROOT / "studies" / "record_cost.c"), "-o", str(program),
             f"-L{MPICH / 'lib'}", "-lmpi", f"-Wl,-rpath,{MPICH / 'lib'}"], check=True,
        )  # fmt: skip
        print(f"{'':24} {'ns a call':>20} {'ns a request':>20} {'stated':>8} {'clock':>6}")
        stated = {}
        for number, (mode, settings) in enumerate(MODES.items()):
            folder = Path(temporary) / f"recording-{number}"
            folder.mkdir()
            found = one_process(program, settings, asked.pairs, folder)
            process = read_job(folder).processes[0].recorded
            stated[mode] = process.call_cost_s * 1e9
            samples[mode] = {**found, "stated": stated[mode], "clock": process.clock_cost_s * 1e9}
            call, low, high = interval(found["call"])
            middle, least, most = interval(of_requests(found))
            print(f"{mode:24} {call:6.1f} ({low:5.1f}, {high:5.1f}) {middle:6.1f} ({least:5.1f}, {most:5.1f}) "
                  f"{process.call_cost_s * 1e9:8.1f} {process.clock_cost_s * 1e9:6.1f}", flush=True)  # fmt: skip
        if IMB.is_file() and asked.imb_pairs > 0:
            for mode in ("profile", "trace"):
                pairs = []
                for pair in range(asked.imb_pairs):
                    folder = Path(temporary) / f"imb-{mode}-{pair}"
                    folder.mkdir()
                    turns = [None, MODES[mode]] if pair % 2 else [MODES[mode], None]
                    times = {turn is not None: imb(turn, folder) for turn in turns}
                    pairs.append((times[False], times[True]))
                samples[f"imb, {mode}"] = pairs
                middle, least, most = interval([on - off for off, on in pairs])
                off, *_ = interval([off for off, _ in pairs])
                print(
                    f"IMB PingPong 8 B, {mode}: {off:.0f} ns one way alone, {middle:+.0f} ns ({least:+.0f}, "
                    f"{most:+.0f}) recorded; twice the stated cost is {2 * stated[mode]:.0f} ns",
                    flush=True,
                )
    if asked.json:
        asked.json.write_text(json.dumps(samples, indent=1), encoding="utf-8")


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
