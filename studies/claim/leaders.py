"""Several leaders a node in allgathers: Kandalla and others, IPDPS workshops 2009, as the slides tell it."""

from __future__ import annotations

from collections.abc import Sequence

from palmette import _core

from .form import DIRECTION, MODEL, REFUTED, SHOWN, SIMULATED, Claim, ClaimOutcome, Options, Table, us
from .model import SERVERS, job_on, seconds, simulated

BED = "multi-leader-8"
SIZES = (16, 64, 256, 1024, 4096, 65536)
FLAT = "recursive_doubling:order=rank"
RING = "ring:order=rank,nested=no"


def _by(leaders: int, inside: str) -> str:
    count = "" if leaders == 1 else f"leaders={leaders},"
    return f"leaders:{count}between=recursive_doubling,inside={inside}"


def _time(on: _core.Job, algorithm: str, size: int) -> float:
    return seconds(on, "allgather", algorithm, size)


def _scaling(algorithm: str, options: Options) -> tuple[Table, dict[str, float]]:
    """Times over cores a node and over nodes, and what 16 cores and 64 nodes take beside what must come in."""
    rows, worst = [], {}
    cores = (1, 2, 4, 8, 16)
    nodes = (2, 4, 8, 16, 32, *(() if options.small else (64,)))
    size = 4096
    for what, shapes in (("cores", [(8, g) for g in cores]), ("nodes", [(n, 16) for n in nodes])):
        for n, g in shapes:
            took = _time(job_on(f"{n}node@1.5GB/s:{g}core"), algorithm, size)
            # What a node's adapter must receive.
            bound = (n - 1) * g * size / 1.5e9
            worst[what] = max(worst.get(what, 0.0), took / bound)
            rows.append([str(n), str(g), us(took), us(bound), f"{took / bound:.2f}"])
    table = Table(
        f"Blocks of {_core.format_size(size)}, ranks in order; what a node's adapter must receive beside it.",
        ["nodes", "cores a node", "time", "bound", "ratio"],
        rows,
    )
    return table, worst


def doubling(options: Options) -> ClaimOutcome:
    """Recursive doubling scales poorly with cores and with nodes."""
    table, worst = _scaling(FLAT, options)
    return ClaimOutcome(
        SHOWN if worst["cores"] > 4 and worst["nodes"] > 4 else REFUTED,
        f"up to {worst['cores']:.1f} bounds over cores, {worst['nodes']:.1f} over nodes",
        "in its last stages each core of a node sends the same blocks through the one adapter: g times what must leave",
        [table],
        {"largest ratio": worst},
    )


def ring(options: Options) -> ClaimOutcome:
    """The ring scales as expected."""
    table, worst = _scaling(RING, options)
    return ClaimOutcome(
        SHOWN if worst["cores"] < 3 and worst["nodes"] < 3 else DIRECTION,
        f"up to {worst['cores']:.1f} bounds over cores, {worst['nodes']:.1f} over nodes",
        "one core of a node sends to the next node, and each block leaves once; what it takes beyond is the copying "
        "between cores",
        [table],
        {"largest ratio": worst},
    )


def _compared(
    options: Options, first: str, others: Sequence[str], names: Sequence[str], wanted: Sequence[float], cause: str
) -> ClaimOutcome:
    """Return how much less time `first` takes than others, at best over sizes."""
    sizes = SIZES[: 3 if options.small else None]
    times = [simulated(BED, "allgather", algorithm, sizes) for algorithm in (first, *others)]
    rows, samples = [], []
    best = [0.0] * len(others)
    for size in sizes:
        took = [one[size] for one in times]
        saved = [1 - took[0] / other for other in took[1:]]
        best = [max(pair) for pair in zip(best, saved, strict=True)]
        rows.append([_core.format_size(size), *(us(one) for one in took), *(f"{one:.0%}" for one in saved)])
        samples.append({"bytes": size, "seconds": dict(zip((first, *others), took, strict=True))})
    table = Table(
        f"8 nodes of 16 ranks, one adapter, one memory of {SERVERS.memory_bytes_per_s / 1e9:g} GB/s for all ranks of a "
        f"host, of which a core copies {SERVERS.core_bytes_per_s / 1e9:g} GB/s; simulated.",
        ["block", *names, *(f"less than {name}" for name in names[1:])],
        rows,
    )
    enough = [one >= figure for one, figure in zip(best, wanted, strict=True)]
    return ClaimOutcome(
        SHOWN if all(enough) else DIRECTION if any(one > 0.02 for one in best) else REFUTED,
        ", ".join(f"at best {one:.0%} less than {name}" for one, name in zip(best, names[1:], strict=True)),
        cause,
        [table],
        samples,
    )


def messages(options: Options) -> ClaimOutcome:
    """Four leaders by messages."""
    return _compared(
        options, _by(4, "linear"), (_by(1, "linear"), FLAT), ("4 leaders", "1 leader", "recursive doubling"),
        (0.2, 0.5),
        "against recursive doubling by the bytes that leave a node; against one leader by the messages to and from its "
        "members, which four share; of long blocks the adapter is the limit for both",
    )  # fmt: skip


def many(options: Options) -> ClaimOutcome:
    """1,024 ranks: four leaders against recursive doubling, in rows of cores."""
    on = job_on("8leaf@12GB/s:8node@1.5GB/s:16core")
    rows, samples, saved = [], [], []
    for size in (64, 256, 1024)[: 1 if options.small else None]:
        took = [_time(on, algorithm, size) for algorithm in (_by(4, "linear"), FLAT)]
        saved.append(1 - took[0] / took[1])
        rows.append([_core.format_size(size), *(us(one) for one in took), f"{saved[-1]:.0%}"])
        samples.append({"bytes": size, "seconds": took})
    table = Table(
        "64 nodes of 16 ranks behind eight switches, ranks in order of cores.",
        ["block", "4 leaders", "recursive doubling", "less"],
        rows,
    )
    return ClaimOutcome(
        SHOWN if min(saved) > 0 else REFUTED,
        f"{min(saved):.0%} to {max(saved):.0%} less",
        "recursive doubling sends each block from every core of a node",
        [table],
        samples,
    )


CLAIMS = (
    Claim("rd-scales", "Recursive doubling scales poorly with cores and with the size of the system", "no number", True,
          MODEL, doubling),
    Claim("ring-scales", "The ring scales as expected", "no number", True, MODEL, ring),
    Claim("leaders-messages", "Four leaders by messages take less than one, and than recursive doubling",
          "20 % and 50 %", True, SIMULATED, messages),
    Claim("leaders-1024", "Four leaders outperform recursive doubling on 1,024 processes", "no number", True, MODEL,
          many),
)  # fmt: skip
