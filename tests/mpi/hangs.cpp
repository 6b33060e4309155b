// A job that hangs: ranks 0 and 1 wait in a barrier for rank 2, which waits in a receive for rank 3, which sleeps.
#include <mpi.h>
#include <unistd.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double sum = 0;
    const double mine = rank;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm first_three = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 3 ? 1 : 0, rank, &first_three);
    char byte = 0;
    if (rank < 2) MPI_Barrier(first_three);
    if (rank == 2) MPI_Recv(&byte, 1, MPI_CHAR, 3, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 3) sleep(120);
    MPI_Finalize();
    return 0;
}
