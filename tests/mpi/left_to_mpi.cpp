// Calls that the MPI keeps, with everything in between that changes what they would have to look at: other
// communicators, communicators that go, nonblocking operations, other types and sizes. Every call is made CALLS times;
// the report has to know of each.
//
//     left_to_mpi [--calls N]

#include <mpi.h>

#include <vector>

#include "support/outcome.hpp"

using namespace test;

namespace {

void sums(MPI_Comm comm, int count, Outcome& outcome, long call) {
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    std::vector<int> mine(static_cast<std::size_t>(count), static_cast<int>(call)), sum(mine.size());
    MPI_Allreduce(mine.data(), sum.data(), count, MPI_INT, MPI_SUM, comm);
    outcome.check(sum.back() == ranks * static_cast<int>(call), "call %ld: allreduce of %d", call, count);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(100);
    const long calls = option(argc, argv, "--calls", 50);
    Outcome outcome;
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (long call = 0; call < calls; ++call) {
        sums(MPI_COMM_WORLD, 4, outcome, call);
        sums(MPI_COMM_WORLD, 4, outcome, call);
        // Too long for the row that keeps the short ones.
        sums(MPI_COMM_WORLD, 1000, outcome, call);
        sums(MPI_COMM_SELF, 4, outcome, call);
        MPI_Comm other = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        sums(other, 4, outcome, call);
        sums(other, 4, outcome, call);
        // Its handle may be the next duplicate's.
        MPI_Comm_free(&other);
        int whole[2] = {static_cast<int>(call), world_rank == 0 ? 7 : 0};
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Ibcast(whole, 2, MPI_INT, 0, MPI_COMM_WORLD, &request);
        sums(MPI_COMM_WORLD, 4, outcome, call);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        outcome.check(whole[1] == 7, "call %ld: Ibcast", call);
        int both[2] = {static_cast<int>(call), world_rank == 0 ? 8 : 0};
        MPI_Bcast(both, 1, pair, 0, MPI_COMM_WORLD);
        outcome.check(both[1] == 8, "call %ld: bcast of a pair", call);
        MPI_Bcast(both, 2, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&pair);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
