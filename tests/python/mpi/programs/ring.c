/* Three messages of 1000 bytes to the next rank, and an allreduce that no matrix of messages point to point holds. */
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char out[1000] = {0}, in[1000];
    for (int i = 0; i < 3; ++i)
        MPI_Sendrecv(out, 1000, MPI_CHAR, (rank + 1) % ranks, 0, in, 1000, MPI_CHAR, (rank + ranks - 1) % ranks, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int sum = 1;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum == ranks ? 0 : 1;
}
