"""What registering memory costs and what keeping registrations saves, with buffers that the kernel pins for io_uring.

    .venv/bin/python studies/registration.py [--rounds 9] [--write SAMPLES.json]

Each way of sending takes turns in one process, over a TCP connection on this host: registering each time (`each`), by
the cache (`cache`), copying through memory that stays registered (`pool`), an ordinary send (`copy`). Then look-ups of
the cache among 10 to 100,000 registrations. It is the kernel's pinning, and no adapter's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from palmette import _core

ROOT = Path(__file__).resolve().parents[1]
SIZES = (4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20)
ENTRIES = (10, 100, 1000, 10_000, 100_000)
MODES = ("each", "cache", "pool", "copy")
BUFFERS = {"one": "one, reused", "rotating": "rotating", "new": "a new one each time"}
UCX_S, UCX_S_PER_BYTE = 16e-6, 0.06e-9
"""A registration, as UCX assumes it for InfiniBand: MEM_REG_OVERHEAD and MEM_REG_GROWTH in its "
"uct/ib/base/ib_md.c."""
LINK_S, LINK_BYTES_PER_S = 6e-6, 25e9
"""Latency and rate of the model's reduction itself: HDR-200, as in the slides' clusters."""
LAB_BYTES_PER_S = 100e6 / 8


class CannotMeasureError(RuntimeError):
    """Why registrations can't be measured here."""


def program() -> Path:
    """Build registration.cpp."""
    build = ROOT / "build" / "release"
    if not (build / "build.ninja").is_file():
        raise CannotMeasureError("registration.cpp isn't built: `make build` first")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["cmake", "--build", str(build), "--parallel", "1", "--target", "registration"]
    done = subprocess.run(words, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasureError(f"registration.cpp can't be built: {done.stdout.strip().splitlines()[-1]}")
    return build / "studies" / "registration"


def measured(what: str, rounds: int, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Return a sample for each round, without those that warm up. Raises CannotMeasureError."""
    words = [str(program()), what, str(rounds), *map(str, numbers)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise CannotMeasureError((done.stderr.strip() or f"status {done.returncode}").removeprefix("registration: "))
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    return [sample for sample in samples if sample["round"] >= 0]


def of(samples: list[dict[str, Any]], what: str, **where: object) -> list[float]:
    """Return one value of the samples with these properties, in the order of rounds."""
    return [one[what] for one in samples if all(one[name] == value for name, value in where.items())]


def factors(samples: list[dict[str, Any]], size: int, what: str = "seconds") -> list[float]:
    """Return the ratios of registering each time and the cache, round by round, with one buffer."""
    times = [of(samples, what, bytes=size, buffers="one", mode=mode) for mode in ("each", "cache")]
    return [a / b for a, b in zip(*times, strict=True)]


def modelled(size: int) -> float:
    """Return the model's factor between registering both buffers each time and never."""
    return 1 + 2 * (UCX_S + UCX_S_PER_BYTE * size) / (LINK_S + size / LINK_BYTES_PER_S)


def with_quartiles(values: Sequence[float]) -> str:
    """Return the median and the quartiles."""
    low, _, high = quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return f"{median(values):.2f} ({low:.2f} to {high:.2f})"


def duration(values: Sequence[float]) -> str:
    """Return the median as a duration."""
    return _core.format_duration(median(values))


def factor_rows(samples: list[dict[str, Any]]) -> list[list[str]]:
    """A row for each size: what a registration takes, factors with one buffer, the model's."""
    rows = []
    for size in sorted({one["bytes"] for one in samples}):
        registering = of(samples, "registering_s", bytes=size, buffers="one", mode="each")
        at_lab = 1 + median(registering) / (size / LAB_BYTES_PER_S)
        rows.append(
            [_core.format_size(size), duration(registering), f"{1e9 * median(registering) / (size / 4096):.0f} ns",
             *(with_quartiles(factors(samples, size, what)) for what in ("seconds", "cpu_s")), f"{at_lab:.2f}",
             f"{modelled(size):.1f}"]
        )  # fmt: skip
    return rows


FACTOR_HEAD = (
    "bytes",
    "registering and back",
    "for 4 KB",
    "each / cache",
    "of CPU time",
    "the factor at 100 Mbit/s, computed",
    "model",
)
MODE_HEAD = ("bytes", "buffers", *MODES, "CPU: each", "cache", "pool", "copy", "hits of cache", "pinned by cache")


def mode_rows(samples: list[dict[str, Any]]) -> list[list[str]]:
    """A row for each size and way of using buffers."""
    rows = []
    for size in sorted({one["bytes"] for one in samples}):
        for buffers, name in BUFFERS.items():
            here = [one for one in samples if (one["bytes"], one["buffers"]) == (size, buffers)]
            cached = [one for one in here if one["mode"] == "cache"]
            hits, misses = (sum(one[what] for one in cached) for what in ("hits", "misses"))
            count = here[0]["count"]
            rows.append(
                [_core.format_size(size), f"{count} {name}" if count > 1 else name,
                 *(duration(of(here, "seconds", mode=mode)) for mode in MODES),
                 *(duration(of(here, "cpu_s", mode=mode)) for mode in MODES),
                 f"{100 * hits / (hits + misses):.0f} %",
                 _core.format_size(int(median(of(cached, "pinned_kb")) * 1024))]
            )  # fmt: skip
    return rows


def copied(samples: list[dict[str, Any]]) -> str:
    """Return what the kernel told of its zero copy."""
    told = {one["copied"] for one in samples if one["mode"] in ("each", "cache", "pool")}
    if told == {True}:
        return "the kernel reported that it copied every one of these sends (IORING_NOTIF_USAGE_ZC_COPIED)"
    if told == {False}:
        return "the kernel reported that it copied none of these sends"
    return "the kernel doesn't report whether it copied (before Linux 6.2)" if told == {None} else "some were copied"


LOOKUP_HEAD = ("registrations", "a look-up", "quartiles", "registering one more")


def lookup_rows(samples: list[dict[str, Any]]) -> list[list[str]]:
    """A row for each number of registrations."""
    rows = []
    for entries in sorted({one["entries"] for one in samples}):
        found = of(samples, "find_s", entries=entries)
        low, _, high = quantiles(found, n=4) if len(found) > 1 else (found[0],) * 3
        inserted = of(samples, "insert_s", entries=entries)[0]
        rows.append([f"{entries:,}", *(f"{1e9 * s:.0f} ns" for s in (median(found),)),
                     f"{1e9 * low:.0f} to {1e9 * high:.0f} ns", f"{1e9 * inserted:.0f} ns"])  # fmt: skip
    return rows


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def main() -> None:
    """Measure, print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", type=Path, metavar="SAMPLES.json")
    asked = parser.parse_args()
    try:
        transfers = measured("transfer", asked.rounds, SIZES)
        lookups = measured("lookup", asked.rounds, ENTRIES)
    except CannotMeasureError as error:
        raise SystemExit(f"registration.py: {error}") from None
    print(markdown(FACTOR_HEAD, factor_rows(transfers)), end="\n\n")
    print(markdown(MODE_HEAD, mode_rows(transfers)), end="\n\n")
    print(f"Zero copy: {copied(transfers)}.\n")
    print(markdown(LOOKUP_HEAD, lookup_rows(lookups)))
    if asked.write:
        asked.write.write_text(json.dumps({"transfer": transfers, "lookup": lookups}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
