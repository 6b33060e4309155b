// Collectives on MPI_COMM_WORLD. Where several functions are tried, each has its own call, whose place is its own.
#pragma once

#include <array>

#include "timetable.hpp"

namespace planted {

/// Data of all collectives.
inline std::array<int, ranks> in{}, out{};
inline const std::array<int, ranks> ones{1, 1, 1, 1}, places{0, 1, 2, 3}, at_bytes{0, 4, 8, 12};

// Rank 1 is late to a barrier.
inline void late_rank(int /*round*/) {
    come({0, 30, 0, 0});
    MPI_Barrier(MPI_COMM_WORLD);
}

// All come at different times: the waiting differs, and is for the last one.
inline void staircase(int /*round*/) {
    come({0, 10, 20, 40});
    MPI_Barrier(MPI_COMM_WORLD);
}

// Each rank is late once.
inline void turns(int round) {
    Times at{};
    at[static_cast<std::size_t>(round % ranks)] = 20;
    come(at);
    MPI_Allreduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// Rank 2 is late in one round of all.
inline void once(int round) {
    come({0, 0, round == 2 ? 40.0 : 0.0, 0});
    MPI_Allreduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// Rank 1 is late by 30 ms in even rounds, rank 2 by 10 ms in odd ones.
inline void alternating(int round) {
    come(round % 2 == 0 ? Times{0, 30, 0, 0} : Times{0, 0, 10, 0});
    MPI_Allreduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// Rank 3 is late to each function in which all wait for all.
inline void n_to_n(int /*round*/) {
    const Times at{0, 0, 0, 12};
    const std::array<MPI_Datatype, ranks> types{MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    come(at);
    MPI_Allgather(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, MPI_COMM_WORLD);
    come(at);
    MPI_Allgatherv(in.data(), 1, MPI_INT, out.data(), ones.data(), places.data(), MPI_INT, MPI_COMM_WORLD);
    come(at);
    MPI_Alltoall(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, MPI_COMM_WORLD);
    come(at);
    MPI_Alltoallv(in.data(), ones.data(), places.data(), MPI_INT, out.data(), ones.data(), places.data(), MPI_INT,
                  MPI_COMM_WORLD);
    come(at);
    MPI_Alltoallw(in.data(), ones.data(), at_bytes.data(), types.data(), out.data(), ones.data(), at_bytes.data(),
                  types.data(), MPI_COMM_WORLD);
    come(at);
    MPI_Reduce_scatter(in.data(), out.data(), ones.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    come(at);
    MPI_Reduce_scatter_block(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// The root of a broadcast, rank 1, is late.
inline void late_root(int /*round*/) {
    come({0, 30, 0, 0});
    MPI_Bcast(in.data(), 1, MPI_INT, 1, MPI_COMM_WORLD);
}

// A rank that only receives a broadcast is late: nobody waits for it.
inline void late_leaf(int /*round*/) {
    come({0, 0, 25, 0});
    MPI_Bcast(in.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
}

// Rank 2 has the data and is late; rank 3 comes after rank 0, and waits less, and rank 1 comes last, and doesn't wait.
inline void late_scatter_root(int /*round*/) {
    come({0, 30, 20, 5});
    MPI_Scatter(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, 2, MPI_COMM_WORLD);
    come({0, 30, 20, 5});
    MPI_Scatterv(in.data(), ones.data(), places.data(), MPI_INT, out.data(), 1, MPI_INT, 2, MPI_COMM_WORLD);
}

// The root of a reduction, rank 0, is early, and rank 1 late.
inline void early_root(int /*round*/) {
    come({0, 30, 0, 0});
    MPI_Reduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

// Rank 3 gathers, and waits for rank 1, who comes last.
inline void early_gather_root(int /*round*/) {
    come({10, 25, 5, 0});
    MPI_Gather(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, 3, MPI_COMM_WORLD);
    come({10, 25, 5, 0});
    MPI_Gatherv(in.data(), 1, MPI_INT, out.data(), ones.data(), places.data(), MPI_INT, 3, MPI_COMM_WORLD);
}

// The root of a reduction is late itself: nobody waits.
inline void late_reduce_root(int /*round*/) {
    come({30, 0, 0, 0});
    MPI_Reduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

// Rank 1 is late to scans: the higher ranks wait for it.
inline void late_lower_rank(int /*round*/) {
    come({0, 20, 0, 0});
    MPI_Scan(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    come({0, 30, 10, 20});
    MPI_Exscan(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// The highest rank is late to a scan: nobody waits.
inline void late_highest_rank(int /*round*/) {
    come({0, 0, 0, 30});
    MPI_Scan(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// Rank r computes for 5 (r + 1) ms.
inline void imbalance(int /*round*/) {
    come_together();
    compute(5 * (rank + 1));
    MPI_Allreduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// In iteration i, of three that aren't synchronised, rank r computes for r i ms; then there is a barrier.
inline void drift(int /*round*/) {
    come_together();
    for (int i = 1; i <= 3; ++i) compute(rank * i);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 1 is late to a barrier, and rank 2, by less, to the next one.
inline void two_places(int /*round*/) {
    come({0, 30, 0, 0});
    MPI_Barrier(MPI_COMM_WORLD);
    come({0, 0, 10, 0});
    MPI_Barrier(MPI_COMM_WORLD);
}

// All compute as long: nobody waits.
inline void balanced(int /*round*/) {
    come_together();
    compute(20);
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

}  // namespace planted
