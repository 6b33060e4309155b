"""What goes wrong when a composition is read."""


class ComposeError(ValueError):
    """A composition that can't be: the text says what, where, and what to do."""
