"""Measuring what a machine's messages cost, per level of its tree, with few experiments on a running job."""
