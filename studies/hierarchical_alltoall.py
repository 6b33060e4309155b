"""Hierarchical all-to-all against flat ones: messages between nodes by counting, times and crossovers in simulation.

    python studies/hierarchical_alltoall.py --write FOLDER [--keep FOLDER]     samples.json and times.svg; the tables
    python studies/hierarchical_alltoall.py --table FOLDER                     the tables, of samples kept before

N nodes of g ranks on one switch. Simulations run one after the other, each with a limit of CPU time.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import cast

from palmette import _core
from palmette.bench.text import size_text
from palmette.files import replaced
from palmette.predict.answer import Cell
from palmette.predict.svg import curves_svg
from palmette_lab.simulate import parameters, simgrid
from palmette_lab.simulate.cluster import Cluster, from_spec, prepared
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.job import make_job
from palmette_lab.simulate.kept import SimulationCache
from palmette_lab.simulate.run import PALMETTE, simulate

NODES = (4, 8, 16, 32, 64)
RANKS_A_NODE = (2, 4, 8, 16)
CHECKED_RANKS = 32
"""Results of jobs up to this size are compared byte for byte; that takes as long again."""
LARGE_BLOCKS = (4096, 65536)
LARGE_BLOCKS_RANKS = 64
"""Most ranks on which large blocks, far from the crossovers, are simulated."""
SHOWN = ((4, 4), (16, 8), (64, 16))
"""Shapes whose times are listed, and messages of the last one."""
DRAWN = ((16, 8), (16, 16))
"""Shapes whose times are drawn: every form but `linear` was simulated there."""
VALUES = parameters.read()
LINK_BYTES_PER_S, LATENCY_S = 1.5e9, 1.57e-6


@dataclass(frozen=True, slots=True)
class Form:
    """One way to exchange. `algorithm`: palmette's, with the ranks a node for {g}; `rival`: SMPI's own instead."""

    name: str
    algorithm: str
    messages: Callable[[int, int], int]
    """Messages that leave a node, by nodes and ranks a node."""
    rival: str = ""
    most_ranks: int = 1024
    """Larger jobs take minutes of CPU for each size: thousands of messages share each link."""

    def plan_of(self, ranks_a_node: int) -> str:
        """Return the algorithm's specification on nodes of that size."""
        return self.algorithm.format(g=ranks_a_node)


def each_pair(nodes: int, ranks_a_node: int) -> int:
    """Return the messages of a flat exchange that leave a node."""
    return ranks_a_node**2 * (nodes - 1)


def each_rank(nodes: int, ranks_a_node: int) -> int:
    """Return the messages that leave a node where each rank sends one to each other node."""
    return ranks_a_node * (nodes - 1)


def each_node(nodes: int, _: int) -> int:
    """Return the messages that leave a node where it sends one to each other node."""
    return nodes - 1


SENDRECV, PAIRWISE = "sendrecv", "pairwise"
FORMS = (
    Form(SENDRECV, "pairwise:window=1,partners=shift,levels=together", each_pair, rival="ring"),
    Form(PAIRWISE, "pairwise:levels=together", each_pair, most_ranks=256),
    Form("linear", "linear", each_pair, most_ranks=64),
    Form("node_aware", "node_aware", each_rank, most_ranks=512),
    Form("node_aware, 4 rounds", "node_aware:rounds=4", each_rank, most_ranks=256),
    Form("leaders, one", "leaders", each_node),
    Form("leaders, all", "leaders:leaders={g}", each_node),
)
HIERARCHICAL = tuple(form.name for form in FORMS if form.messages is not each_pair)


@dataclass(frozen=True, slots=True)
class Count:
    """Messages and bytes of one node: those that leave it, and those among its own ranks."""

    messages_out: int
    bytes_out: int
    messages_inside: int
    bytes_inside: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One cell. `simulated_s`: None where it wasn't simulated, or not to the end."""

    nodes: int
    ranks_a_node: int
    form: str
    size_bytes: int
    simulated_s: float | None
    predicted_s: float


Shape = tuple[int, int]
Times = dict[str, dict[int, float]]
"""Seconds of one shape by form and block size."""


def count(job: _core.Job, algorithm: str, block_bytes: int) -> Count:
    """Count a plan's messages. Raises ValueError where nodes differ, or what enters one is not what leaves it."""
    found = _core.Plan(job, "alltoall", algorithm, block_bytes=block_bytes).count()
    level = next(level for level in found.levels if level.level == "node")
    first, nodes = level.links[0], len(level.links)
    sides = {
        side
        for link in level.links
        for side in ((link.messages_out, link.bytes_out), (link.messages_in, link.bytes_in))
    }
    if len(sides) > 1:
        raise ValueError(f"{algorithm}: nodes differ in their messages: {sorted(sides)}")
    inside = (found.messages - level.messages) // nodes, (found.bytes - level.bytes) // nodes
    return Count(first.messages_out, first.bytes_out, *inside)


