"""The exception of the lab."""

from __future__ import annotations


class LabError(Exception):
    """A lab operation failed; one line with what, where and what to do next."""
