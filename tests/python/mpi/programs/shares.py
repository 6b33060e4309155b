"""Functions whose shares of processor time are in their marks, in percent of the whole.

shares.py SECONDS
"""

import sys
import time

from mpi4py import MPI


def work(seconds):
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        total += sum(range(2000))
    return total


def smooth(seconds):
    return work(seconds)  # smooth 10


def residual(seconds):
    return work(seconds)  # residual 60


def restrict_to(seconds):
    return [work(seconds / 2) for _ in range(2)]  # restrict_to 30


def main():
    seconds = float(sys.argv[1])
    for _ in range(20):
        smooth(0.10 * seconds / 20)
        residual(0.60 * seconds / 20)
        restrict_to(0.30 * seconds / 20)
    MPI.COMM_WORLD.Barrier()


main()
