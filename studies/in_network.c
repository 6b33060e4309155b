/* Allreduces of doubles, timed: CALLS BYTES... Rank 0 prints for each size the seconds of each call, from a common
   start (CLOCK_MONOTONIC: ranks are on one machine) to the last rank's end, after two that warm up. With a single call
   nothing is timed but what is counted outside (in_network.py). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int calls = argc > 1 ? atoi(argv[1]) : 1;
    for (int a = 2; a < argc; ++a) {
        const int count = atoi(argv[a]) / 8;
        double *from = calloc((size_t)count, sizeof *from);
        double *to = calloc((size_t)count, sizeof *to);
        if (rank == 0) printf("%s", argv[a]);
        for (int call = -2; call < calls; ++call) {
            double start = now() + 0.01, took, longest;
            MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            const struct timespec until = {(time_t)start, (long)(1e9 * (start - (double)(time_t)start))};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
            MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            took = now() - start;
            MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            if (rank == 0 && call >= 0) printf(" %.6f", longest);
        }
        if (rank == 0) printf("\n");
        free(from);
        free(to);
    }
    return MPI_Finalize();
}
