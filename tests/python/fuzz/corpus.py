"""Inputs that are right, for the fuzzer to damage: one small file of each kind that is read, and lines that name them.

Commands that would start a job, a lab or a tool stand here too: the harness stops them where they start it.
"""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
import sys
from pathlib import Path
from types import ModuleType

ON = "--machine 2leaf@18GB/s~2us:4node@6GB/s:2core"
TOPOLOGY = "--topology topology.json"
PATTERN = "stencil:4x2"

LINES = [
    "discover --from ibnetdiscover fabric.txt -o found.json",
    "discover --from ibnetdiscover ports.txt --json",
    "discover --from ibnetdiscover ibdiagnet.txt --name cluster",
    "discover --from slurm topology.conf --from hwloc node.xml",
    "discover --from slurm topology.conf -o made.json",
    "discover --from slurm blocks.conf --json",
    "discover --from slurm topology.yaml",
    "discover --from env addr.txt",
    "discover --from hwloc node.xml --json",
    "discover --from synthetic 2leaf@18GB/s~2us:3+5node@6GB/s:2socket:4core -o made.json",
    "calibrate --topology topology.json --budget 10s --target 5% --abi mpich @MPIEXEC@ -n 4",
    "show topology.json",
    "show topology.json --json --all",
    "show topology.json --svg tree.svg",
    f"plan gather {ON} --placement random:1 --size 1K --verify --count",
    f"plan allreduce {ON} --algorithm ring --size 64K --count --json",
    f"plan bcast {TOPOLOGY} --algorithm chain:segment=4K --root 3 --svg plan.svg",
    f"plan alltoall {ON} --placement ranks.txt --rank 2",
    f"plan allgather {TOPOLOGY} --placement hosts=n1,n2,n3,n4 --algorithm ring --all",
    "plan reduce_scatter --list",
    f"plan --predict gather,bcast {ON} --sizes 64,1K --algorithm linear",
    f"plan --predict allreduce {TOPOLOGY} --sizes 4K --svg curve.svg --json",
    f"plan --bound allreduce {ON} --size 1M",
    f"plan --bound allgather {TOPOLOGY} --sizes 64,1K --ports node=2 --at-once 2 --json",
    f"plan --bound bcast {ON} --size 64K --in-network",
    f"plan --flow allgather {ON} --size 16K --algorithm ring --exact",
    f"plan --flow alltoall {TOPOLOGY} --size 1K --traffic alltoall:half:64K --seed 3 --svg flow.svg",
    f"plan --flow bcast {ON} --size 64K --json --over-time --exact",
    f"map {ON} --pattern {PATTERN} --size 4K --method auto",
    f"map {TOPOLOGY} --matrix matrix.txt --write rankfile=ranks.out",
    f"map {ON} --matrix traffic.json --svg map.svg --json",
    "map --machine 2node@6GB/s:1core --matrix seen.0.prof",
    "map --distances distances.txt --pattern ring",
    "map --list",
    f"compose allreduce {ON} --method tree.2 --stripes 2 --pipeline 2 --size 4K",
    "compose composition.json --ranks 4 --hierarchy 2:2",
    "compose composition.py --ranks 8 --hierarchy 2:4 --landings 2 --json",
    f"compose broadcast {TOPOLOGY} --auto --rank 1",
    "compose --list",
    f"explain allreduce 64K {ON} --table table.json --rows",
    f"explain bcast 1K {TOPOLOGY} --placement cyclic --ranks 4 --mpi mpich --json",
    f"explain gather 1K {ON} --store runs.sqlite --oversubscribed --ordered --no-model",
    "explain --report report.json --json",
    "run --report out.json --topology topology.json --print @MPIEXEC@ -n 4 ./a.out",
    "run --force gather=linear --table table.json --profile run.out @MPIEXEC@ -n 2 -hosts a,b ./a.out : -n 2 ./a.out",
    "run --abi ompi -v --json ./srun -n 4 --multi-prog multi.conf",
    "run --off ./mpirun --map-by ppr:2:node -x A=b python script.py",
    "lab bench gather,allgather --sizes 64,1K --lab 2leaf:2node --placement random:1 --seconds 0.1 --env A=b",
    "lab bench --set one-node --store runs.sqlite -n 2 --budget 10s --resume",
    "lab bench bcast --rival mpich-topology --traffic alltoall:half --floor --repeat 2 -n 2",
    "bench report 1 last~1 --store runs.sqlite",
    "lab bench pattern rail:groups=2:way=both fan:groups=4:width=2 --sizes 1M --lab 2leaf:2node --svg rates.svg",
    "lab bench compose broadcast,reduce --factoring method=ring,tree.2 --lab 2leaf:2node --sizes 64K --svg times.svg",
    "tune gather --sizes 1K --budget 40s --plan --topology topology.json -- @MPIEXEC@ -n 8",
    "lab tune allreduce --sizes 64K --lab 2leaf:2node --plan --table table.json --candidates 4 --json",
    "lab simulate --machine 2leaf@2GB/s:2node@1GB/s:2core --collectives gather --sizes 64 --write-platform p.xml",
    "lab simulate --topology topology.json --ppn 2 --placement cyclic --rivals mpich --write-platform platform.xml",
    "lab simulate --platform fat-tree-256 --ranks 64 --parameters parameters.json --write-platform platform.xml",
    "lab simulate --list",
    "lab up 2leaf@50Mbit/s:2node@100Mbit/s:2core --spine-delay 5ms --lifetime 1min",
    "lab run --mpi mpich --placement ranks.txt --ppn 2 -n 4 --env A=b --print -- ./a.out",
    "lab status --name other --json",
    f"export --format openmpi-tuned --format ucc-tune {TOPOLOGY} --placement block -o exported",
    f"export --format mpich-tuning {ON} --hosts h0,h1,h2,h3 --table table.json --commutative",
    "bench report last --store runs.sqlite -o page.html",
    "lab demo --local --mpi mpich --folder demo-out",
    "settings --json",
]
"""Command lines that the command accepts, or nearly: the fuzzer starts from them."""


