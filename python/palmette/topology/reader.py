"""Checked access to a JSON document; every error names the file and the JSON path."""

from __future__ import annotations

import math
from typing import Any

LEAST_RATE, MOST_RATE = 1.0, 1e18
"""Valid range of a link's bytes per second: values outside are mistakes, on which a simulation might not end."""
MOST_SECONDS = 1e9


class TopologyError(ValueError):
    """A topology file that can't be used; the text names file, place and what to do."""


class Reader:
    """Takes values out of JSON objects and checks their types."""

    def __init__(self, file: str) -> None:
        self.file = file

    def error(self, path: str, message: str) -> TopologyError:
        return TopologyError(f"{self.file}: {path}: {message}")

    def object(self, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(path, f"expected an object, found {_kind(value)}")
        return value

    def items(self, holder: dict[str, Any], key: str, path: str) -> list[Any]:
        """The list under `key`; empty when absent."""
        value = holder.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"{path}.{key}", f"expected a list, found {_kind(value)}")
        return value

    def strings(self, holder: dict[str, Any], key: str, path: str) -> list[str]:
        values = self.items(holder, key, path)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise self.error(f"{path}.{key}[{index}]", f"expected a string, found {_kind(value)}")
        return values

    def text(self, holder: dict[str, Any], key: str, path: str) -> str:
        value = self.optional_text(holder, key, path)
        if not value:
            raise self.error(f"{path}.{key}", "missing or empty; expected a name")
        return value

    def optional_text(self, holder: dict[str, Any], key: str, path: str) -> str | None:
        value = holder.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{path}.{key}", f"expected a string, found {_kind(value)}")
        return value

    def flag(self, holder: dict[str, Any], key: str, path: str) -> bool:
        value = holder.get(key, False)
        if not isinstance(value, bool):
            raise self.error(f"{path}.{key}", f"expected true or false, found {_kind(value)}")
        return value

    def whole(self, holder: dict[str, Any], key: str, path: str, least: int, most: int | None = None) -> int | None:
        value = holder.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(f"{path}.{key}", f"expected a whole number of at least {least}, found {value!r}")
        if most is not None and value > most:
            raise self.error(f"{path}.{key}", f"expected a whole number of at most {most}, found {value}")
        return value

    def rate(self, holder: dict[str, Any], key: str, path: str) -> float | None:
        """Bytes per second from LEAST_RATE to MOST_RATE."""
        value = holder.get(key)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not LEAST_RATE <= value <= MOST_RATE:
            raise self.error(
                f"{path}.{key}",
                f"expected a number from {LEAST_RATE:g} to {MOST_RATE:g}, found {value!r}; leave it out if unknown",
            )
        return float(value)

    def seconds(self, holder: dict[str, Any], key: str, path: str) -> float | None:
        """Seconds from 0 to MOST_SECONDS."""
        value = holder.get(key)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not 0 <= value <= MOST_SECONDS:
            raise self.error(f"{path}.{key}", f"expected seconds, found {value!r}; leave it out if unknown")
        return float(value)

    def share(self, holder: dict[str, Any], key: str, path: str, below: float = math.inf) -> float | None:
        """A finite number of at least zero and below `below`."""
        value = holder.get(key)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not math.isfinite(value) or not 0 <= value < below:
            limit = "" if math.isinf(below) else f" and below {below:g}"
            raise self.error(f"{path}.{key}", f"expected a number of at least 0{limit}, found {value!r}; leave it out")
        return float(value)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(value), "a number")
