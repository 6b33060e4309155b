"""Simulated clusters: platforms for SimGrid made from a topology, and the benchmark program run on them."""
