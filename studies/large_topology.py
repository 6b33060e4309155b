"""CPU time and memory that a job's rank 0 needs for the topology.json of a large cluster.

    python studies/large_topology.py [--pods 24]

Writes the fabric of 432 hosts a pod as `palmette discover` does, reads it in a process of its own as the preload
library does, and prints CPU time (user and system) and the most memory that this took. A run on a busy machine counts:
CPU time is taken, not time of day.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fat_tree import write_fat_tree

READS = """\
import resource, sys
from palmette import _core
def used():
    now = resource.getrusage(resource.RUSAGE_SELF)
    return now.ru_utime + now.ru_stime
def kept():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6
before, memory = used(), kept()
machine = _core.Machine.from_file(sys.argv[1])
hosts, seconds = len(machine.hosts), used() - before
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(f"{hosts:,} hosts: {seconds * 1e3:.1f} ms of CPU time, {peak - memory:.1f} MB more at most")
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pods", type=int, default=24)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        listing, topology = Path(folder) / "fabric.txt", Path(folder) / "topology.json"
        with listing.open("w", encoding="utf-8") as stream:
            write_fat_tree(stream, pods=options.pods, leaves=24, uplinks=18, hosts=18, cores=18)
        command = "import sys; from palmette.cli.main import main; sys.exit(main())"
        words = ["discover", "--from", "ibnetdiscover", str(listing), "-o", str(topology)]
        subprocess.run([sys.executable, "-c", command, *words], check=True, stdout=subprocess.DEVNULL)
        print(f"{topology.stat().st_size / 1e6:.1f} MB of JSON")
        for _ in range(3):
            subprocess.run([sys.executable, "-c", READS, str(topology)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
