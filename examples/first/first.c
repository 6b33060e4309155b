/* A first program to run under palmette: an iteration as solvers have it, whose sums are checked.
 *
 *     mpicc first.c -o first
 *     palmette run --report mpiexec -n 4 ./first
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { steps = 100, length = 4096 };

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double* mine = calloc(length, sizeof(double));
    double* sums = calloc(length, sizeof(double));
    double* all = calloc((size_t)length * (size_t)ranks, sizeof(double));
    for (int step = 0; step < steps; ++step) {
        double factor = rank == 0 ? step + 1 : 0;
        MPI_Bcast(&factor, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int i = 0; i < length; ++i) mine[i] = factor * (rank + i);
        MPI_Allreduce(mine, sums, length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allgather(mine, length, MPI_DOUBLE, all, length, MPI_DOUBLE, MPI_COMM_WORLD);
        for (int i = 0; i < length; ++i) {
            const double expected = factor * (0.5 * ranks * (ranks - 1) + (double)ranks * i);
            wrong += fabs(sums[i] - expected) > 1e-9 * expected;
            wrong += all[(size_t)(ranks - 1) * length + (size_t)i] != factor * (ranks - 1 + i);
        }
    }
    int total = 0;
    MPI_Reduce(&wrong, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d steps on %d ranks: %s\n", steps, ranks, total == 0 ? "right" : "WRONG");
    free(mine), free(sums), free(all);
    MPI_Finalize();
    return rank == 0 && total != 0;
}
