/* Allreduces of a vector of doubles: BYTES CALLS. For counting what they send (in_network.py). */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int count = argc > 1 ? atoi(argv[1]) / 8 : 1;
    const int calls = argc > 2 ? atoi(argv[2]) : 1;
    double* from = calloc((size_t)count, sizeof *from);
    double* to = calloc((size_t)count, sizeof *to);
    for (int i = 0; i < calls; ++i) MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    free(from);
    free(to);
    return MPI_Finalize();
}
