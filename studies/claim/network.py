"""What an aggregator does to bytes and bandwidth, in pieces and batches, and where the gain at 2 nodes comes from."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from functools import cache
from itertools import product
from typing import Any

from palmette import _core
from palmette.lab import Lab
from palmette.lab.errors import LabError
from palmette.measure.places import free_lab_name

from .form import (
    DIRECTION,
    MEASURED,
    MODEL,
    REFUTED,
    ROOT,
    SHOWN,
    SIMULATED,
    CannotRunError,
    Claim,
    Found,
    Options,
    Table,
    middle,
    us,
)
from .node import preload, program
from .small import PAYLOAD, RADIX, WINDOW, network_s, simulated

LAB_SAMPLES = ROOT / "docs" / "results" / "2026-11-28-in-network" / "samples.json"
FRAME = 1514 / 1448
"""Bytes on the wire for each byte of payload."""
MEGABYTE = 1 << 20
THRESHOLD = 16384
"""From here on libsharp streams by default (SHARP_COLL_SAT_THRESHOLD), and the seed's pieces cost nothing."""
SEED_GAINS = {
    ("MRI", 32): (81.43, 83.05, 79.44),
    ("MRI", 64): (86.4, 88.52, 78.36),
    ("HPCAC", 32): (33.67, 32.62, 58.08),
    ("HPCAC", 64): (60.0, 46.91, 52.13),
}
"""Per cent over the state of the art at 2, 4 and 8 nodes, from the text of its slides."""


@cache
def lab_samples() -> dict[str, Any]:
    """Return what studies/in_network.py measured."""
    found: dict[str, Any] = json.loads(LAB_SAMPLES.read_text(encoding="utf-8"))
    return found


def job_of(spec: str) -> _core.Job:
    """Return the job that fills a machine."""
    return _core.Job(_core.Machine.synthetic(spec), "block")


def predicted(job: _core.Job, algorithm: str, size: int) -> _core.Prediction:
    """Return the play of an allreduce's plan, in which ranks of a node read each other's memory."""
    return _core.predict_algorithm(
        job, "allreduce", algorithm, _core.Costs.of(job), 0, size, shared_memory=True, element_bytes=8
    )


def traffic(_: Options) -> Found:
    """Bytes out of an adapter: 2 (k-1)/k of the vector among hosts, once through a switch."""
    rows = []
    measured = {(one["nodes"], one["variant"]): one for one in lab_samples()["bytes"]}
    right = True
    for nodes in (2, 4, 8, 16):
        shares = []
        for in_network in (False, True):
            bound = _core.bound(job_of(f"{nodes}node@1GB/s"), "allreduce", MEGABYTE, 0, in_network=in_network)
            shares.append(bound.seconds * 1e9 / MEGABYTE)
        lab = [measured.get((nodes, variant)) for variant in ("hosts", "aggregators")]
        texts = [
            "" if one is None else f"{statistics.mean(one['sent_bytes'].values()) / FRAME / MEGABYTE:.3f}"
            for one in lab
        ]
        right &= abs(shares[0] / shares[1] - 2 * (nodes - 1) / nodes) < 1e-6
        rows.append([str(nodes), f"{shares[0]:.3f}", f"{shares[1]:.3f}", f"{shares[0] / shares[1]:.3f}", *texts])
    eight = [
        statistics.mean(measured[8, v]["sent_bytes"].values()) / FRAME / MEGABYTE for v in ("hosts", "aggregators")
    ]
    table = Table(
        "Multiples of the vector that leave a node: the lower bounds of all plans, and counted on the lab's "
        "interfaces "
        "(1 MB, [aggregators](2026-11-28-in-network.md); above 1 are acknowledgements).",
        ["nodes", "hosts, bound", "switch, bound", "ratio", "hosts, lab", "aggregator, lab"],
        rows,
    )
    return Found(
        SHOWN if right and eight[0] / eight[1] > 1.6 else REFUTED,
        f"{rows[0][3]}, {rows[1][3]}, {rows[2][3]} at 2, 4, 8 nodes; counted {eight[0] / eight[1]:.2f} at 8",
        "a switch sends back what each host would have to send a second time; at 2 nodes there is nothing of that kind",
        [table],
        {"bytes": lab_samples()["bytes"]},
    )