def write(folder: Path) -> list[str]:
    """Write the files that LINES name, and return their names."""
    from palmette.cli.main import main

    texts = {
        **_listings(),
        **_TEXTS,
        "table.json": _table(),
        "report.json": _report(),
        "parameters.json": _parameters(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    if main(["discover", "--from", "ibnetdiscover", str(folder / "fabric.txt"), "-o", str(folder / "topology.json")]):
        raise RuntimeError("the corpus makes no topology")
    _write_stores(folder)
    for name in ("srun", "mpirun"):
        (folder / name).write_text("#!/bin/sh\nexec true\n", encoding="ascii")
    return sorted([*texts, "srun", "mpirun", "topology.json", "runs.sqlite", "a.out"])


def _listings() -> dict[str, str]:
    """A fabric of two leaves in three dialects of ibnetdiscover."""
    listing = _module("listing", "discover/listing.py")
    fabric = listing.two_leaves()
    text = fabric.text()
    return {
        "fabric.txt": text, "ports.txt": fabric.ports(random.Random(1)), "ibdiagnet.txt": listing.ibdiagnet(text)
    }  # fmt: skip


def _module(name: str, path: str) -> ModuleType:
    """A helper of other tests."""
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", Path(__file__).parents[1] / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_TEXTS = {
    "topology.conf": "SwitchName=s0 Nodes=n[1-2]\n"
    "SwitchName=s1 Nodes=n[3-4] LinkSpeed=100\nSwitchName=top Switches=s[0-1]\n",
    "blocks.conf": "BlockName=b1 Nodes=n[01-04]\nBlockName=b2 Nodes=n[05-08]\nBlockSizes=4,8\n",
    "topology.yaml": "- topology: main\n  cluster_default: true\n  tree:\n    switches:\n      - switch: top\n"
    "        children: s[0-1]\n      - switch: s0\n        nodes: n[1-2]\n      - switch: s1\n        nodes: n[3-4]\n",
    "addr.txt": "top.s0.n1 switch.switch.node\ntop.s0.n2 switch.switch.node\ntop.s1.n3 switch.switch.node\n",
    "node.xml": '<?xml version="1.0"?>\n<topology version="2.0"><object type="Machine" cpuset="0x000000ff">'
    '<info name="HostName" value="n1"/>'
    + "".join(
        f'<object type="Package" cpuset="0x{0xF << first:08x}">'
        + "".join(f'<object type="Core" cpuset="0x{3 << pu:08x}"/>' for pu in (first, first + 2))
        + "</object>"
        for first in (0, 4)
    )
    + "</object></topology>\n",
    "ranks.txt": "h0\nh1:2 # two\nh4\nh5:3\n",
    "matrix.txt": "0 10 0 5\n10 0 3 0\n0 3 0 9\n5 0 9 0\n",
    "distances.txt": "".join(
        " ".join(str(abs(a // 4 - b // 4) + (a != b)) for b in range(8)) + "\n" for a in range(8)
    ),
    "traffic.json": json.dumps({"format": "palmette-traffic", "version": 1, "ranks": 8,
                                "messages": [[rank, (rank + 1) % 8, 1000] for rank in range(8)]}),
    "composition.json": json.dumps({"ranks": 4, "bytes": 1024, "blocks": 4, "phases": [
        [{"multicast": 0, "to": "all", "source": "x", "blocks": [0, 2], "target": "y"}],
        [{"reduce": [0, 1], "to": 3, "source": "y", "blocks": [0, 1], "target": "z", "operation": "sum"}]]}),
    "composition.py": "from palmette.compose import Composition\n\n\ndef composition(ranks, bytes):\n"
    "    made = Composition(ranks, bytes=bytes, blocks=ranks)\n"
    "    x, y = made.buffer('x'), made.buffer('y')\n    made.multicast(0, 'all', x[0:ranks], y)\n"
    "    return made\n",
    "seen.0.prof": "# POINT TO POINT\nE\t0\t1\t3000 bytes\t3 msgs sent\n",
    "seen.1.prof": "# POINT TO POINT\nE\t1\t0\t10 bytes\t1 msgs sent\n",
    "multi.conf": "0 ./a.out\n1-3 ./b.out one two\n",
}  # fmt: skip


def _table() -> str:
    rows = [
        {"function": "bcast", "max_bytes": 65536, "algorithm": "chain", "why": "tuned"},
        {"function": "allreduce", "min_ranks": 2, "max_ranks": 64, "mpi": "mpich", "algorithm": "ring"},
        {"function": "gather", "algorithm": "mpi"},
    ]
    return json.dumps({"format": "palmette-table", "version": 1, "rows": rows}, indent=1)


def _parameters() -> str:
    from palmette_lab.simulate.parameters import FILE

    return FILE.read_text(encoding="utf-8")


def _report() -> str:
    return (Path(__file__).parents[2] / "data" / "inputs" / "report.json").read_text(encoding="utf-8")


def _write_stores(folder: Path) -> None:
    """Stored runs of `palmette bench`, and a program as `palmette run` looks into one."""
    from palmette.bench.store import open_store

    made_runs = _module("made_runs", "bench/conftest.py")
    with open_store(folder / "runs.sqlite", create=True) as store:
        for sizes in ((64,), (64, 16384)):
            run = made_runs.make_run(sizes=sizes, placements=("block",))
            for job in run.jobs:
                store.add(run, job)
    shutil.copy("/bin/true", folder / "a.out")
