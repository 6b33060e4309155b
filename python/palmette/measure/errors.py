"""Errors of measuring jobs."""

from __future__ import annotations


class PlaceError(Exception):
    """A place where jobs run, or a program there, can't be used; one line with what, where and what to do next."""


class BenchError(Exception):
    """A benchmark can't be done or a stored run can't be read; one line that says what, where and what to do next."""


class CalibrateError(ValueError):
    """Nothing can be measured here, or the job failed; the text says what, where and what to do next."""
