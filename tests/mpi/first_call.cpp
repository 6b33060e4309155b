// A nonblocking call must not wait for others, so it can't be the first on a communicator that is served;
// MPI_COMM_WORLD is ready from MPI_Init on.
//
//     first_call

#include <mpi.h>

#include "support/outcome.hpp"

using namespace test;

namespace {

void broadcast(MPI_Comm comm, Outcome& outcome, const char* what) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    int value = rank == 0 ? 17 : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(&value, 1, MPI_INT, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    outcome.check(value == 17, "%s: %d", what, value);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(60);
    Outcome outcome;
    broadcast(MPI_COMM_WORLD, outcome, "on the world");
    MPI_Comm dup = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    broadcast(dup, outcome, "on a duplicate");
    MPI_Comm_free(&dup);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
