"""Simulated clusters: SimGrid platforms generated from a topology, and the benchmark program run on them."""
