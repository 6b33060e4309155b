/* Time of MPI_Allreduce and MPI_Bcast on the slowest rank, in microseconds a call; for studies/two_builds.py.
 *
 *     two_builds COUNT BYTES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void call(int broadcast, double *in, double *out, int length) {
    if (broadcast)
        MPI_Bcast(in, length, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    else
        MPI_Allreduce(in, out, length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int count = argc > 1 ? atoi(argv[1]) : 1000, bytes = argc > 2 ? atoi(argv[2]) : 8;
    double *in = calloc(1, (size_t)bytes), *out = calloc(1, (size_t)bytes), slowest[2];
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int broadcast = 0; broadcast < 2; ++broadcast) {
        for (int i = 0; i < count / 10; ++i) call(broadcast, in, out, bytes / 8);
        MPI_Barrier(MPI_COMM_WORLD);
        double took = MPI_Wtime();
        for (int i = 0; i < count; ++i) call(broadcast, in, out, bytes / 8);
        took = (MPI_Wtime() - took) / count * 1e6;
        MPI_Reduce(&took, &slowest[broadcast], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%g %g\n", slowest[0], slowest[1]);
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
