/* A small stencil program with three troubles, for `palmette demo --profile`: rank 1 has more to do than the others,
 * rank 0 writes results while the others wait for it, and a sum of one number is made in every step.
 *
 *     heat [STEPS]
 *
 * Work is slept, not computed, so that a machine with fewer cores than ranks shows the same. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { CELLS = 512, EVERY = 20 };

static void work(double milliseconds) {
    const struct timespec pause = {0, (long)(milliseconds * 1e6)};
    nanosleep(&pause, NULL);
}

/* Swaps the outermost cells with both neighbours. */
static void exchange_edges(double *field, int left, int right) {
    MPI_Request requests[4];
    MPI_Irecv(&field[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&field[CELLS + 1], 1, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&field[1], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&field[CELLS], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static double relax(double *field, double *next, double milliseconds) {
    double change = 0;
    for (int i = 1; i <= CELLS; ++i) {
        next[i] = 0.5 * field[i] + 0.25 * (field[i - 1] + field[i + 1]);
        change += (next[i] - field[i]) * (next[i] - field[i]);
    }
    for (int i = 1; i <= CELLS; ++i) field[i] = next[i];
    work(milliseconds);
    return change;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int steps = argc > 1 ? atoi(argv[1]) : 100;
    const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    const int right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double *field = calloc(CELLS + 2, sizeof *field);
    double *next = calloc(CELLS + 2, sizeof *next);
    double *whole = calloc((size_t)ranks * CELLS, sizeof *whole);
    if (!field || !next || !whole) MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0) field[1] = 1000;
    for (int step = 1; step <= steps; ++step) {
        exchange_edges(field, left, right);
        const double own = relax(field, next, rank == 1 ? 6 : 2);
        double all;
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (step % EVERY == 0) {
            MPI_Gather(&field[1], CELLS, MPI_DOUBLE, whole, CELLS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            if (rank == 0) work(15);
        }
    }
    free(field);
    free(next);
    free(whole);
    MPI_Finalize();
    return 0;
}
