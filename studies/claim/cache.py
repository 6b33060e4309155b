"""The registration cache: what registering costs, what keeping registrations saves, what a look-up takes."""

from __future__ import annotations

from statistics import median

import registration as study

from palmette import _core

from .form import DIRECTION, MEASURED, MODEL, REFUTED, SHOWN, CannotRunError, Claim, ClaimOutcome, Options, Table

NOTICEABLE_FACTOR = 1.02
"""Factor below which nothing is saved."""


def cache(options: Options) -> ClaimOutcome:
    """Registering each time against a cache."""
    try:
        samples = study.measured(
            "transfer", 3 if options.small else 9, study.SIZES[1:3] if options.small else study.SIZES
        )
    except study.CannotMeasureError as error:
        raise CannotRunError(str(error)) from None
    sizes = sorted({one["bytes"] for one in samples})
    factors = {size: median(study.factors(samples, size)) for size in sizes}
    best = max(factors, key=lambda size: factors[size])
    cost = {size: median(study.of(samples, "registering_s", bytes=size, buffers="one", mode="each")) for size in sizes}
    tables = [
        Table(
            "One buffer, reused: registering it, sending it over TCP on this host, being told that it is there, "
            "and unregistering it, each time, over the same with the registration that the cache has. Medians of "
            f"rounds by turns, quartiles. Model: 1 + 2 ({study.UCX_S * 1e6:.0f} us + {study.UCX_S_PER_BYTE * 1e9} "
            f"ns/B) / ({study.LINK_S * 1e6:.0f} us + bytes / {study.LINK_BYTES_PER_S / 1e9:.0f} GB/s), UCX's "
            "constants for InfiniBand, two buffers.",
            study.FACTOR_HEAD,
            study.factor_rows(samples),
        ),
        Table(
            "All ways, seconds and CPU seconds of the sender for each call; "
            f"{study.copied(samples)}, as it does to sockets of the same host, so that nothing here shows zero copy.",
            study.MODE_HEAD,
            study.mode_rows(samples),
        ),
    ]
    grows = cost[sizes[-1]] > 1.5 * cost[sizes[0]]
    return ClaimOutcome(
        DIRECTION if grows and factors[best] > NOTICEABLE_FACTOR else REFUTED,
        f"at most {factors[best]:.2f} ({_core.format_size(best)}) with the kernel's pinning; by the model "
        f"{study.modelled(65536):.1f} at 64K, {study.modelled(1 << 20):.1f} at 1M",
        "registering grows with the pages, but a kernel pins a page in a fraction of what UCX assumes an adapter "
        "to take, and a send over TCP takes longer than one over InfiniBand",
        tables,
        samples,
    )


def lookup(options: Options) -> ClaimOutcome:
    """A look-up takes O(log n)."""
    entries = study.ENTRIES[:4:2] if options.small else study.ENTRIES
    try:
        samples = study.measured("lookup", 3 if options.small else 15, entries)
    except study.CannotMeasureError as error:
        raise CannotRunError(str(error)) from None
    first, last = (median(study.of(samples, "find_s", entries=count)) for count in (entries[0], entries[-1]))
    times = entries[-1] / entries[0]
    return ClaimOutcome(
        SHOWN if last / first < times / 10 else REFUTED,
        f"{1e9 * first:.0f} ns among {entries[0]}, {1e9 * last:.0f} ns among {entries[-1]:,}",
        "a std::map is as good as an AVL tree; with many entries misses of the processor's cache count more than "
        "steps",
        [Table("Finding and releasing a registration at random, by the cache's std::map.", study.LOOKUP_HEAD,
               study.lookup_rows(samples))],
        samples,
    )  # fmt: skip


CLAIMS = (
    Claim("registration", "Registering costs more the longer the message; a cache cuts latency", "up to 5.6 times",
          False, f"{MEASURED}, {MODEL}", cache),
    Claim("lookup", "An AVL tree or the like finds a buffer in O(log n)", "O(log n)", False, MEASURED, lookup),
)  # fmt: skip
