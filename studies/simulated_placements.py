"""Simulated gather and scatter on the gather paper's test bed: random placements, full, half and quarter uplinks.

    python studies/simulated_placements.py --keep simulations --write docs/results/placements.md

As in Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010, section 6: 296 ranks, quiet and with the other half of
the places in an all-to-all; block and cyclic placement, too. The gain is 1 - palmette / best rival. The page states
first which of the paper's claims hold, then the tables. The exit status is 1 where palmette is slower than the best
rival by more than 5 % in any quiet cell.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from palmette.bench.text import size_text
from palmette.units import time_text
from palmette_lab.simulate import parameters, simgrid
from palmette_lab.simulate.cluster import Cluster, from_stored, prepared
from palmette_lab.simulate.compare import SLOWER_RATIO
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.job import Background, Job, background_of, make_job
from palmette_lab.simulate.kept import SimulationCache
from palmette_lab.simulate.run import PALMETTE, Outcome, simulate
from palmette_lab.simulate.watch import watched
from palmette_lab.traffic import Traffic

SHARES = (1.0, 0.5, 0.25)
COLLECTIVES = ("gather", "scatter")
FLAT = "ompi_basic_linear"
"""The flat algorithm (linear), a further rival under traffic."""
VALUES = parameters.read()


@dataclass(frozen=True, slots=True)
class Case:
    """One simulation, of all its sizes."""

    traffic: str
    share: float
    placement: str
    collective: str
    contender: str
    sizes: tuple[int, ...]


Times = dict[tuple[str, float, str, str, str, int], float]
"""Simulated seconds of right results: traffic, share, placement, collective, contender, size."""


def cases_of(options: argparse.Namespace) -> Iterator[Case]:
    """Give all cases: quiet ones, the large size, and those under traffic with the same ones quiet."""
    rivals = options.rivals.split(",")
    drawn = [f"random:{seed}" for seed in range(1, options.placements + 1)]
    few = ["block", "cyclic", *drawn[: options.loaded_placements]] if options.loaded_placements else []
    quiet, loaded, large = (sizes_of(text) for text in (options.sizes, options.loaded_sizes, options.large))
    for share, collective in itertools.product(SHARES, COLLECTIVES):
        for placement, who in itertools.product(["block", "cyclic", *drawn], [PALMETTE, *rivals]):
            yield Case("", share, placement, collective, who, quiet)
    for collective in COLLECTIVES:
        for placement, who in itertools.product(["block", "cyclic", *drawn[:1]], [PALMETTE, *rivals]):
            yield Case("", 1.0, placement, collective, who, large)
        for share, placement in itertools.product(SHARES, few):
            yield Case("", share, placement, collective, FLAT, quiet)
            for who in (PALMETTE, *rivals, FLAT):
                yield Case(options.traffic, share, placement, collective, who, loaded)


def sizes_of(text: str) -> tuple[int, ...]:
    """Return the bytes of a list with commas; empty: none."""
    return tuple(int(size) for size in text.split(",") if size)


@cache
def bed_of(share: float) -> Cluster:
    """Return the test bed with so much of its uplinks."""
    return prepared(from_stored("gather-paper"), VALUES, share)


@cache
def job_of(placement: str, share: float, traffic: Background | None) -> Job:
    """Return the placement of the ranks, with the background traffic."""
    return make_job(bed_of(share), placement, None, traffic)


def times_of(cases: Sequence[Case], options: argparse.Namespace) -> tuple[Times, list[str]]:
    """Simulate all; returns the times of right results, and a line for each contender that was wrong or didn't end."""
    smpirun = simgrid.find_smpirun()
    store = SimulationCache(Path(options.keep)) if options.keep else None
    ended = itertools.count(1)
    # First, since palmette gets its load of the links in the other simulations.
    backgrounds = {
        share: watched(smpirun, bed_of(share), background_of(bed_of(share), Traffic.parse(options.traffic)), VALUES,
                       cpu_limit_s=options.cpu_limit, store=store)
        for share in sorted({case.share for case in cases if case.traffic})
    }  # fmt: skip

    def one(case: Case) -> Outcome:
        job = job_of(case.placement, case.share, backgrounds[case.share] if case.traffic else None)
        found = simulate(smpirun, job, VALUES, case.contender, case.collective, case.sizes,
                         cpu_limit_s=options.cpu_limit, store=store)  # fmt: skip
        print(f"\r\x1b[K{next(ended)} of {len(cases)}: {job.placement}, share {case.share:g}, {case.collective},"
              f" {case.contender}", end="", file=sys.stderr, flush=True)  # fmt: skip
        return found

    with ThreadPoolExecutor(options.parallel) as pool:
        try:
            with simgrid.ended_with():
                outcomes = list(pool.map(one, cases))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(file=sys.stderr)
    times: Times = {}
    troubles = []
    for case, outcome in zip(cases, outcomes, strict=True):
        where = f"{case.contender}, {case.collective}, {case.placement}, share {case.share:g}"
        where += f", {case.traffic}" if case.traffic else ""
        if outcome.trouble:
            troubles.append(f"{where}: {outcome.trouble}")
        for size in case.sizes:
            seconds = outcome.time_s(size)
            if seconds is not None:
                times[case.traffic, case.share, case.placement, case.collective, case.contender, size] = seconds
            elif not outcome.trouble:
                troubles.append(f"{where}: wrong at {size_text(size)}")
    return times, troubles


