// Many calls of the same kind, so that palmette compares its choice with the MPI's own: integers are broadcast, summed and gathered, real numbers
// summed, and every result is checked. Ranks come late in turns.
//
//     comparison [--calls N] [--count INTEGERS]

#include <mpi.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "support/outcome.hpp"

using namespace test;

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(100);
    const long calls = option(argc, argv, "--calls", 400);
    const int count = static_cast<int>(option(argc, argv, "--count", 1000));
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Outcome outcome;
    std::vector<int> vector(static_cast<std::size_t>(count)), sum(vector.size());
    std::vector<int> all(vector.size() * static_cast<std::size_t>(ranks));
    std::vector<double> reals(8), first, now(8);
    for (int i = 0; i < 8; ++i) reals[static_cast<std::size_t>(i)] = 1.0 / (3 + world_rank + i);
    for (int call = 0; call < calls; ++call) {
        const int root = 1;
        if (world_rank == root) std::iota(vector.begin(), vector.end(), call);
        if (call % ranks == world_rank && call % 16 == 0) {
            for (const double until = MPI_Wtime() + 1e-4; MPI_Wtime() < until;) continue;
        }
        MPI_Bcast(vector.data(), count, MPI_INT, root, MPI_COMM_WORLD);
        outcome.check(vector.front() == call && vector.back() == call + count - 1, "call %d: bcast", call);
        MPI_Allreduce(vector.data(), sum.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        outcome.check(sum.back() == ranks * (call + count - 1), "call %d: allreduce", call);
        vector.back() = world_rank;
        MPI_Allgather(vector.data(), count, MPI_INT, all.data(), count, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; ++r)
            outcome.check(all[static_cast<std::size_t>(r + 1) * vector.size() - 1] == r, "call %d: allgather", call);
        MPI_Allreduce(reals.data(), now.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (call == 0) first = now;
        outcome.check(std::memcmp(first.data(), now.data(), 8 * sizeof(double)) == 0, "call %d: other bits", call);
    }
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
