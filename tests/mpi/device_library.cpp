// The library of a GPU whose memory palmette can't stage comes into one rank, before MPI_Init or later.
//
//     device_library LIBRARY [--early 1]

#include <dlfcn.h>
#include <mpi.h>

#include <vector>

#include "support/outcome.hpp"

using namespace test;

namespace {

void sums(MPI_Comm comm, int count, Outcome& outcome, const char* what) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    std::vector<int> mine(static_cast<std::size_t>(count), 3), sum(mine.size());
    for (int call = 0; call < 3; ++call) {
        MPI_Allreduce(mine.data(), sum.data(), count, MPI_INT, MPI_SUM, comm);
        outcome.check(sum.back() == 3 * size, "%s: allreduce of %d", what, count);
    }
}

}  // namespace

int main(int argc, char** argv) {
    Outcome outcome;
    const bool early = option(argc, argv, "--early", 0) != 0;
    if (early) outcome.check(dlopen(argv[1], RTLD_NOW) != nullptr, "%s: not loaded", argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(60);
    MPI_Comm before = MPI_COMM_NULL, after = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &before);
    sums(MPI_COMM_WORLD, 4, outcome, "the world");
    sums(before, 4, outcome, "a duplicate");
    if (!early && world_rank == 1) outcome.check(dlopen(argv[1], RTLD_NOW) != nullptr, "%s: not loaded", argv[1]);
    sums(MPI_COMM_WORLD, 400, outcome, "the world afterwards");
    sums(MPI_COMM_WORLD, 4, outcome, "the world afterwards");
    sums(before, 400, outcome, "a duplicate afterwards");
    MPI_Comm_dup(MPI_COMM_WORLD, &after);
    sums(after, 4, outcome, "a new duplicate");
    MPI_Comm_free(&before);
    MPI_Comm_free(&after);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
