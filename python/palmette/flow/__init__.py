"""Simulations of plans, for people: time, how full links are, a picture of bytes over time."""
