"""Errors of patterns."""


class PatternError(ValueError):
    """An invalid pattern, or a job that failed: the text says what, where, and what to do."""
