"""The exception of invalid compositions and factorings."""


class ComposeError(ValueError):
    """An invalid composition or a failure to run it: the text says what, where, and what to do."""
