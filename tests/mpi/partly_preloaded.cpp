// Collectives in a job of which some ranks may run without the preload library, while every rank is ready to receive
// anything from anybody.
//
//     partly_preloaded

#include <mpi.h>

#include "support/outcome.hpp"
#include "support/simple.hpp"

using namespace test;

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(60);
    Outcome outcome;
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long got = -1;
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Irecv(&got, 1, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
    exercise(MPI_COMM_WORLD, 1, outcome, "the world");
    MPI_Comm dup = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    exercise(dup, 2, outcome, "a duplicate");
    MPI_Comm_free(&dup);
    const long sent = 4711;
    MPI_Send(&sent, 1, MPI_LONG, (world_rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    outcome.check(got == sent, "got %ld", got);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
