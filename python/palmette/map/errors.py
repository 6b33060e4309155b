"""Errors of `palmette map`."""

from __future__ import annotations


class MapError(ValueError):
    """Something that a user gave can't be used; the message says what, where and what to do."""
