// Communicators other than MPI_COMM_WORLD, whose ranks are numbered otherwise. Most are made in the first round.
#pragma once

#include "collectives.hpp"

namespace planted {

/// Ranks 0 and 2, and ranks 1 and 3, the higher one first: its rank there is 0.
inline MPI_Comm half() {
    static MPI_Comm made = MPI_COMM_NULL;
    if (made == MPI_COMM_NULL) MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &made);
    return made;
}

/// Without rank 0, which gets none.
inline MPI_Comm without_first() {
    static MPI_Comm made = MPI_COMM_NULL;
    if (rank > 0 && made == MPI_COMM_NULL) {
        // Rank 0 makes none and needn't take part.
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Group some = MPI_GROUP_NULL;
        const int first = 0;
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_excl(all, 1, &first, &some);
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 7, &made);
        MPI_Group_free(&some);
        MPI_Group_free(&all);
    }
    return made;
}

inline MPI_Comm twin() {
    static MPI_Comm made = MPI_COMM_NULL;
    if (made == MPI_COMM_NULL) MPI_Comm_dup(MPI_COMM_WORLD, &made);
    return made;
}

// Both halves have a barrier: rank 2 is late to that of rank 0, rank 3 to that of rank 1.
inline void halves(int /*round*/) {
    MPI_Comm comm = half();
    come({0, 0, 10, 25});
    MPI_Barrier(comm);
}

// Rank 0 of each half, which is rank 2 or 3 of all, has what is broadcast, and is late.
inline void root_of_a_half(int /*round*/) {
    MPI_Comm comm = half();
    come({0, 0, 10, 25});
    MPI_Bcast(in.data(), 1, MPI_INT, 0, comm);
}

// Rank 0 of a half sends to rank 1 there, and is late.
inline void sender_of_a_half(int /*round*/) {
    MPI_Comm comm = half();
    come({0, 0, 10, 25});
    if (rank >= 2)
        MPI_Send(in.data(), 1, MPI_INT, 1, 3, comm);
    else
        MPI_Recv(out.data(), 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, MPI_STATUS_IGNORE);
}

// Of ranks 1 to 3, which have a communicator of their own, rank 2 is late.
inline void without_rank_0(int /*round*/) {
    MPI_Comm comm = without_first();
    come({0, 0, 20, 0});
    if (rank > 0) MPI_Allreduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, comm);
}

// A communicator is made anew for each barrier, to which rank 2 is late, and has the handle of one that was freed.
inline void made_anew(int /*round*/) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    come({0, 0, 20, 0});
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

// Barriers on a duplicate and on the original: rank 3 is late to the first, rank 0 to the second.
inline void duplicate(int /*round*/) {
    MPI_Comm comm = twin();
    come({0, 0, 0, 30});
    MPI_Barrier(comm);
    come({10, 0, 0, 0});
    MPI_Barrier(MPI_COMM_WORLD);
}

// The same tag on a duplicate, at once, and on the original, 20 ms later, which is received first.
inline void same_tag(int /*round*/) {
    MPI_Comm comm = twin();
    come_together();
    if (rank == 1) MPI_Send(in.data(), 1, MPI_INT, 0, 5, comm);
    come({0, 20, 0, 0});
    if (rank == 1) MPI_Send(in.data(), 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(out.data(), 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(out.data(), 1, MPI_INT, 1, 5, comm, MPI_STATUS_IGNORE);
    }
}

}  // namespace planted
