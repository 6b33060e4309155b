// Communicators that get a few collectives each, and one that gets many.
//
//     new_communicators [--communicators N] [--calls N]

#include <mpi.h>

#include "support/outcome.hpp"

using namespace test;

namespace {

void sums(MPI_Comm comm, long calls, Outcome& outcome, const char* what) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    for (long call = 0; call < calls; ++call) {
        const long mine = call;
        long sum = -1;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
        outcome.check(sum == size * call, "%s: allreduce %ld", what, call);
    }
}

/// Each rank makes a mistake of its own, so that none waits for another.
void wrong(MPI_Comm comm, Outcome& outcome) {
    int nothing = 0;
    const int code = world_rank == 0 ? MPI_Bcast(&nothing, -1, MPI_INT, 0, comm)
                                     : MPI_Bcast(&nothing, 1, MPI_DATATYPE_NULL, 0, comm);
    outcome.check(code != MPI_SUCCESS, "a mistake went unnoticed");
}

void nonblocking(MPI_Comm comm, Outcome& outcome) {
    int value = world_rank == 0 ? 17 : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(&value, 1, MPI_INT, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    outcome.check(value == 17, "Ibcast");
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(60);
    Outcome outcome;
    MPI_Comm comm = MPI_COMM_NULL;
    const long communicators = option(argc, argv, "--communicators", 100);
    for (long c = 0; c < communicators; ++c) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        sums(comm, 1, outcome, "a new communicator");
        MPI_Comm_free(&comm);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    wrong(comm, outcome);
    nonblocking(comm, outcome);
    sums(comm, option(argc, argv, "--calls", 20), outcome, "a communicator in use");
    nonblocking(comm, outcome);
    MPI_Comm_free(&comm);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
