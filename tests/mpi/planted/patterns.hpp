// Patterns of whole programs, in which what delays one rank delays others.
#pragma once

#include "requests.hpp"

namespace planted {

// Twice messages to both neighbours in a ring, to which rank 1 is late, and 1 ms of computing: in the second exchange
// the delay reaches rank 3.
inline void halo(int /*round*/) {
    static std::array<int, 2> from{};
    const int left = (rank + 3) % ranks;
    const int right = (rank + 1) % ranks;
    come({0, 30, 0, 0});
    for (int i = 0; i < 2; ++i) {
        std::array<MPI_Request, 4> requests{};
        MPI_Irecv(&from[0], 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&from[1], 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(in.data(), 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(in.data(), 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
        compute(1);
    }
}

// Three items go through all ranks, which take 5 ms for each, but rank 1 takes 20.
inline void pipeline(int /*round*/) {
    come_together();
    for (int item = 0; item < 3; ++item) {
        if (rank > 0) receive(rank - 1, 3);
        compute(rank == 1 ? 20 : 5);
        if (rank + 1 < ranks) send(rank + 1, 3);
    }
}

// Ranks 1 to 3 ask rank 0 for work one after the other; it takes 10 ms to find some.
inline void master(int /*round*/) {
    come({0, 0, 1, 2});
    for (int i = 1; rank == 0 && i < ranks; ++i) {
        MPI_Status status;
        MPI_Recv(out.data(), 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
        compute(10);
        send(status.MPI_SOURCE, 4);
    }
    if (rank > 0) {
        send(0, 3);
        receive(0, 4);
    }
}

// A token goes round a ring; each rank keeps it for 5 ms.
inline void token(int /*round*/) {
    come_together();
    if (rank > 0) receive(rank - 1, 3);
    compute(5);
    send((rank + 1) % ranks, 3);
    if (rank == 0) receive(ranks - 1, 3);
}

// Red and black ranks take turns: even ranks send to the next one, then odd ranks do; rank 2 computes for 20 ms first.
inline void red_black(int /*round*/) {
    come({0, 0, 20, 0});
    if (rank % 2 == 0) {
        send(rank + 1, 3);
        receive((rank + 3) % ranks, 4);
    } else {
        receive(rank - 1, 3);
        send((rank + 1) % ranks, 4);
    }
}

// Rank 3 writes a result, for 15 ms, after each sum over all; the next sum waits for it.
inline void writer(int /*round*/) {
    come_together();
    for (int i = 0; i < 2; ++i) {
        if (i > 0 && rank == 3) compute(15);
        MPI_Allreduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

}  // namespace planted
