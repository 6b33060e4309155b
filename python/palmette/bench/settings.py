"""Settings of a benchmark: collectives, sizes, placements, MPIs and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from palmette import _core
from palmette.bench.memory import MEMORIES
from palmette.bench.rivals import Rival
from palmette.bench.variants import Variant
from palmette.measure.errors import BenchError
from palmette.mpi import install as mpi_install

BLOCKING = (
    "gather",
    "scatter",
    "allgather",
    "gatherv",
    "scatterv",
    "allgatherv",
    "bcast",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "scan",
    "exscan",
)
NONBLOCKING = ("iallgather", "ibcast", "iallreduce", "ialltoall", "ireduce", "ibarrier", "iscan", "iexscan")
COLLECTIVES = BLOCKING + NONBLOCKING
"""The rows of src/programs/collbench/collectives.h; a test compares them."""

GROUPS = {"all": COLLECTIVES, "blocking": BLOCKING, "nonblocking": NONBLOCKING}
"""Names that stand for several collectives."""

SLEEP_WINDOW_US, SPIN_WINDOW_US = 2000, 200
"""Minimum time from agreeing on a start to the start: enough for the agreement to reach ranks that sleep."""
PASS_THROUGH_ROUNDS = 50

DEFAULT_SIZES = (64, 1024, 16384, 65536, 262144)


@dataclass(frozen=True)
class Settings:
    """Cells are the product of collectives, sizes, placements and MPIs; a job measures those of an MPI and placement.

    `env` is set in the ranks. `ppn` and `ranks`: None takes the machine's slots, all of them. `floor`: measure once
    more with the lab's rates off. `preload`: False compares the MPI with itself. `pass_through`: measure the overhead
    of calls that palmette leaves to the MPI, after the cells. `rivals` are measured alongside the MPIs, `variants` with
    each of them. `traffic`: measure everything once more under that background traffic (palmette_lab.traffic).
    `budget_s`: time limit of the whole run, else `seconds` per cell. `named_set`: the set that these settings come from
    (palmette_lab.sets). `memory`: where buffers lie; the MPIs in `copies` can't read it, so that alone they get
    copies in host memory (palmette.bench.memory). A barrier has no size, and one cell.
    """

    collectives: tuple[str, ...] = ("gather", "scatter", "allgather")
    sizes: tuple[int, ...] = DEFAULT_SIZES
    placements: tuple[str, ...] = ("block", "cyclic", "random:1")
    mpis: tuple[str, ...] = ("mpich",)
    ppn: int | None = None
    ranks: int | None = None
    root: int = 0
    repeat: int = 1
    seconds: float = 2.0
    min_pairs: int = 8
    max_pairs: int = 1000
    warmup: int = 6
    seed: int = 1
    clock: str = "shared"
    env: dict[str, str] = field(default_factory=dict)
    floor: bool = False
    preload: bool = True
    pass_through: bool = False
    timeout_s: float | None = None
    named_set: str | None = None
    rivals: tuple[Rival, ...] = ()
    variants: tuple[Variant, ...] = ()
    traffic: str | None = None
    budget_s: float | None = None
    memory: str = "host"
    copies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise BenchError for what can't be measured."""
        for name in self.collectives:
            if name not in COLLECTIVES:
                raise BenchError(f"collective '{name}' is unknown; there are {', '.join((*COLLECTIVES, *GROUPS))}")
        for name in self.mpis:
            if name not in mpi_install.NAMES:
                raise BenchError(f"MPI '{name}' is unknown; there are {', '.join(mpi_install.NAMES)}")
        for what, values in (
            ("collective", self.collectives),
            ("size", self.sizes),
            ("placement", self.placements),
            ("MPI", self.mpis),
            ("rival", tuple(rival.name for rival in self.rivals)),
            ("variant", tuple(variant.name for variant in self.variants)),
        ):
            if not values and what not in ("rival", "variant") and not (what == "collective" and self.pass_through):
                raise BenchError(f"no {what} to measure; name one at least")
            if len(set(values)) < len(values):
                raise BenchError(f"a {what} is named twice in {', '.join(map(str, values))}; name it once")

        if self.memory not in MEMORIES:
            raise BenchError(f"memory '{self.memory}' is unknown; there are {', '.join(MEMORIES)}")
        if self.memory != "host" and self.pass_through:
            raise BenchError("--pass-through has no buffers in device memory; leave out one of it and --memory")
        if self.variants and not self.preload:
            raise BenchError("--variant sets palmette, which --no-preload leaves out; give one of them")

    @property
    def cells(self) -> tuple[tuple[str, int], ...]:
        """Collective and size of the cells that one job measures; a barrier has size 0."""
        return tuple(
            (name, size) for name in self.collectives for size in ((0,) if name.endswith("barrier") else self.sizes)
        )

    @property
    def cells_per_job(self) -> int:
        """Number of these cells."""
        return len(self.cells)

    @property
    def job_timeout_s(self) -> float:
        """Timeout of a job: by default far above the expected time of its cells."""
        return self.timeout_s or 120 + self.cells_per_job * (60 + 10 * self.seconds)

    def program_arguments(
        self,
        output: str,
        *,
        spin: bool,
        floor: bool,
        cells: Sequence[tuple[str, int]] | None = None,
        limit_s: float | None = None,
        copies: bool = False,
    ) -> list[str]:
        """Return the arguments of collbench; a floor takes a fifth of the time.

        `cells`: these only. `limit_s`: time limit of a cell, even with too few pairs. `copies`: the MPI alone gets
        copies of device memory.
        """
        seconds = self.seconds / 5 if floor else self.seconds
        if limit_s is not None:
            seconds = min(seconds, limit_s)
        what = ["--collectives", ",".join(self.collectives), "--sizes", ",".join(map(str, self.sizes))]
        if cells is not None:
            what = ["--cells", ",".join(f"{name}:{size}" for name, size in cells)]
        return [
            *what,
            *(["--limit", f"{limit_s:g}"] if limit_s is not None else []),
            *(["--memory", self.memory] if self.memory != "host" else []),
            *(["--copies"] if copies else []),
            *("--seconds", f"{seconds:g}"),
            *("--min-iterations", str(min(self.min_pairs, self.max_pairs))),
            *("--max-iterations", str(self.max_pairs)),
            *("--warmup", str(self.warmup)),
            *("--root", str(self.root)),
            *("--clock", self.clock),
            *("--wait", "spin" if spin else "sleep"),
            *("--window-us", str(SPIN_WINDOW_US if spin else SLEEP_WINDOW_US)),
            *("--seed", str(self.seed)),
            *("--output", output),
        ]

    def pass_through_arguments(self, output: str) -> list[str]:
        """Return the arguments of collbench for the overhead of calls that are passed through."""
        rounds = str(PASS_THROUGH_ROUNDS)
        return [
            "--pass-through",
            *("--min-iterations", rounds, "--max-iterations", rounds),
            *("--seed", str(self.seed)),
            *("--output", output),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def split(text: str) -> tuple[str, ...]:
    """Return the words of a list like `gather,scatter`."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def expand_collectives(words: Sequence[str]) -> tuple[str, ...]:
    """Return the collectives of a list in which `all`, `blocking` and `nonblocking` stand for several, each once."""
    return tuple(dict.fromkeys(name for word in words for name in GROUPS.get(word, (word,))))


def split_placements(text: str) -> tuple[str, ...]:
    """Return the placements of a list; `hosts=A,B,...` keeps its commas and ends at the next known form."""
    placements: list[str] = []
    for word in split(text):
        inside = bool(placements) and placements[-1].startswith("hosts=")
        known = word in ("block", "cyclic") or word.startswith(("random:", "hosts=")) or "/" in word
        if inside and not known:
            placements[-1] += f",{word}"
        else:
            placements.append(word)
    return tuple(placements)


def parse_sizes(words: Sequence[str]) -> tuple[int, ...]:
    """Return bytes for sizes like 64 or 16K (powers of 1024). Raises BenchError."""
    sizes = []
    for word in words:
        try:
            size = _core.parse_size(word)
        except _core.Error as error:
            raise BenchError(str(error)) from None
        if not 1 <= size < 1 << 30:
            raise BenchError(f"size '{word}' is not between 1 byte and 1G")
        sizes.append(size)
    return tuple(sizes)
