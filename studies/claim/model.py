"""Times for claims about hundreds of ranks: every message of a plan played by the model, or simulated in SimGrid."""

from __future__ import annotations

import json
from functools import cache

from palmette import _core
from palmette.settings import force
from palmette_lab.simulate import cluster, job, parameters, run, simgrid
from palmette_lab.simulate.errors import SimulateError

from .form import CannotRunError

VALUES = parameters.read()
"""Overheads and latencies of `palmette-lab simulate`."""
SERVERS = parameters.read(parameters.file_named("servers"))
"""Parameters of hosts whose ranks share a memory (docs/method/simulating.md)."""


@cache
def job_on(machine: str, placement: str = "block", share: float = 1.0) -> _core.Job:
    """Return the job on a stored platform or a synthetic machine, with the simulator's costs where it says none.

    `share`: of the switches' uplinks.
    """
    made = cluster.from_spec(machine) if ":" in machine else cluster.from_stored(machine)
    bed = cluster.prepared(made, VALUES, share)
    seats = job.make_job(bed, placement, None).seats
    return _core.Job(_core.Machine.from_json(json.dumps(bed.topology.to_json())), f"hosts={','.join(seats)}")


@cache
def seconds(on: _core.Job, collective: str, algorithm: str, size: int, shared_memory: bool = False) -> float:
    """Return the time of a plan on a job."""
    found = _core.predict_algorithm(on, collective, algorithm, _core.Costs.of(on), 0, size, shared_memory=shared_memory)
    return float(found.seconds)


@cache
def simulated(machine: str, collective: str, algorithm: str, sizes: tuple[int, ...]) -> dict[int, float]:
    """Return simulated seconds by size, of right results, on hosts whose ranks share a memory.

    Raises CannotRunError.
    """
    made = cluster.from_spec(machine) if ":" in machine else cluster.from_stored(machine)
    seats = job.make_job(cluster.prepared(made, SERVERS), "block", None)
    try:
        smpirun = simgrid.find_smpirun()
        found = run.simulate(
            smpirun, seats, SERVERS, run.PALMETTE, collective, sizes, environment=force(**{collective: algorithm}),
            cpu_limit_s=600,
        )  # fmt: skip
    except SimulateError as error:
        raise CannotRunError(str(error)) from None
    if found.trouble or any(found.wrong_ranks.values()):
        raise CannotRunError(f"{algorithm}: {found.trouble or 'wrong results'}")
    if not all(name.startswith(algorithm) for name in found.algorithms.values()):
        raise CannotRunError(f"{algorithm} wasn't taken: {found.algorithms}")
    return {size: found.times_s[size] for size in sizes}
