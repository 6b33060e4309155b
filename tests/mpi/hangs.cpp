// A job that hangs: ranks 0 and 1 wait in a barrier for rank 2, which waits in a receive for rank 3, which sleeps.
//
//     hangs [--requests]
//
// --requests: the same by nonblocking calls; rank 1 waits for a message of rank 3 as well.
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
    if (argc > 1) {
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        char unrelated = 0;
        MPI_Request other = MPI_REQUEST_NULL;
        if (rank == 0) MPI_Irecv(&unrelated, 1, MPI_CHAR, 2, 9, MPI_COMM_WORLD, &other);
        if (rank < 2) MPI_Ibarrier(first_three, &requests[0]);
        if (rank == 1) MPI_Irecv(&byte, 1, MPI_CHAR, 3, 7, MPI_COMM_WORLD, &requests[1]);
        if (rank == 0) MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (rank == 2) MPI_Irecv(&byte, 1, MPI_CHAR, 3, 5, MPI_COMM_WORLD, &requests[0]);
        if (rank == 2) MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    if (rank < 2) MPI_Barrier(first_three);
    if (rank == 2) MPI_Recv(&byte, 1, MPI_CHAR, 3, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 3) sleep(120);
    MPI_Finalize();
    return 0;
}