def bandwidth(_: Options) -> Found:
    """Streaming reductions reach the bandwidth of a message."""
    rows = []
    jobs = [job for job in lab_samples()["jobs"] if job["lab"] == "eight nodes" and job["variant"] == "aggregators"]
    shares, gains = {}, {}
    for size in (1 << 18, 1 << 20):
        seconds = middle([s for job in jobs if job["bytes"] == size for s in job["seconds"]])
        hosts = [
            s for job in lab_samples()["jobs"]
            if (job["lab"], job["variant"], job["bytes"]) == ("eight nodes", "hosts", size) for s in job["seconds"]
        ]  # fmt: skip
        alone = [
            s for job in lab_samples()["jobs"]
            if (job["lab"], job["variant"], job["bytes"]) == ("eight nodes", "alone", size) for s in job["seconds"]
        ]  # fmt: skip
        line = size * FRAME / (50e6 / 8)
        job = job_of("aggregator:8node@50Mbit/s:2core")
        played = predicted(job, "in_network", size).seconds * FRAME
        shares[size], gains[size] = line / seconds, middle(hosts) / seconds
        rows.append(
            [_core.format_size(size), _core.format_duration(line), _core.format_duration(seconds),
             f"{line / seconds:.0%}", f"{line / played:.0%}", f"{gains[size]:.2f}", f"{middle(alone) / seconds:.1f}"]
        )  # fmt: skip
    table = Table(
        "Eight nodes of two ranks at 50 Mbit/s, an aggregator at their switch; `of a message`: the time of a "
        "stream of the "
        "same bytes at the rate of the link over that of the allreduce; medians of three MPIs, from the samples of "
        "[aggregators](2026-11-28-in-network.md).",
        [
            "vector",
            "message",
            "allreduce",
            "of a message",
            "the same, model",
            "hosts' best plan over it",
            "the MPI alone",
        ],
        rows,
    )
    return Found(
        SHOWN if shares[MEGABYTE] >= 0.85 else DIRECTION,
        f"{shares[MEGABYTE]:.0%} of a message's bandwidth at 1M, {shares[1 << 18]:.0%} at 256K",
        "the vector passes each link once in each direction, in segments; the first goes up and down before the "
        "rest hides "
        "it, so that short vectors have less",
        [table],
        {"lab": "docs/results/2026-11-28-in-network/samples.json"},
    )


CHUNK_LAB = "aggregator:4node@100Mbit/s:1core"
CHUNKS = tuple(1 << shift for shift in range(10, 19))


@cache
def in_segments(small: bool) -> list[dict[str, Any]]:
    """Allreduces of 1 MB through a lab's aggregator in segments of each size, by turns; their jobs' calls."""
    size = MEGABYTE // 4 if small else MEGABYTE
    out: list[dict[str, Any]] = []
    try:
        with Lab.up(CHUNK_LAB, name=free_lab_name("claims")) as lab:
            settings = preload() | {"PALMETTE_TOPOLOGY": str(lab.topology_path)}
            for turn, chunk in product(range(1 if small else 3), CHUNKS[::4] if small else CHUNKS):
                force = {"PALMETTE_ALLREDUCE": f"in_network:segment={chunk},window=4096"}
                words = [str(program("in_network")), "4" if small else "7", str(size)]
                done = lab.run(words, mpi="mpich", placement="block", env=settings | force, capture=True, timeout_s=120)
                if done.returncode:
                    raise CannotRunError(f"segments of {chunk}: status {done.returncode}: {done.stderr[-300:]}")
                seconds = [float(word) for word in done.stdout.split()[1:]]
                out.append({"bytes": size, "segment": chunk, "round": turn, "seconds": seconds})
    except (LabError, PermissionError) as error:
        raise CannotRunError(str(error)) from None
    return out


