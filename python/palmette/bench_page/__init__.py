"""The page of a benchmark: one HTML file that needs nothing else."""

from __future__ import annotations
