"""Inside of one node: a chunk per rank against a leader with two copies, and page faults of fresh buffers."""

from __future__ import annotations

import os
import statistics
import subprocess
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.mpi.abi import LIBRARIES
from palmette.mpi.errors import RunError
from palmette.mpi.install import find

from .form import (
    DIRECTION,
    MEASURED,
    MODEL,
    REFUTED,
    ROOT,
    SHOWN,
    CannotRunError,
    Claim,
    ClaimOutcome,
    Options,
    Table,
    middle,
    quiet,
    us,
)

LEADER = "leaders:leaders=1,inside=shared"
"""All copy into shared memory, one combines, all copy out: two copies."""
CHUNK_PER_RANK = "shared:single=1"
"""Each rank combines its chunk of what the others hold, where it lies: single copies."""
PREDICTED_CHUNK = "leaders:leaders=all,inside=shared"
FROM = 128 * 1024
"""Bytes from which on the slides find two copies unsuitable."""
RANKS = 2


@cache
def program(name: str) -> Path:
    """Compile a program of studies/ for MPICH."""
    made = ROOT / "build" / f"claims.{name}.mpich"
    made.parent.mkdir(exist_ok=True)
    try:
        compiler = find("mpich").mpiexec.parent / "mpicc"
    except RunError as error:
        raise CannotRunError(str(error)) from None
    words = [str(compiler), "-O1", "-Wl,--enable-new-dtags", str(ROOT / "studies" / f"{name}.c"), "-o", str(made)]
    subprocess.run(words, check=True, capture_output=True)
    return made


def preload(forced: str = "") -> dict[str, str]:
    """Return the settings of ranks that palmette serves, by one algorithm if it is named."""
    library = LIBRARIES / "libpalmette_mpich.so"
    if not library.is_file():
        raise CannotRunError("palmette isn't built for MPICH: `make build`")
    settings = {"LD_PRELOAD": str(library), "PALMETTE_COMPARE": "0", "PALMETTE_SERVE_AFTER": "0"}
    return settings | ({"PALMETTE_FORCE": f"allreduce={forced}"} if forced else {})


def run(name: str, words: Sequence[str], settings: dict[str, str]) -> list[list[str]]:
    """Run a job of two ranks on this machine; return the words of its lines."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("PALMETTE_")}
    environment = [word for key, value in settings.items() for word in ("-genv", key, value)]
    command = [str(find("mpich").mpiexec), "-n", str(RANKS), *environment, str(program(name)), *words]
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise CannotRunError(f"{name} under MPICH: status {done.returncode}: {done.stderr.strip()[-300:]}")
    return [line.split() for line in done.stdout.splitlines()]


def copies(options: Options) -> ClaimOutcome:
    """A leader with two copies isn't for long vectors."""
    sizes = (1 << 14, FROM) if options.small else tuple(1 << shift for shift in range(13, 23))
    samples: list[dict[str, Any]] = []
    for turn, algorithm in product(range(2 if options.small else 5), (LEADER, CHUNK_PER_RANK)):
        lines = run("claims_node", ["25", *map(str, sizes)], preload(algorithm))
        samples += [
            {"algorithm": algorithm, "round": turn, "bytes": int(size), "seconds": [float(word) for word in seconds]}
            for size, kind, _, *seconds in lines if kind == "reused"
        ]  # fmt: skip
    rows, ratios, modelled = [], {}, {}
    job = _core.Job(_core.Machine.synthetic("1node:2socket:16core"), "block")
    costs = _core.Costs.of(job)
    for size in sizes:
        of = {name: [one["seconds"] for one in samples if (one["algorithm"], one["bytes"]) == (name, size)]
              for name in (LEADER, CHUNK_PER_RANK)}  # fmt: skip
        took = {name: quiet([s for seconds in of[name] for s in seconds]) for name in of}
        each = [quiet(a) / quiet(b) for a, b in zip(of[LEADER], of[CHUNK_PER_RANK], strict=True)]
        ratios[size] = took[LEADER] / took[CHUNK_PER_RANK]
        leader, chunk = (
            _core.predict_algorithm(job, "allreduce", one, costs, 0, size, shared_memory=True, element_bytes=8).seconds
            for one in (LEADER, PREDICTED_CHUNK)
        )
        modelled[size] = leader / chunk
        rows.append(
            [_core.format_size(size), us(took[LEADER]), us(took[CHUNK_PER_RANK]),
             f"{ratios[size]:.2f} ({min(each):.2f} to {max(each):.2f})", f"{modelled[size]:.1f}"]
        )  # fmt: skip
    above = [ratios[size] for size in sizes if size >= FROM]
    table = Table(
        f"`{LEADER}` against `{CHUNK_PER_RANK}`, {RANKS} ranks on this machine, MPICH, forced by turns, up to 0.1 ms "
        "of waking up included. First quartiles of all calls, since any load holds up one of two ranks; ratio, its "
        f"least and largest by neighbouring jobs. Model: 32 ranks on 2 sockets, `{PREDICTED_CHUNK}` for the latter.",
        ["vector", "leader", "a chunk per rank", "ratio", "model, 32 ranks"],
        rows,
    )
    return ClaimOutcome(
        DIRECTION if middle(above) > 1 and min(modelled.values()) > 1 else REFUTED,
        f"from 128K on the leader takes {min(above):.2f} to {max(above):.2f} times as long with {RANKS} ranks, "
        f"{modelled[FROM]:.0f} times by the model with 32",
        f"one core combines what all could, and each byte is copied twice more; with {RANKS} ranks it can lose "
        "little, and there is no threshold at 128K: it loses wherever combining counts",
        [table],
        samples,
    )


