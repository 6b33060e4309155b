/* Ways to communicate that cost time by themselves, on lines marked with the scenario's name.
 *
 *     patterns SCENARIO
 *
 * What makes ranks late is sleep, so that it does on busy machines, too. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 12, SMALL = 500, BLOCK = 200 };

static int rank, size;

static void rest(void) {
    const struct timespec pause = {0, 10 * 1000 * 1000};
    nanosleep(&pause, NULL);
}

static void sweep(void) {
    double value = 1;
    if (rank > 0) MPI_Recv(&value, 1, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* chain */
    rest();
    if (rank < size - 1) MPI_Send(&value, 1, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void trickle(void) {
    double value = 1;
    for (int i = 0; i < SMALL && rank < 2; ++i) {
        if (rank == 0) MPI_Send(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD); /* small */
        if (rank == 1) MPI_Recv(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void exchange(void) {
    int *counts[2] = {calloc((size_t)size, sizeof(int)), calloc((size_t)size, sizeof(int))};
    int *firsts[2] = {calloc((size_t)size, sizeof(int)), calloc((size_t)size, sizeof(int))};
    double *from = calloc((size_t)(16 * BLOCK * size), sizeof(double));
    double *to = calloc((size_t)(16 * BLOCK * size), sizeof(double));
    for (int i = 0; i < size; ++i) {
        counts[0][i] = i == 1 ? 16 * BLOCK : BLOCK;
        counts[1][i] = rank == 1 ? 16 * BLOCK : BLOCK;
        for (int side = 0; i > 0 && side < 2; ++side) firsts[side][i] = firsts[side][i - 1] + counts[side][i - 1];
    }
    int **own = counts, **at = firsts;
    MPI_Alltoallv(from, own[0], at[0], MPI_DOUBLE, to, own[1], at[1], MPI_DOUBLE, MPI_COMM_WORLD); /* uneven */
    for (int side = 0; side < 2; ++side) free(counts[side]), free(firsts[side]);
    free(from), free(to);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 0; argc > 1 && step < STEPS; ++step) {
        if (strcmp(argv[1], "chain") == 0) sweep();
        if (strcmp(argv[1], "small") == 0) trickle();
        if (strcmp(argv[1], "uneven") == 0) exchange();
    }
    MPI_Finalize();
    return 0;
}
