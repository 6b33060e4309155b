"""Specifications as text and as parts: `NAME:KEY=VALUE,...` (docs/reference/algorithm-spec.md)."""

from __future__ import annotations

from collections.abc import Mapping


def read(spec: str) -> tuple[str, dict[str, str]]:
    """Return name and options of a specification."""
    name, _, rest = spec.partition(":")
    options = dict(part.partition("=")[::2] for part in rest.split(",")) if rest else {}
    return name, {key: value for key, value in options.items() if value}


def written(name: str, options: Mapping[str, str | None]) -> str:
    """Return a specification as text."""
    keys = ",".join(f"{key}={value}" for key, value in options.items() if value is not None)
    return f"{name}:{keys}" if keys else name
