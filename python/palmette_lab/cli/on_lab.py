"""Measuring commands of palmette on a lab."""

from __future__ import annotations

from palmette.cli import bench_app, bench_compose, bench_pattern
from palmette.cli import calibrate as palmette_calibrate
from palmette.cli import discover as palmette_discover
from palmette.cli import tune as palmette_tune
from palmette_lab.cli.place import on_lab

tune = on_lab(palmette_tune.command, "palmette-lab tune allreduce --lab 2leaf@50Mbit/s:2node@100Mbit/s:2core",
              placement="block,random:1")  # fmt: skip
calibrate = on_lab(palmette_calibrate.command, "palmette-lab calibrate --lab default", makes_default=False)
discover = on_lab(
    palmette_discover.command, "palmette-lab discover --from measurement --lab default", placement=None,
    makes_default=False, mpi=True,
)  # fmt: skip
app = on_lab(bench_app.command, "palmette-lab bench app --lab 2leaf:2node --mpi mpich -- ./app", makes_default=False)
pattern = on_lab(
    bench_pattern.command,
    "palmette-lab bench pattern rail dense:width=2 --lab 2leaf@100Mbit/s:2node@100Mbit/s:2core",
)
compose = on_lab(bench_compose.command, "palmette-lab bench compose broadcast,reduce --placement random:1")
