"""What `palmette run` says when it can't do what is asked."""

from __future__ import annotations


class RunError(ValueError):
    """A program can't be run under palmette; the message says what, where and what to do."""