class PlacementResults:
    """The results and their evaluation."""

    def __init__(self, times: Times, options: argparse.Namespace) -> None:
        """Keep the times."""
        self.times = times
        self.rivals: list[str] = options.rivals.split(",")
        self.traffic: str = options.traffic

    def gains(
        self,
        traffic: str,
        share: float,
        collective: str,
        sizes: Sequence[int],
        rivals: Sequence[str] = (),
        only: str = "",
    ) -> dict[tuple[str, int], float]:
        """Gain over the best rival by placement and size, on placements whose name begins with `only`."""
        found = {}
        for (t, s, placement, c, who, size), own in self.times.items():
            if (t, s, c, who) != (traffic, share, collective, PALMETTE) or size not in sizes:
                continue
            others = [self.times.get((t, s, placement, c, rival, size)) for rival in rivals or self.rivals]
            best = min((other for other in others if other is not None), default=None)
            if best is not None and placement.startswith(only):
                found[placement, size] = 1 - own / best
        return found

    def slowdowns(self, share: float, collective: str, contender: str, size: int) -> list[float]:
        """The slowdown under traffic, on each placement."""
        return [
            seconds / self.times["", s, placement, c, who, n]
            for (t, s, placement, c, who, n), seconds in self.times.items()
            if (t, s, c, who, n) == (self.traffic, share, collective, contender, size)
            and ("", s, placement, c, who, n) in self.times
        ]


def slower(gains: dict[tuple[str, int], float]) -> int:
    """The number of cells in which palmette is slower by more than the margin."""
    return sum(gain < 1 - SLOWER_RATIO for gain in gains.values())


def page(found: PlacementResults, troubles: Sequence[str], options: argparse.Namespace) -> Iterator[str]:
    """The page in Markdown."""
    quiet, loaded, large = (sizes_of(text) for text in (options.sizes, options.loaded_sizes, options.large))
    yield from (f"# Gather and scatter on {options.placements} random placements, simulated", "")
    yield "The test bed of Kandalla, Subramoni, Vishnu, Panda (IPDPS workshops 2010): 296 ranks on 4 nodes of 16 and 29"
    yield "of 8, behind two switches. Quiet, over whole, half and quarter uplinks, and under an all-to-all of half of"
    yield "all places."
    yield f"Rivals: SimGrid {simgrid.VERSION}'s {', '.join(found.rivals)}."
    yield "[How it is simulated](../method/simulating.md), with the reasons for what doesn't hold."
    yield "The gain is 1 - palmette / best rival. Made by"
    yield from ("", f"    python studies/simulated_placements.py {options.asked}", "", "## The paper's claims", "")
    yield from claims(found, quiet + large, loaded)
    yield from ("", "## Quiet, random placements", "", "Median gain (least; best).")
    for collective in COLLECTIVES:
        yield from _table(collective, [f"share {share:g}" for share in SHARES], {
            size_text(size): [_spread(found.gains("", share, collective, (size,), only="random")) for share in SHARES]
            for size in quiet
        })  # fmt: skip
    yield from ("", "## Quiet, block and cyclic placement, and the large size", "", "Palmette's time, and its gain.")
    ways = [(place, share) for place in ("block", "cyclic", "random:1") for share in SHARES]
    for collective in COLLECTIVES:
        yield from _table(collective, [f"{place}, {share:g}" for place, share in ways], {
            size_text(size): [_cell(found, collective, way, size) for way in ways] for size in quiet + large
        })  # fmt: skip
    if options.loaded_placements:
        yield from ("", f"## Under {options.traffic}", "")
        yield f"Block, cyclic and {options.loaded_placements} random placements. Palmette, which knows the traffic's"
        yield f"load of each link: its median gain over {' and '.join(found.rivals)} (the least) and over {FLAT};"
        yield "the slowdown of each against quiet, geometric mean."
        names = [PALMETTE, *found.rivals, FLAT]
        for collective in COLLECTIVES:
            yield from _table(collective, ["over the rivals", f"over {FLAT}", *(f"{name}, times" for name in names)], {
                f"{size_text(size)}, share {share:g}": [
                    *_loaded_row(found, share, collective, size),
                    *(_times(found.slowdowns(share, collective, who, size)) for who in names),
                ]
                for size in loaded for share in SHARES
            })  # fmt: skip
    if troubles:
        yield from ("", "## Left out", "", *(f"- {trouble}" for trouble in troubles))


