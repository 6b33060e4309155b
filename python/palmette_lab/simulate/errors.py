"""The error of simulations."""

from __future__ import annotations


class SimulateError(Exception):
    """A simulation can't be done; one line that says what, where and what to do next."""
