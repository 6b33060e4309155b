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


def slow_rule(x, y):
    for i in range(100):
        x += y * i  # ufunc
    return x


def by_ufunc(end):
    rule = np.frompyfunc(slow_rule, 2, 1)
    values = np.arange(200.0)
    while time.thread_time() < end:
        rule(values, values)


def produced(count):
    for i in range(count):
        value = 0.0
        for j in range(100):
            value += i * j  # generator
        yield value


def by_generator(end):
    while time.thread_time() < end:
        sum(produced(100))


class Field:
    @property
    def norm(self):
        total = 0.0
        for i in range(500):
            total += i * 0.5  # property
        return total


def by_property(end):
    field = Field()
    while time.thread_time() < end:
        assert field.norm


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
    if scenario == "ufunc":
        by_ufunc(end)
    if scenario == "generator":
        by_generator(end)
    if scenario == "property":
        by_property(end)


def main():
    values = [float(i) for i in range(1000)]
    for _ in range(STEPS):
        step(values)
        comm.allreduce(1)


main()