def claims(found: PlacementResults, sizes: Sequence[int], loaded: Sequence[int]) -> Iterator[str]:
    """Which of the paper's claims hold, with values."""
    for traffic, how, measured in (("", "quiet", sizes), (found.traffic, "loaded", loaded)):
        both = [found.gains(traffic, share, collective, measured) for share in SHARES for collective in COLLECTIVES]
        if not all(both):
            continue
        cells, losses, least = sum(map(len, both)), sum(map(slower, both)), min(min(gains.values()) for gains in both)
        yield (
            f"- *Loses nowhere*, {how}. Of {cells} cells {losses} are slower by more than 5 %;"
            f" least gain: {_percent(least)}."
        )
        for share, collective, size in itertools.product(SHARES, COLLECTIVES, measured):
            gains = found.gains(traffic, share, collective, (size,))
            if slower(gains):
                where = f"{collective} of {size_text(size)} over {share:g} of the uplink"
                yield f"  Slower: {where}, on {slower(gains)} of {len(gains)} placements."
    for collective in COLLECTIVES:
        all_gains = [list(found.gains("", share, collective, sizes, only="random").values()) for share in SHARES]
        medians = [statistics.median(gains) for gains in all_gains]
        grows = medians == sorted(medians) and medians[-1] > medians[0] + SLOWER_RATIO - 1
        verdict = "It does" if grows else "It does not by 5 % and more"
        yield f"- *The median gain grows as the uplink's share falls*, {collective}. {verdict}: {_shares(medians)}."
        best = _shares([max(gains) for gains in all_gains])
        yield f"- *At least half at best*, {collective}. The best gain is {best}."
    for collective in COLLECTIVES:
        ratios = {
            who: [
                ratio for size in loaded for share in SHARES for ratio in found.slowdowns(share, collective, who, size)
            ]
            for who in (PALMETTE, *found.rivals, FLAT)
        }
        if all(ratios.values()):
            texts = ", ".join(f"{who} {_mean(values):.1f}" for who, values in ratios.items())
            yield f"- *Traffic hurts others more*, {collective}. Times longer than quiet, geometric mean: {texts}."


def _shares(gains: Sequence[float]) -> str:
    texts = [f"{_percent(gain)} at {share:g}" for gain, share in zip(gains, SHARES, strict=True)]
    return ", ".join(texts) + " of the uplink"


def _table(title: str, columns: Sequence[str], rows: dict[str, list[str]]) -> Iterator[str]:
    yield from ("", f"### {title}", "", "| size | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|")
    for name, texts in rows.items():
        yield f"| {name} | " + " | ".join(texts) + " |"


def _spread(gains: dict[tuple[str, int], float]) -> str:
    values = list(gains.values())
    return (
        f"{_percent(statistics.median(values))} ({_percent(min(values))}; {_percent(max(values))})" if values else "-"
    )


def _cell(found: PlacementResults, collective: str, way: tuple[str, float], size: int) -> str:
    own = found.times.get(("", way[1], way[0], collective, PALMETTE, size))
    gain = found.gains("", way[1], collective, (size,)).get((way[0], size))
    return "-" if own is None or gain is None else f"{time_text(own)} {_percent(gain)}"


def _loaded_row(found: PlacementResults, share: float, collective: str, size: int) -> Iterator[str]:
    for rivals in ((), (FLAT,)):
        gains = list(found.gains(found.traffic, share, collective, (size,), rivals).values())
        yield f"{_percent(statistics.median(gains))} ({_percent(min(gains))})" if gains else "-"


def _times(values: Sequence[float]) -> str:
    return f"{_mean(values):.1f}" if values else "-"


def _mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values))) if values else 0.0


def _percent(gain: float) -> str:
    return f"{100 * gain:.0f} %"


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--placements", type=int, default=30)
    parser.add_argument("--loaded-placements", type=int, default=4, help="under traffic; 0: quiet only")
    parser.add_argument("--sizes", default="8,64,1024,8192,65536", help="bytes, with commas")
    parser.add_argument("--loaded-sizes", default="64,1024,8192")
    parser.add_argument("--large", default="1048576", help="on block, cyclic and the first random placement")
    parser.add_argument("--rivals", default="mpich,ompi")
    parser.add_argument("--traffic", default="alltoall:half:16K")
    parser.add_argument("--keep", help="folder for simulations done before")
    parser.add_argument("--cpu-limit", type=int, default=180, help="seconds for each simulation")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--write", help="Markdown page; default: print it")
    options = parser.parse_args()
    options.asked = " ".join(sys.argv[1:])
    try:
        cases = [case for case in cases_of(options) if case.sizes]
        times, troubles = times_of(cases, options)
    except (SimulateError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    found = PlacementResults(times, options)
    text = "\n".join(page(found, troubles, options)) + "\n"
    if options.write:
        Path(options.write).write_text(text, encoding="utf-8")
    else:
        print(text)
    sizes = sizes_of(options.sizes) + sizes_of(options.large)
    return 1 if any(slower(found.gains("", s, c, sizes)) for s in SHARES for c in COLLECTIVES) else 0


if __name__ == "__main__":
    sys.exit(main())
