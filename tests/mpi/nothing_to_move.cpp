// Calls without bytes send nothing: rank 0 makes all of its own before any other rank begins, and must come through.
//
//     nothing_to_move

#include <mpi.h>

#include <vector>

#include "support/call.hpp"
#include "support/outcome.hpp"

using namespace test;

namespace {

/// Each twice, in place the second time where this rank may. Functions whose ranks don't know each other's lengths are
/// left out.
void all_calls(MPI_Comm comm, int ranks, Outcome& outcome) {
    const std::vector<int> none(static_cast<std::size_t>(ranks), 0);
    for (int f = 0; f < function_count; ++f) {
        const auto function = static_cast<Function>(f);
        if (function == Function::barrier || (is_v(function) && function != Function::allgatherv)) continue;
        for (const bool again : {false, true}) {
            // Of rooted ones the root alone can have its block in place.
            const bool in_place = again && function != Function::bcast && (!is_rooted(function) || world_rank == 0);
            int out = 1, in = 2;
            Call call{function};
            call.sendbuf = &out, call.recvbuf = &in;
            if (in_place && is_scatter(function))
                call.recvbuf = MPI_IN_PLACE;
            else if (in_place)
                call.sendbuf = MPI_IN_PLACE;
            call.sendtype = call.recvtype = MPI_INT;
            call.recvcounts = call.rdispls = none.data();
            call.op = MPI_SUM, call.comm = comm;
            const int code = call_mpi(call);
            outcome.check(code == MPI_SUCCESS && out == 1 && in == 2, "%s%s: code %d, %d, %d", function_names[f],
                          in_place ? " in place" : "", code, out, in);
        }
    }
    int value = 3;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Ibcast(&value, 0, MPI_INT, ranks - 1, comm, &requests[0]);
    MPI_Iallreduce(MPI_IN_PLACE, &value, 0, MPI_INT, MPI_SUM, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    outcome.check(value == 3, "nonblocking: %d", value);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(60);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Outcome outcome;
    if (world_rank > 0) MPI_Recv(nullptr, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    all_calls(MPI_COMM_WORLD, ranks, outcome);
    for (int other = 1; world_rank == 0 && other < ranks; ++other)
        MPI_Send(nullptr, 0, MPI_INT, other, 0, MPI_COMM_WORLD);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
