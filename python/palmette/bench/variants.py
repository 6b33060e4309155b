"""Variants: palmette with settings of its own, measured beside palmette with its defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from palmette import settings
from palmette.measure.errors import BenchError

EXAMPLE = "deep:PALMETTE_FORCE=allreduce=ring"


@dataclass(frozen=True)
class Variant:
    """`env` is set in the ranks. `collectives`: those that differ from palmette's own choice; empty: all."""

    name: str
    env: dict[str, str] = field(default_factory=dict)
    collectives: tuple[str, ...] = ()


PRESETS = {
    variant.name: variant
    for variant in (
        Variant("hosts", {"PALMETTE_AGGREGATOR_TOKEN": "", "PALMETTE_SHARP": "off"}, ("allreduce",)),
        Variant("in_network", settings.force(allreduce="in_network"), ("allreduce",)),
    )
}
"""The hosts alone, without aggregators and switches that reduce, and through these wherever that is possible."""


def parse_variant(text: str) -> Variant:
    """Return a variant: the name of a preset, or `NAME:PALMETTE_...=VALUE,...`. Raises BenchError."""
    if text in PRESETS:
        return PRESETS[text]
    name, colon, rest = text.partition(":")
    if not name or not colon or "/" in name:
        raise BenchError(f"--variant {text}: expected {', '.join(PRESETS)} or NAME:K=V,..., as in {EXAMPLE}")
    chosen = {}
    # A comma may belong to a value: PALMETTE_FORCE=gather=leaders:leaders=2,between=linear.
    for part in re.split(r",(?=PALMETTE_\w+=)", rest):
        key, equals, value = part.partition("=")
        if not equals or not key.startswith("PALMETTE_"):
            raise BenchError(
                f"--variant {text}: {part} is no setting PALMETTE_...=VALUE (`palmette settings` lists them)"
            )
        chosen[key] = value
    try:
        settings.values(chosen)
    except settings.SettingError as error:
        raise BenchError(f"--variant {name}: {error}; `palmette settings` explains each") from None
    return Variant(name, chosen)
