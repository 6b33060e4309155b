// Collectives of one long a rank (or two), whose results are known: for tests of what is around the call.
#pragma once

#include <mpi.h>

#include <vector>

#include "outcome.hpp"

namespace test {

/// Gather, scatter and allgather with a v form each, checked by value. Collective over `comm`, an intra-communicator.
inline void exercise(MPI_Comm comm, long salt, Outcome& outcome, const char* what) {
    int rank = 0;
    int size = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const int root = static_cast<int>(salt % size);
    auto value = [&](int r, int i) { return salt * 1000003 + r * 101L + i; };
    const long mine[2] = {value(rank, 0), value(rank, 1)};
    std::vector<long> all(static_cast<std::size_t>(2 * size), -1);
    auto in_order = [&] {
        for (int r = 0; r < size; ++r) {
            for (int i = 0; i < 2; ++i) {
                if (all[static_cast<std::size_t>(2 * r + i)] != value(r, i)) return false;
            }
        }
        return true;
    };
    std::vector<int> counts(static_cast<std::size_t>(size), 2);
    std::vector<int> displs;
    for (int r = 0; r < size; ++r) displs.push_back(2 * r);

    MPI_Gather(mine, 2, MPI_LONG, all.data(), 2, MPI_LONG, root, comm);
    if (rank == root) outcome.check(in_order(), "%s: gather to %d of %d", what, root, size);
    long back[2] = {-1, -1};
    MPI_Scatter(all.data(), 2, MPI_LONG, back, 2, MPI_LONG, root, comm);
    outcome.check(back[0] == mine[0] && back[1] == mine[1], "%s: scatter from %d of %d", what, root, size);
    all.assign(all.size(), -1);
    MPI_Allgather(mine, 2, MPI_LONG, all.data(), 2, MPI_LONG, comm);
    outcome.check(in_order(), "%s: allgather of %d", what, size);
    all.assign(all.size(), -1);
    MPI_Gatherv(mine, 2, MPI_LONG, all.data(), counts.data(), displs.data(), MPI_LONG, root, comm);
    if (rank == root) outcome.check(in_order(), "%s: gatherv to %d of %d", what, root, size);
    back[0] = back[1] = -1;
    MPI_Scatterv(all.data(), counts.data(), displs.data(), MPI_LONG, back, 2, MPI_LONG, root, comm);
    outcome.check(back[0] == mine[0] && back[1] == mine[1], "%s: scatterv from %d of %d", what, root, size);
    all.assign(all.size(), -1);
    MPI_Allgatherv(mine, 2, MPI_LONG, all.data(), counts.data(), displs.data(), MPI_LONG, comm);
    outcome.check(in_order(), "%s: allgatherv of %d", what, size);
}

}  // namespace test