def cluster_of(shape: Shape) -> Cluster:
    """Return the simulated cluster: nodes on one switch."""
    return prepared(
        from_spec(f"{shape[0]}node@{LINK_BYTES_PER_S / 1e9:g}GB/s~{LATENCY_S * 1e6:g}us:{shape[1]}core"), VALUES
    )


def job_of(shape: Shape) -> _core.Job:
    """Return the same as palmette sees it in the simulation."""
    return _core.Job(_core.Machine.from_json(cluster_of(shape).topology.to_json()), "block")


def sizes_of(shape: Shape) -> list[int]:
    """Return the block sizes: one far below the crossovers, four around them, and large ones."""
    large = LARGE_BLOCKS if shape[0] * shape[1] <= LARGE_BLOCKS_RANKS else ()
    return [8, *(2**power // shape[1] for power in range(9, 13)), *large]


def shapes() -> list[Shape]:
    """Return the shapes, in the order of their ranks."""
    return sorted(((n, g) for n in NODES for g in RANKS_A_NODE), key=lambda shape: (shape[0] * shape[1], shape))


def simulated(
    shape: Shape, form: Form, smpirun: str, store: SimulationCache | None, cpu_limit_s: int
) -> tuple[dict[int, float], str]:
    """Simulate a form; returns seconds by size, and what ended it too early. Raises SimulateError."""
    sizes, algorithm, where = sizes_of(shape), form.plan_of(shape[1]), f"{shape[0]} x {shape[1]}, {form.name}"
    found = simulate(
        smpirun,
        make_job(cluster_of(shape), "block", None),
        VALUES,
        form.rival or PALMETTE,
        "alltoall",
        sizes,
        checks=shape[0] * shape[1] <= CHECKED_RANKS,
        cpu_limit_s=cpu_limit_s,
        store=store,
        environment={} if form.rival else {"PALMETTE_FORCE": f"alltoall={algorithm}"},
    )
    for size in found.times_s:
        if found.wrong_ranks[size]:
            raise SimulateError(f"{where}: wrong result at {size_text(size)}")
    if not form.rival and set(found.algorithms.values()) - {algorithm}:
        raise SimulateError(f"{where}: palmette took {', '.join(found.algorithms.values())}")
    missing = ", ".join(size_text(size) for size in sizes if size not in found.times_s)
    return found.times_s, f"{where}: {missing} ({found.trouble})" if missing else ""


def predicted(shape: Shape, form: Form) -> dict[int, float]:
    """Return what palmette's model says, by size."""
    job, algorithm = job_of(shape), form.plan_of(shape[1])
    costs = _core.Costs.of(job)
    return {
        size: _core.predict_algorithm(job, "alltoall", algorithm, costs, 0, size).seconds for size in sizes_of(shape)
    }


def crossings(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Return the sizes at which the faster one changes, interpolated in the logarithms of size and ratio."""
    sizes = sorted(ours.keys() & theirs.keys())
    logs = [math.log(ours[size] / theirs[size]) for size in sizes]
    return [
        math.exp(math.log(low) + (math.log(high) - math.log(low)) * a / (a - b))
        for low, high, a, b in zip(sizes[:-1], sizes[1:], logs[:-1], logs[1:], strict=True)
        if (a < 0) != (b < 0)
    ]


def crossover_text(ours: Mapping[int, float], theirs: Mapping[int, float]) -> str:
    """Return the size from which the flat form is faster; `from-to` where the hierarchical one wins again."""
    sizes = sorted(ours.keys() & theirs.keys())
    if not sizes:
        return "-"
    changes = [f"{change:.0f}" for change in crossings(ours, theirs)]
    if ours[sizes[0]] >= theirs[sizes[0]]:
        changes.insert(0, f"<{sizes[0]}")
    if not changes:
        return f">{sizes[-1]}"
    return ", ".join("-".join(changes[i : i + 2]) for i in range(0, len(changes), 2))


def by_shape(samples: Sequence[Sample], seconds: Callable[[Sample], float | None]) -> dict[Shape, Times]:
    """Return the times that there are, by shape, form and size."""
    found: dict[Shape, Times] = {}
    for sample in samples:
        times = found.setdefault((sample.nodes, sample.ranks_a_node), {}).setdefault(sample.form, {})
        if (time_s := seconds(sample)) is not None:
            times[sample.size_bytes] = time_s
    return found


def tables(samples: Sequence[Sample], dropped: Sequence[str]) -> Iterator[str]:
    """Return the lines of the tables of times, as Markdown."""
    both = [by_shape(samples, seconds) for seconds in (lambda one: one.simulated_s, lambda one: one.predicted_s)]
    for flat, what, cost_s in ((PAIRWISE, "o", VALUES.ends_between_s), (SENDRECV, "L", LATENCY_S)):
        yield from ("", f"Bytes a block from which {flat} is faster: simulated / predicted.", "")
        yield from header("N x g", "ranks", f"{what} C / g", *HIERARCHICAL)
        for shape in both[0]:
            cells = [" / ".join(crossover_text(of[shape][name], of[shape][flat]) for of in both)
                     for name in HIERARCHICAL]  # fmt: skip
            ranks, rule = shape[0] * shape[1], cost_s * LINK_BYTES_PER_S / shape[1]
            yield row(f"{shape[0]} x {shape[1]}", f"{ranks:,}", f"{rule:.0f}", *cells)
        yield from ("", *summary(both[0], both[1], flat, f"{what} C / g", cost_s))
    for shape in SHOWN:
        yield from ("", f"{shape[0]} x {shape[1]}: microseconds, simulated / predicted.", "")
        yield from header("block", *(form.name for form in FORMS))
        for size in sizes_of(shape):
            columns = [[of[shape][form.name].get(size) for of in both] for form in FORMS]
            texts = [" / ".join("-" if one is None else micros(one) for one in column) for column in columns]
            yield row(size_text(size), *texts)
    pairs = [(one.simulated_s, one.predicted_s) for one in samples if one.simulated_s is not None]
    off = [math.exp(abs(math.log(model / simulator))) for simulator, model in pairs]
    yield from ("", f"{len(off)} cells simulated. The model is off by a factor of"
                f" {statistics.median(off):.3f} in the median and {max(off):.2f} at most.")  # fmt: skip
    if dropped:
        yield from ("", "Not simulated to the end:", "", *(f"- {line}" for line in dropped))


def summary(
    times: Mapping[Shape, Times], models: Mapping[Shape, Times], flat: str, rule: str, cost_s: float
) -> Iterator[str]:
    """Return how near rule and model come to simulated crossovers, and what the smallest and largest blocks gain."""
    pairs = []
    for name in HIERARCHICAL:
        rules, slower = [], []
        for shape, of in times.items():
            own, model = (crossings(one[name], one[flat]) for one in (of, models[shape]))
            rules += [one * shape[1] / cost_s / LINK_BYTES_PER_S for one in own[:1]]
            pairs += [a / b for a, b in zip(own[:1], model[:1], strict=False)]
            if LARGE_BLOCKS[-1] in of[name]:
                slower.append(of[name][LARGE_BLOCKS[-1]] / of[flat][LARGE_BLOCKS[-1]])
        if rules:
            yield f"- {name}: {min(rules):.2f} to {max(rules):.2f} times {rule}, median {statistics.median(rules):.2f};"
            yield f"  {size_text(LARGE_BLOCKS[-1])} take {min(slower):.2f} to {max(slower):.2f} times as long as {flat}"
    near = sum(3 / 4 <= pair <= 4 / 3 for pair in pairs)
    yield f"- the model's crossover is within a factor of 4/3 of the simulated one in {near} of {len(pairs)} cases"
    gains = [of[flat][8] / min(of[name][8] for name in HIERARCHICAL if 8 in of[name])
             for of in times.values() if 8 in of[flat]]  # fmt: skip
    yield f"- 8 B: {flat} takes {min(gains):.1f} to {max(gains):.1f} times as long as the fastest of these four"


def counts_table() -> Iterator[str]:
    """Count the plans of all shapes; returns the lines for one of them. Raises ValueError where a formula is wrong."""
    yield from ("Messages and blocks of one node, counted in the plans.", "")
    yield from header("N x g", "form", "messages out", "blocks out", "messages inside", "blocks inside")
    for nodes, g in shapes():
        job = job_of((nodes, g))
        for form in FORMS:
            found = count(job, form.plan_of(g), 1)
            if (found.messages_out, found.bytes_out) != (form.messages(nodes, g), g * (job.size - g)):
                raise ValueError(f"{form.name} on {nodes} x {g}: not the formula's messages: {found}")
            if (nodes, g) == SHOWN[-1]:
                yield row(f"{nodes} x {g}", form.name, *(f"{value:,}" for value in astuple(found)))
    yield ""
    yield f"So are those of all {len(shapes())} shapes: what leaves a node is the formula's in each of the"
    yield f"{len(shapes()) * len(FORMS)} plans, and its blocks are g (p - g)."


def micros(seconds: float) -> str:
    """Return three digits or more, in microseconds."""
    return f"{seconds * 1e6:.3g}" if seconds < 999.5e-6 else f"{seconds * 1e6:,.0f}"


def header(*names: str) -> Iterator[str]:
    """Return the head of a table."""
    yield row(*names)
    yield "|---" * len(names) + "|"


def row(*texts: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(texts)} |"


@dataclass(frozen=True)
class Point:
    """What the picture takes of a cell; simulated ones have no prediction's details."""

    collective: str
    size_bytes: int
    algorithm: str
    seconds: float
    bound_s: float


def picture(samples: Sequence[Sample]) -> str:
    """Return the simulated times of some shapes over the block's size, as SVG."""
    points = [
        Point(f"{shape[0]} nodes x {shape[1]} ranks", sample.size_bytes, sample.form, sample.simulated_s,
              _core.bound(job_of(shape), "alltoall", sample.size_bytes).seconds)
        for shape in DRAWN
        for sample in samples
        if (sample.nodes, sample.ranks_a_node) == shape and sample.simulated_s is not None
    ]  # fmt: skip
    return curves_svg(cast("list[Cell]", points))


def cpu_of_simulations_s() -> float:
    """Return the CPU time of all simulations that this process ran."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def to_json(samples: Sequence[Sample], dropped: Sequence[str], version: str) -> str:
    """Return a document with a line for each sample, so that two runs can be compared line by line."""
    values = [[float(f"{v:.7g}") if isinstance(v, float) else v for v in astuple(sample)] for sample in samples]
    lines = ",\n".join(json.dumps(line) for line in values)
    head = {"simgrid": version, "dropped": dropped, "columns": [field.name for field in fields(Sample)]}
    return json.dumps(head)[:-1] + f', "samples": [\n{lines}\n]}}\n'


def simulate_all(options: argparse.Namespace) -> None:
    """Simulate, and write samples and picture. Raises SimulateError and OSError."""
    smpirun = simgrid.find_smpirun()
    store = SimulationCache(Path(options.keep)) if options.keep else None
    folder = Path(options.write)
    folder.mkdir(parents=True, exist_ok=True)
    samples: list[Sample] = []
    dropped: list[str] = []
    for shape in shapes():
        for form in FORMS:
            times: dict[int, float] = {}
            if shape[0] * shape[1] <= form.most_ranks:
                before_s = cpu_of_simulations_s()
                times, trouble = simulated(shape, form, smpirun, store, options.cpu_limit)
                spent_s = cpu_of_simulations_s() - before_s
                print(f"{shape[0]} x {shape[1]}, {form.name}: {spent_s:.1f} s", file=sys.stderr, flush=True)
                dropped += [trouble] if trouble else []
            samples += [
                Sample(*shape, form.name, size, times.get(size), time_s)
                for size, time_s in predicted(shape, form).items()
            ]
    print(f"all: {cpu_of_simulations_s():.0f} s", file=sys.stderr)
    with replaced(folder / "samples.json") as stream:
        stream.write(to_json(samples, dropped, simgrid.version(smpirun)))
    with replaced(folder / "times.svg") as stream:
        stream.write(picture(samples))


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", metavar="FOLDER", help="simulate, and write samples and picture there")
    what.add_argument("--table", metavar="FOLDER", help="of samples written before")
    parser.add_argument("--keep", metavar="FOLDER", help="cache of simulations")
    parser.add_argument("--cpu-limit", type=int, default=200, help="seconds of CPU for each simulation")
    options = parser.parse_args()
    file = Path(options.write or options.table) / "samples.json"
    try:
        if options.write:
            simulate_all(options)
        document = json.loads(file.read_text(encoding="utf-8"))
        lines = list(tables([Sample(*sample) for sample in document["samples"]], document["dropped"]))
    except SimulateError as error:
        print(f"hierarchical_alltoall.py: {error}", file=sys.stderr)
        return 2
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"hierarchical_alltoall.py: {file}: {error}; make it with --write FOLDER", file=sys.stderr)
        return 2
    print("\n".join([*counts_table(), *lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
