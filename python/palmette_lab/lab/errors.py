"""The exception of the lab."""

from __future__ import annotations

from palmette.measure.errors import PlaceError


class LabError(PlaceError):
    """A lab operation failed; one line with what, where and what to do next."""
