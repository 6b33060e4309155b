"""What can go wrong when a machine is measured."""

from __future__ import annotations


class CalibrateError(ValueError):
    """Nothing can be measured here, or the job failed; the text says what, where and what to do next."""
