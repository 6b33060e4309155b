"""Measuring jobs, for benchmarks and calibration: where they run, their output, and the statistics of samples."""