def chunk_s(size: int, chunk: int) -> float:
    """Return the closed form of pieces at once: below the threshold in slots, from it on streamed one behind "
    "the other.
    """
    if chunk < THRESHOLD:
        return network_s(8, size)
    return network_s(8, PAYLOAD) + size / 12.5e9 + 0.3e-6 * (size // chunk - 1)


def chunks(options: Options) -> Found:
    """Pieces of 16 KB and more cost nothing."""
    samples = in_segments(options.small)
    size = samples[0]["bytes"]
    measured = {chunk: middle([s for one in samples if one["segment"] == chunk for s in one["seconds"]])
                for chunk in sorted({one["segment"] for one in samples})}  # fmt: skip
    best = min(measured, key=lambda chunk: measured[chunk])
    reference = chunk_s(size, 1 << 18)
    rows = []
    for chunk, seconds in measured.items():
        quartiles = statistics.quantiles([s for one in samples if one["segment"] == chunk for s in one["seconds"]], n=4)
        rows.append(
            [_core.format_size(chunk), str(size // chunk), _core.format_duration(seconds),
             f"{seconds / measured[best]:.2f} ({quartiles[0] / measured[best]:.2f} to "
             f"{quartiles[2] / measured[best]:.2f})",
             f"{chunk_s(size, chunk) / reference:.2f}"]
        )  # fmt: skip
    above = [measured[chunk] / measured[best] for chunk in measured if THRESHOLD <= chunk <= 1 << 16]
    below = [measured[chunk] / measured[best] for chunk in measured if chunk < THRESHOLD]
    knee = next((chunk for chunk in measured if measured[chunk] <= 1.1 * measured[best]), best)
    table = Table(
        f"A vector of {_core.format_size(size)} in pieces, all posted at once, through an aggregator "
        f"({CHUNK_LAB}, MPICH; "
        "median, quartiles over the least). Model: with SHARP's threshold, below which pieces go in slots of 1 KB.",
        ["piece", "pieces", "lab", "of the least", "model, of 256K"],
        rows,
    )
    flat = max(above) <= 1.25
    return Found(
        SHOWN if flat and max(below) > max(above) else DIRECTION if flat else REFUTED,
        f"16K to 64K within {max(above):.2f} of the least; within 1.1 from {_core.format_size(knee)} on; 1K takes "
        f"{measured[min(measured)] / measured[best]:.2f}; the longest pieces don't overlap the ways up and down",
        "here a piece costs its header and a wake-up, hidden where its bytes take longer than these; 16,384 is also "
        "libsharp's threshold for streaming, below which slots are taken: the seed's number need not be a "
        "property of pieces",
        [table],
        samples,
    )


def batch_times(spec: str, size: int, batch: int) -> tuple[float, float, float]:
    """Return the predicted reduction, network and broadcast of one batch alone."""
    job = job_of(spec)
    stages = dict(predicted(job, f"in_network:segment={batch},window=1", batch).stages)
    return stages["reduce in groups"], stages["aggregators"], stages.get("distribute in groups", 0.0)


OVERLAP = "aggregator:8node@2GB/s~1.57us:8core"


def overlap(options: Options) -> Found:
    """Batches overlap the reduction inside nodes and the network; there is a best number of them."""
    size = MEGABYTE
    counts = [1 << shift for shift in range(0, 9, 2 if options.small else 1)]
    played, formula, rows = {}, {}, []
    job = job_of(OVERLAP)
    for count in counts:
        batch = size // count
        played[count] = predicted(job, f"in_network:segment={batch // 8},window={count}", size).seconds
        reduce_s, net_s, bcast_s = batch_times(OVERLAP, size, batch)
        formula[count] = reduce_s + (count - 1) * max(reduce_s, net_s) + net_s + bcast_s * count
        rows.append(
            [str(count), _core.format_size(batch), us(reduce_s), us(net_s), us(formula[count]), us(played[count])]
        )
    best = min(played, key=lambda count: played[count])
    wanted = min(formula, key=lambda count: formula[count])
    lab = in_segments(options.small)
    longest = max(one["segment"] for one in lab)
    of = {chunk: middle([s for one in lab if one["segment"] == chunk for s in one["seconds"]])
          for chunk in {one["segment"] for one in lab}}  # fmt: skip
    table = Table(
        f"1 MB on {OVERLAP}: `formula` is t_reduce + (J-1) max(t_reduce, t_network) + t_network + J t_broadcast "
        "with the "
        "times of one batch alone; `played` the prediction of the whole plan.",
        ["batches J", "batch", "t_reduce", "t_network", "formula", "played"],
        rows,
    )
    gain = 1 - played[best] / played[1]
    return Found(
        DIRECTION if gain > 0.02 and 1 < best < counts[-1] else REFUTED,
        f"{best} batches take {gain:.0%} less than one (played), the formula's best are {wanted}; on the lab "
        "pieces hide "
        f"{1 - min(of.values()) / of[longest]:.0%} of the time of pieces of {_core.format_size(longest)}",
        "one batch leaves the network idle while nodes reduce, many cost their messages; it isn't perfect: the first "
        "reduction and the last broadcast have nothing to hide behind",
        [table],
        {"played_s": played, "formula_s": formula, "lab": lab},
    )


def limits(options: Options) -> Found:
    """Switch resources are limited, and members of every rank exhaust them."""
    build = ROOT / "build" / "release"
    words = ["cmake", "--build", str(build), "--parallel", "1", "--target", "in_network_limits"]
    if not (build / "build.ninja").is_file():
        raise CannotRunError("in_network_limits.cpp isn't built: `make build` first")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotRunError(f"in_network_limits.cpp can't be built: {done.stdout.strip().splitlines()[-1]}")
    program = build / "studies" / "in_network_limits"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(program), "quantum", "1" if options.small else "7", "65536"],
            cwd=folder, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
    if done.returncode:
        raise CannotRunError(f"in_network_limits: {done.stderr.strip()}")
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    groups = [one for one in samples if one["what"] == "groups"]
    streams = [one for one in samples if one["what"] == "streams"]
    members = sorted({one["members"] for one in samples if one["what"] == "members"})
    seconds = {n: middle([one["seconds"] for one in samples if one.get("members") == n]) for n in members}
    windows = {n: simulated("network", 8, (16384,), n)[16384] for n in (1, 2, 4, 8, 16)}
    tables = [
        Table(
            "Groups of communicators until the daemon refuses, with the profile `quantum` (768 slots, a fifth "
            "for a user); "
            "libsharp's logs of real switches show quotas of 153 slots, too.",
            ["user", "slots of a group", "groups made", "then refused by"],
            [[str(one["user"]), str(one["slots"]), str(one["made"]), f"`{one['reason']}`"] for one in groups],
        ),
        Table(
            "Another job's group for streaming, of which a tree has one.",
            ["when it asks", "outcome"],
            [[one["when"], f"`{one['reason']}`"] for one in streams],
        ),
        Table(
            "64 KB summed for so many members in slots of 1 KB, members and daemon in one thread: leaders only, "
            "or all ranks.",
            ["members", "time", "of two"],
            [[str(n), _core.format_duration(s), f"{s / seconds[members[0]]:.1f}"] for n, s in seconds.items()],
        ),
        Table(
            f"16 KB on 8 nodes with so many slots for a group, simulated as [above](#small-sizes) ({WINDOW} "
            f"there, {RADIX} "
            "below a switch).",
            ["slots", "time"],
            [[str(n), us(s)] for n, s in windows.items()],
        ),
    ]
    refused = all(one["reason"] in ("quota", "no_resource") for one in groups)
    locked = streams[0]["reason"] == "stream_lock"
    return Found(
        SHOWN if refused and locked and seconds[members[-1]] > 4 * seconds[members[0]] else REFUTED,
        f"{groups[-2]['made']} groups a user, one stream a tree; {members[-1]} members take "
        f"{seconds[members[-1]] / seconds[members[0]]:.0f} times as long as {members[0]}",
        "by construction: the daemon has SHARP's limits and refuses with its reasons, upon which hosts do the "
        "call; the time "
        "grows with what all members send, as at a port with many members behind it",
        tables,
        [*samples, {"what": "windows", "seconds": windows}],
    )


RIVALS = {
    "leader, two copies": "leaders:leaders=1,inside=shared",
    "k-nomial levels": "reduce_bcast",
    "Rabenseifner, flat": "rabenseifner",
    "ring": "ring",
}
CHUNK_PER_RANK = "leaders:leaders=all,inside=shared"


def gain(options: Options) -> Found:
    """The gain of up to 86 % at two nodes."""
    rows, bounds, samples = [], [], {}
    sizes = (1 << 19,) if options.small else (1 << 17, 1 << 19, 1 << 21)
    for ppn, (place, nodes) in product((32,) if options.small else (32, 64), enumerate((2, 4, 8))):
        job = job_of(f"{nodes}node@25GB/s~1.57us:2socket:{ppn // 2}core")
        one = job_of(f"1node:2socket:{ppn // 2}core")
        best: dict[str, float] = {}
        inside = 0.0
        for size in sizes:
            ours = predicted(job, CHUNK_PER_RANK, size).seconds
            inside = max(inside, predicted(one, CHUNK_PER_RANK, size).seconds / ours)
            for name, algorithm in RIVALS.items():
                theirs = predicted(job, algorithm, size).seconds
                best[name] = max(best.get(name, 0.0), 100 * (1 - ours / theirs))
        seeds = [f"{SEED_GAINS[cluster, ppn][place]} %" for cluster in ("MRI", "HPCAC")]
        samples[f"{nodes}x{ppn}"] = best
        rows.append([str(nodes), str(ppn), *seeds, *(f"{best[name]:.0f} %" for name in RIVALS), f"{inside:.0%}"])
    for nodes in (2, 4, 8):
        job = job_of(f"{nodes}node@25GB/s:64core")
        pair = [_core.bound(job, "allreduce", MEGABYTE, 0, in_network=one).seconds for one in (False, True)]
        bounds.append([str(nodes), f"{pair[0] / pair[1]:.2f}", f"{100 * (1 - pair[1] / pair[0]):.0f} %"])
    two = [row for row in rows if row[0] == "2"][-1]
    return Found(
        DIRECTION,
        f"at 2 nodes the network can save {bounds[0][2]}; a chunk per rank saves up to {two[4]} over a leader "
        "with two "
        f"copies, {two[6]} over Rabenseifner (model)",
        "at two nodes all of it is inside the nodes: every core reduces its chunk where it lies, instead of one "
        "or of each "
        "rank for itself; from 4 nodes on a switch adds what the bounds say",
        [
            Table("What a network that reduces can save of the bytes of an adapter, by lower bounds.",
                  ["nodes", "hosts / switch", "saved at most"], bounds),
            Table("Largest gain of a chunk per rank over each other way among "
                  f"{', '.join(_core.format_size(size) for size in sizes)}, hosts alone, predicted with assumed "
                  "costs, and "
                  "the share of its time that one node alone takes; in the seed against other MPIs, with SHARP.",
                  ["nodes", "ranks a node", "the seed on MRI", "on HPCAC", *(f"over {name}" for name in RIVALS),
                   "inside"],
                  rows),
        ],
        samples,
    )  # fmt: skip


CLAIMS = (
    Claim("bytes", "In the network a vector is sent once", "1.0, 1.5, 1.75 times less at 2, 4, 8 nodes (derived)",
          False, f"{MODEL}, {MEASURED}", traffic),
    Claim("bandwidth", "Streaming aggregation has nearly the bandwidth of point to point", "close to it; no number",
          True, MEASURED, bandwidth),
    Claim("chunks", "Splitting into pieces of 16,384 bytes and more gives the same latency", "from 16384 on", False,
          f"{MEASURED}, {MODEL}", chunks),
    Claim("overlap", "Reductions in nodes and the network overlap perfectly in batches of a tuned size",
          "perfect; no number", True, f"{MODEL}, {MEASURED}", overlap),
    Claim("limits", "Switch resources are limited, and many ranks exhaust them", "no number", False,
          f"{MEASURED}, {SIMULATED}", limits),
    Claim("gain", "Large vectors: up to 86 % faster than the state of the art", "86.4 % at 2 nodes, 78.36 % at 8 "
          "(64 ranks each)", False, MODEL, gain),
)  # fmt: skip
