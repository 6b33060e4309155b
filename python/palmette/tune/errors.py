"""The error of tuning."""

from __future__ import annotations


class TuneError(Exception):
    """Tuning can't be done; one line that says what, where and what to do next."""
