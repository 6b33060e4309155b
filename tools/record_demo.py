"""Replace the run that `palmette demo` shows where no lab is possible.

On a machine with nothing else to do:

    sudo palmette-lab demo --mpi mpich && python tools/record_demo.py demo/runs.sqlite

No pair of it should be left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

from palmette.bench import recorded
from palmette.bench.store import open_store

if __name__ == "__main__":
    with open_store(Path(sys.argv[1]), create=False) as store:
        recorded.write(recorded.PATH, store.load("last"))
