"""The error of the lab."""

from __future__ import annotations


class LabError(Exception):
    """The lab can't do what it was asked for; one line that says what, where and what to do next."""