def faults(options: Options) -> ClaimOutcome:
    """At 1 MB page faults take the gain."""
    sizes = (1 << 18, 1 << 20) if options.small else tuple(1 << shift for shift in range(14, 24))
    samples: list[dict[str, Any]] = []
    for turn, by in product(range(2 if options.small else 5), ("palmette", "the MPI alone")):
        for written, kind, count, *seconds in run(
            "claims_node", ["25", *map(str, sizes)], preload() if by == "palmette" else {}
        ):
            samples.append({"round": turn, "by": by, "bytes": int(written), "buffers": kind, "faults": float(count),
                            "seconds": [float(word) for word in seconds]})  # fmt: skip

    def times(by: str, kind: str, size: int) -> list[float]:
        wanted = (by, kind, size)
        return [quiet(one["seconds"]) for one in samples if (one["by"], one["buffers"], one["bytes"]) == wanted]

    def of(by: str, size: int) -> list[float]:
        pairs = zip(times(by, "fresh", size), times(by, "reused", size), strict=True)
        return [fresh / reused for fresh, reused in pairs]

    rows, per_call = [], {}
    for size in sizes:
        each, alone = of("palmette", size), of("the MPI alone", size)
        taken = {kind: statistics.mean(one["faults"] for one in samples
                                       if (one["by"], one["buffers"], one["bytes"]) == ("palmette", kind, size))
                 for kind in ("reused", "fresh")}  # fmt: skip
        per_call[size] = taken["fresh"]
        rows.append(
            [_core.format_size(size), *(us(middle(times("palmette", kind, size))) for kind in ("reused", "fresh")),
             f"{middle(each):.2f} ({min(each):.2f} to {max(each):.2f})", f"{taken['reused']:.0f}",
             f"{taken['fresh']:.0f}", f"{middle(alone):.2f} ({min(alone):.2f} to {max(alone):.2f})"]
        )  # fmt: skip
    table = Table(
        f"Receive buffers that are reused, or new for each call, by turns; {RANKS} ranks on this machine, MPICH with "
        "palmette's choice, and in the last column alone; first quartiles of a job's calls, ratios by job, median, "
        "least and largest; minor faults of both ranks in a call.",
        ["vector", "reused", "fresh", "ratio", "faults, reused", "faults, fresh", "ratio, MPICH alone"],
        rows,
    )
    mega = 1 << 20
    ratios = {size: middle(of("palmette", size)) for size in sizes}
    worst = max(ratios, key=lambda size: ratios[size])
    more = middle(times("palmette", "fresh", mega)) - middle(times("palmette", "reused", mega))
    return ClaimOutcome(
        SHOWN if ratios[mega] > 1.1 else DIRECTION if ratios[worst] > 1.1 else REFUTED,
        f"fresh buffers of 1M take {ratios[mega]:.2f} times as long, with {per_call[mega]:.0f} faults a call "
        f"({us(more / (per_call[mega] / RANKS))} each); most at {_core.format_size(worst)} ({ratios[worst]:.2f}); with "
        f"MPICH alone {middle(of('the MPI alone', mega)):.2f}",
        "each page of a new buffer is found, cleared and mapped at its first touch, which single copies can't avoid; "
        "so it is at every size for which malloc returns new pages, and 1M isn't special",
        [table],
        samples,
    )


CLAIMS = (
    Claim("copies", "A leader with two copies isn't suitable for long vectors", "128K and more", False,
          f"{MEASURED}, {MODEL}", copies),
    Claim("faults", "At 1 MB page faults decrease the benefit", "no number; to be investigated, it says", False,
          MEASURED, faults),
)  # fmt: skip
