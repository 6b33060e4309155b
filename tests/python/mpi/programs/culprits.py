"""Ranks that are late for what a Python function does: rank 1 in each step, on a line marked with the scenario's name.

culprits.py SCENARIO MILLISECONDS
"""

import sys
import time

import numpy as np
from mpi4py import MPI

STEPS = 20
comm = MPI.COMM_WORLD
scenario, milliseconds = sys.argv[1], float(sys.argv[2])


def slow_key(number):
    total = 0
    for i in range(200):
        total += i * number  # callback
    return total


def legacy_filter(values, end):
    while time.thread_time() < end:
        values = [value * 0.5 for value in values]  # loop
    return values


def with_numpy(end):
    matrix = np.ones((60, 60))
    while time.thread_time() < end:
        np.linalg.eigvals(matrix)  # extension


def by_callback(end):
    while time.thread_time() < end:
        sorted(range(500), key=slow_key)


def step(values):
    legacy_filter(values, time.thread_time() + milliseconds / 5e3)
    if comm.rank != 1:
        return
    end = time.thread_time() + milliseconds / 1e3
    if scenario == "loop":
        legacy_filter(values, end)
    if scenario == "callback":
        by_callback(end)
    if scenario == "extension":
        with_numpy(end)


def main():
    values = [float(i) for i in range(1000)]
    for _ in range(STEPS):
        step(values)
        comm.allreduce(1)


main()
