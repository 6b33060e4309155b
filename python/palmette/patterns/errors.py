"""What goes wrong with patterns."""


class PatternError(ValueError):
    """A pattern that can't be, or a job that failed: the text says what, where, and what to do."""
