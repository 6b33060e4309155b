/* A plug-in that is linked with an MPI. */
#include <mpi.h>
#include <stdio.h>

int work(void) {
    MPI_Init(0, 0);
    int rank, ranks, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 100; ++i) {
        int mine = i + rank, sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != ranks * i + ranks * (ranks - 1) / 2;
    }
    MPI_Finalize();
    if (rank == 0) printf("100 cases, %d wrong\n", wrong);
    return wrong != 0;
}
