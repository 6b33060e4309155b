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
from palmette_lab.lab import Lab
from palmette_lab.lab.errors import LabError
from palmette_lab.place import free_lab_name

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
    ClaimOutcome,
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
"""Bytes from which on libsharp streams by default (SHARP_COLL_SAT_THRESHOLD), and the slides' pieces cost nothing."""
THEIR_GAINS = {
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


def traffic(_: Options) -> ClaimOutcome:
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
        "interfaces (1 MB, [aggregators](2026-11-28-in-network.md); above 1 are acknowledgements).",
        ["nodes", "hosts, bound", "switch, bound", "ratio", "hosts, lab", "aggregator, lab"],
        rows,
    )
    return ClaimOutcome(
        SHOWN if right and eight[0] / eight[1] > 1.6 else REFUTED,
        f"{rows[0][3]}, {rows[1][3]}, {rows[2][3]} at 2, 4, 8 nodes; counted {eight[0] / eight[1]:.2f} at 8",
        "a switch sends back what each host would have to send a second time; at 2 nodes there is nothing of that kind",
        [table],
        {"bytes": lab_samples()["bytes"]},
    )


def bandwidth(_: Options) -> ClaimOutcome:
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
        "stream of the same bytes at the rate of the link over that of the allreduce; medians of three MPIs, from "
        "the samples of [aggregators](2026-11-28-in-network.md).",
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
    return ClaimOutcome(
        SHOWN if shares[MEGABYTE] >= 0.85 else DIRECTION,
        f"{shares[MEGABYTE]:.0%} of a message's bandwidth at 1M, {shares[1 << 18]:.0%} at 256K",
        "the vector passes each link once in each direction, in segments; the first goes up and down before the "
        "rest hides it, so that short vectors have less",
        [table],
        {"lab": "docs/results/2026-11-28-in-network/samples.json"},
    )


CHUNK_LAB = "aggregator:4node@50Mbit/s:1core"
CHUNK_BYTES = 1 << 19
CHUNKS = tuple(1 << shift for shift in range(13, 19))
"""Plans have at most 64 pieces."""


@cache
def in_segments(spec: str, segments: tuple[int, ...], small: bool) -> list[dict[str, Any]]:
    """Allreduces through a lab's aggregator in segments of each size, by turns; their jobs' calls."""
    size = CHUNK_BYTES // 2 if small else CHUNK_BYTES
    out: list[dict[str, Any]] = []
    try:
        with Lab.up(spec, name=free_lab_name("claims")) as lab:
            settings = preload() | {"PALMETTE_TOPOLOGY": str(lab.topology_path)}
            for turn, segment in product(range(1 if small else 3), segments):
                force = {"PALMETTE_FORCE": f"allreduce=in_network:segment={segment}"}
                words = [str(program("in_network")), "3" if small else "7", str(size)]
                done = lab.run(words, mpi="mpich", placement="block", env=settings | force, capture=True, timeout_s=120)
                if done.returncode:
                    raise CannotRunError(f"segments of {segment}: status {done.returncode}: {done.stderr[-300:]}")
                seconds = [float(word) for word in done.stdout.split()[1:]]
                out.append({"bytes": size, "segment": segment, "round": turn, "seconds": seconds})
    except (LabError, PermissionError) as error:
        raise CannotRunError(str(error)) from None
    return out


def by_segment(samples: list[dict[str, Any]]) -> dict[int, list[float]]:
    """Return the seconds of all calls by the length of segments."""
    return {segment: [s for one in samples if one["segment"] == segment for s in one["seconds"]]
            for segment in sorted({one["segment"] for one in samples})}  # fmt: skip


