// Collectives of a long or a few a rank, whose results are known: for tests of what is around the call.
#pragma once

#include <mpi.h>

#include <vector>

#include "outcome.hpp"

namespace test {

/// Gather, scatter and allgather with a v form each.
inline void exercise_gathering(MPI_Comm comm, long salt, Outcome& outcome, const char* what) {
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

/// Broadcast, the three forms of all-to-all, and barrier.
inline void exercise_moving(MPI_Comm comm, long salt, Outcome& outcome, const char* what) {
    int rank = 0;
    int size = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const int root = static_cast<int>((salt + 1) % size);
    auto value = [&](int from, int to) { return salt * 1000003 + from * 1009L + to; };
    long told = rank == root ? value(root, 7) : -1;
    MPI_Bcast(&told, 1, MPI_LONG, root, comm);
    outcome.check(told == value(root, 7), "%s: bcast from %d of %d", what, root, size);
    MPI_Barrier(comm);

    const auto n = static_cast<std::size_t>(size);
    std::vector<long> send, recv(n);
    std::vector<int> ones(n, 1), items, bytes;
    const std::vector<MPI_Datatype> types(n, MPI_LONG);
    for (int r = 0; r < size; ++r) {
        send.push_back(value(rank, r));
        items.push_back(r);
        bytes.push_back(r * static_cast<int>(sizeof(long)));
    }
    auto check = [&](const char* function) {
        bool right = true;
        for (int r = 0; r < size; ++r) right = right && recv[static_cast<std::size_t>(r)] == value(r, rank);
        outcome.check(right, "%s: %s of %d", what, function, size);
        recv.assign(n, -1);
    };
    MPI_Alltoall(send.data(), 1, MPI_LONG, recv.data(), 1, MPI_LONG, comm);
    check("alltoall");
    MPI_Alltoallv(send.data(), ones.data(), items.data(), MPI_LONG, recv.data(), ones.data(), items.data(), MPI_LONG,
                  comm);
    check("alltoallv");
    // Open MPI 5.0.11, on one rank, takes the displacements for items: they are all zero there.
    MPI_Alltoallw(send.data(), ones.data(), bytes.data(), types.data(), recv.data(), ones.data(), bytes.data(),
                  types.data(), comm);
    check("alltoallw");
}

/// Everything that reduces.
inline void exercise_reducing(MPI_Comm comm, long salt, Outcome& outcome, const char* what) {
    int rank = 0;
    int size = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const int root = static_cast<int>((salt + 2) % size);
    const auto n = static_cast<std::size_t>(size);
    // The sum over the first k ranks of salt + rank + 100 i.
    auto sum = [&](int k, int i) { return k * (salt + 100L * i) + k * (k - 1L) / 2; };
    std::vector<long> mine;
    for (int i = 0; i < size; ++i) mine.push_back(salt + rank + 100L * i);
    long one = -1;
    MPI_Reduce(mine.data(), &one, 1, MPI_LONG, MPI_SUM, root, comm);
    outcome.check(one == (rank == root ? sum(size, 0) : -1), "%s: reduce to %d of %d", what, root, size);
    std::vector<long> all(n, -1);
    MPI_Allreduce(mine.data(), all.data(), size, MPI_LONG, MPI_SUM, comm);
    bool right = true;
    for (int i = 0; i < size; ++i) right = right && all[static_cast<std::size_t>(i)] == sum(size, i);
    outcome.check(right, "%s: allreduce of %d", what, size);
    MPI_Reduce_scatter_block(mine.data(), &one, 1, MPI_LONG, MPI_SUM, comm);
    outcome.check(one == sum(size, rank), "%s: reduce_scatter_block of %d", what, size);
    const std::vector<int> ones(n, 1);
    one = -1;
    MPI_Reduce_scatter(mine.data(), &one, ones.data(), MPI_LONG, MPI_SUM, comm);
    outcome.check(one == sum(size, rank), "%s: reduce_scatter of %d", what, size);
    MPI_Scan(mine.data(), &one, 1, MPI_LONG, MPI_SUM, comm);
    outcome.check(one == sum(rank + 1, 0), "%s: scan of %d", what, size);
    one = -1;
    MPI_Exscan(mine.data(), &one, 1, MPI_LONG, MPI_SUM, comm);
    outcome.check(rank == 0 || one == sum(rank, 0), "%s: exscan of %d", what, size);
}

/// Every blocking collective, checked by value. Collective over `comm`, an intra-communicator.
inline void exercise(MPI_Comm comm, long salt, Outcome& outcome, const char* what) {
    exercise_gathering(comm, salt, outcome, what);
    exercise_moving(comm, salt, outcome, what);
    exercise_reducing(comm, salt, outcome, what);
}

}  // namespace test
