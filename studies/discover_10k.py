"""Time and memory of `palmette discover` and `palmette show` on a fabric of 10,368 hosts.

    python studies/discover_10k.py [--json]

Makes the listing of a three-level fat tree (24 pods x 24 leaves x 18 hosts), runs both commands as a user would, each
as a process of its own, and fails when together they take 3 s or more, or one of them 500 MB or more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fat_tree import write_fat_tree

LIMIT_S = 3.0
LIMIT_BYTES = 500e6


def _run(arguments: list[str]) -> tuple[float, int]:
    """Wall seconds and peak resident bytes of one palmette process; raises when it fails."""
    code = "import sys; from palmette.cli.main import main; sys.exit(main())"
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"palmette {' '.join(arguments)} ended with status {process.returncode}")
    return elapsed, usage.ru_maxrss * 1024


def main() -> int:
    """Measure and print; exit status 1 when a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        listing, topology, picture = (
            str(Path(folder) / name) for name in ("fabric.txt", "topology.json", "fabric.svg")
        )
        with open(listing, "w", encoding="utf-8") as stream:
            hosts = write_fat_tree(stream, pods=24, leaves=24, uplinks=18, hosts=18, cores=18)
        size = Path(listing).stat().st_size
        discover_s, discover_bytes = _run(["discover", "--from", "ibnetdiscover", listing, "-o", topology])
        show_s, show_bytes = _run(["show", topology, "--svg", picture])
    good = discover_s + show_s < LIMIT_S and max(discover_bytes, show_bytes) < LIMIT_BYTES
    if options.json:
        result = {
            "hosts": hosts, "input_bytes": size, "discover_s": discover_s, "show_s": show_s,
            "discover_peak_bytes": discover_bytes, "show_peak_bytes": show_bytes, "within_limits": good,
        }  # fmt: skip
        print(json.dumps(result, indent=2))
    else:
        print(f"{hosts:,} hosts, {size / 1e6:.1f} MB of text")
        print(f"discover  {discover_s:6.2f} s  {discover_bytes / 1e6:6.0f} MB")
        print(f"show      {show_s:6.2f} s  {show_bytes / 1e6:6.0f} MB")
        limits = f"limit {LIMIT_S:.0f} s, {LIMIT_BYTES / 1e6:.0f} MB"
        print(f"together  {discover_s + show_s:6.2f} s  ({limits}): {'ok' if good else 'TOO MUCH'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
