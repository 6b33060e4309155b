"""What a report costs: wall and processor time, and the memory that it takes besides the mapped recording.

    cmake --build build/release --target findings_speed
    python studies/report_cost.py FOLDER                  # a recording that is there
    python studies/report_cost.py --big /tmp              # 61 million calls of 1,024 ranks with samples: 2.4 GB there

Memory is the most of RssAnon that was seen, 20 times a second, of the process that reports.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RANKS, CALLS, SAMPLES, CONTEXTS = 1024, 60_000, 3000, 2000
PAUSE_S = 0.05


def own_bytes(process: int) -> int:
    """Return the anonymous memory of a process; 0: it has ended."""
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("RssAnon:")]
    return int(found[0]) * 1024 if found else 0


def report(folder: Path, page: Path) -> None:
    """Report a recording to its page; print what that cost."""
    command = [
        sys.executable,
        "-c",
        "from palmette.cli.main import main; main()",
        "report",
        str(folder),
        "-o",
        str(page),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin, most = time.monotonic(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            most = max(most, own_bytes(running.pid))
            time.sleep(PAUSE_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if running.returncode:
        sys.exit(running.returncode)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    busy = os.getloadavg()[0]
    print(
        f"{time.monotonic() - begin:.1f} s, {cpu_s:.1f} s of processor time, {most / 1e9:.2f} GB of own memory; "
        f"page {page.stat().st_size / 1e6:.1f} MB; load {busy:.0f} on {os.cpu_count()} processors"
    )


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--big", action="store_true", help="write such a recording there, and take it away")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder if given.big else None) as made:
        folder = given.folder
        if given.big:
            folder = Path(made) / "calls"
            folder.mkdir()
            writes = ROOT / "build/release/studies/findings_speed"
            numbers = (RANKS, CALLS, 0, 1, SAMPLES, CONTEXTS)
            subprocess.run([writes, folder, *map(str, numbers)], check=True)
        report(folder, Path(made) / "report.html")


if __name__ == "__main__":
    main()
