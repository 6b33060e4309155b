"""Presentation of plans: stages as text, counts as a table, a picture, the list of algorithms."""