@cache
def limits_samples(small: bool) -> list[dict[str, Any]]:
    """Build in_network_limits.cpp and return what it finds."""
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
            [str(program), "quantum", "1" if small else "7", "65536"],
            cwd=folder, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
    if done.returncode:
        raise CannotRunError(f"in_network_limits: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def chunk_s(size: int, chunk: int) -> float:
    """Return the closed form of pieces at once: below the threshold in slots, from it on streamed one behind "
    "the other.
    """
    if chunk < THRESHOLD:
        return network_s(8, size)
    return network_s(8, PAYLOAD) + size / 12.5e9 + 0.3e-6 * (size // chunk - 1)


def chunks(options: Options) -> ClaimOutcome:
    """Pieces of 16 KB and more cost nothing."""
    samples = in_segments(CHUNK_LAB, CHUNKS[::3] if options.small else CHUNKS, options.small)
    size, every = samples[0]["bytes"], by_segment(samples)
    lab = {chunk: middle(seconds) for chunk, seconds in every.items()}
    inside = [one for one in limits_samples(options.small) if one["what"] == "chunks"]
    bare = {one["chunk"]: middle([o["seconds"] for o in inside if o["chunk"] == one["chunk"]]) for one in inside}
    reference = chunk_s(size, 1 << 18)
    rows = []
    for chunk in bare:
        texts = ["", ""]
        if chunk in lab:
            low, half, high = (one / min(lab.values()) for one in statistics.quantiles(every[chunk], n=4))
            texts = [_core.format_duration(lab[chunk]), f"{half:.2f} ({low:.2f} to {high:.2f})"]
        rows.append(
            [_core.format_size(chunk), str(size // chunk), *texts, f"{bare[chunk] / min(bare.values()):.2f}",
             f"{chunk_s(size, chunk) / reference:.2f}"]
        )  # fmt: skip
    above = max(lab[chunk] / min(lab.values()) for chunk in lab if chunk >= THRESHOLD)
    least = min(bare)
    table = Table(
        f"A vector of {_core.format_size(size)} in pieces, all posted at once, through an aggregator ({CHUNK_LAB}, "
        "MPICH; median, quartiles over the least). *No limit*: 1 MB in chunks for 4 members in the daemon's own "
        "process, where nothing counts but work. Model: with SHARP's threshold, below which pieces go in slots of "
        "1 KB.",
        ["piece", "pieces", "lab", "of the least", "no limit, of the least", "model, of 256K"],
        rows,
    )
    return ClaimOutcome(
        SHOWN if above <= 1.15 else DIRECTION if above <= 1.3 else REFUTED,
        f"pieces of 16K and more within {above:.2f} of the least, but those of 8K as well "
        f"({lab[min(lab)] / min(lab.values()):.2f}); without links' limits 1K takes "
        f"{bare[least] / min(bare.values()):.1f}, 16K {bare[THRESHOLD] / min(bare.values()):.1f} times the least",
        "a piece costs a header and a wake-up, hidden where its bytes take longer than these; 16,384 is also "
        "libsharp's threshold for streaming, below which slots are taken, so that the slides' number need not be a "
        "property of pieces",
        [table],
        {"lab": samples, "no_limit": inside},
    )


def batch_times(spec: str, size: int, batch: int) -> tuple[float, float, float]:
    """Return the predicted reduction, network and broadcast of one batch alone."""
    job = job_of(spec)
    stages = dict(predicted(job, f"in_network:segment={batch},window=1", batch).stages)
    return stages["reduce in groups"], stages["aggregators"], stages.get("distribute in groups", 0.0)


OVERLAP = "aggregator:8node@2GB/s~1.57us:8core"
OVERLAP_LAB = "aggregator:3leaf@50Mbit/s:2node@50Mbit/s:1core"
"""A lab where reducing inside of a leaf takes half as long as the way to the aggregator."""


def overlap(options: Options) -> ClaimOutcome:
    """Batches overlap the reduction inside nodes and the network; there is a best number of them."""
    counts = [1 << shift for shift in range(0, 9, 2 if options.small else 1)]
    played, formula, rows = {}, {}, []
    job = job_of(OVERLAP)
    for count in counts:
        batch = MEGABYTE // count
        played[count] = predicted(job, f"in_network:segment={batch // 8},window={count}", MEGABYTE).seconds
        reduce_s, net_s, bcast_s = batch_times(OVERLAP, MEGABYTE, batch)
        formula[count] = reduce_s + (count - 1) * max(reduce_s, net_s) + net_s + bcast_s * count
        row = [us(one) for one in (reduce_s, net_s, formula[count], played[count])]
        rows.append([str(count), _core.format_size(batch), *row])
    best, wanted = (min(of, key=lambda count: of[count]) for of in (played, formula))
    gain = 1 - played[best] / played[1]
    part = CHUNK_BYTES // (4 if options.small else 2)
    segments = tuple(part // count for count in ((1, 8) if options.small else (1, 2, 4, 8, 16, 32)))
    samples = in_segments(OVERLAP_LAB, segments, options.small)
    lab = {part // segment: seconds for segment, seconds in by_segment(samples).items()}
    size, emulated = samples[0]["bytes"], job_of(OVERLAP_LAB)
    lab_rows = []
    for count in sorted(lab):
        quartiles = statistics.quantiles(lab[count], n=4)
        expected = FRAME * predicted(emulated, f"in_network:segment={part // count}", size).seconds
        lab_rows.append(
            [str(count), _core.format_duration(quartiles[1]), *(_core.format_duration(quartiles[i]) for i in (0, 2)),
             _core.format_duration(expected)]
        )  # fmt: skip
    fastest = min(lab, key=lambda count: middle(lab[count]))
    hidden = 1 - middle(lab[fastest]) / middle(lab[1])
    return ClaimOutcome(
        DIRECTION if gain > 0.02 and 1 < best < counts[-1] and hidden > 0.02 else REFUTED,
        f"{best} batches take {gain:.0%} less than one (played), the formula's best are {wanted}; on the lab "
        f"{fastest} take {hidden:.0%} less than one",
        "one batch leaves the network idle while groups reduce, many cost their messages; it isn't perfect: the "
        "first reduction and the last way back have nothing to hide behind",
        [
            Table(
                f"1 MB on {OVERLAP}: `formula` is t_reduce + (J-1) max(t_reduce, t_network) + t_network + J "
                "t_broadcast with the times of one batch alone; `played` the prediction of the whole plan.",
                ["batches J", "batch", "t_reduce", "t_network", "formula", "played"],
                rows,
            ),
            Table(
                f"{_core.format_size(size)} on a lab, {OVERLAP_LAB}, MPICH; segments of each host's part, quartiles.",
                ["segments", "median", "first quartile", "third", "played"],
                lab_rows,
            ),
        ],
        {"played_s": played, "formula_s": formula, "lab": samples},
    )


def limits(options: Options) -> ClaimOutcome:
    """Switch resources are limited, and members of every rank exhaust them."""
    samples = limits_samples(options.small)
    groups = [one for one in samples if one["what"] == "groups"]
    streams = [one for one in samples if one["what"] == "streams"]
    members = sorted({one["members"] for one in samples if one["what"] == "members"})
    seconds = {n: middle([one["seconds"] for one in samples if one.get("members") == n]) for n in members}
    windows = {n: simulated("network", 8, (16384,), n)[16384] for n in (1, 2, 4, 8, 16)}
    tables = [
        Table(
            "Groups of communicators until the daemon refuses, with the profile `quantum` (768 slots, a fifth for "
            "a user); libsharp's logs of real switches show quotas of 153 slots, too.",
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
            f"16 KB on 8 nodes with so many slots for a group, simulated as [above](#small-sizes) ({WINDOW} there, "
            f"{RADIX} below a switch).",
            ["slots", "time"],
            [[str(n), us(s)] for n, s in windows.items()],
        ),
    ]
    refused = all(one["reason"] in ("quota", "no_resource") for one in groups)
    locked = streams[0]["reason"] == "stream_lock"
    return ClaimOutcome(
        SHOWN if refused and locked and seconds[members[-1]] > 4 * seconds[members[0]] else REFUTED,
        f"{groups[-2]['made']} groups a user, one stream a tree; {members[-1]} members take "
        f"{seconds[members[-1]] / seconds[members[0]]:.0f} times as long as {members[0]}",
        "by construction: the daemon has SHARP's limits and refuses with its reasons, upon which hosts do the "
        "call; the time grows with what all members send, as at a port with many members behind it",
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


def gain(options: Options) -> ClaimOutcome:
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
        slides = [f"{THEIR_GAINS[cluster, ppn][place]} %" for cluster in ("MRI", "HPCAC")]
        samples[f"{nodes}x{ppn}"] = best
        rows.append([str(nodes), str(ppn), *slides, *(f"{best[name]:.0f} %" for name in RIVALS), f"{inside:.0%}"])
    for nodes in (2, 4, 8):
        job = job_of(f"{nodes}node@25GB/s:64core")
        pair = [_core.bound(job, "allreduce", MEGABYTE, 0, in_network=one).seconds for one in (False, True)]
        bounds.append([str(nodes), f"{pair[0] / pair[1]:.2f}", f"{100 * (1 - pair[1] / pair[0]):.0f} %"])
    two = [row for row in rows if row[0] == "2"][-1]
    return ClaimOutcome(
        DIRECTION,
        f"at 2 nodes the network can save {bounds[0][2]}; a chunk per rank saves up to {two[4]} over a leader with "
        f"two copies, {two[6]} over Rabenseifner (model)",
        "at two nodes all of it is inside the nodes: every core reduces its chunk where it lies, instead of one "
        "or of each rank for itself; from 4 nodes on a switch adds what the bounds say",
        [
            Table("What a network that reduces can save of the bytes of an adapter, by lower bounds.",
                  ["nodes", "hosts / switch", "saved at most"], bounds),
            Table("Largest gain of a chunk per rank over each other way among "
                  f"{', '.join(_core.format_size(size) for size in sizes)}, hosts alone, predicted with assumed "
                  "costs, and the share of its time that one node alone takes; in the slides against other MPIs, "
                  "with SHARP.",
                  ["nodes", "ranks a node", "slides, MRI", "slides, HPCAC", *(f"over {name}" for name in RIVALS),
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
