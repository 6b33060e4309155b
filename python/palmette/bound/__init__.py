"""The physical limit of a collective, for people: the table behind it, and what sets it."""
