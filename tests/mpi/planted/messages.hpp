// Blocking messages between ranks.
#pragma once

#include <vector>

#include "collectives.hpp"

namespace planted {

/// More than any MPI sends before its receiver asks for it.
inline constexpr int large_bytes = 1 << 22;
inline char* large() {
    static std::vector<char> memory(large_bytes);
    return memory.data();
}

inline void send(int to, int tag) { MPI_Send(in.data(), 1, MPI_INT, to, tag, MPI_COMM_WORLD); }
inline void receive(int from, int tag) {
    MPI_Recv(out.data(), 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Rank 1 is late to send to rank 0, which asks for any message.
inline void late_sender(int /*round*/) {
    come({0, 30, 0, 0});
    if (rank == 1) send(0, 3);
    if (rank == 0) receive(MPI_ANY_SOURCE, MPI_ANY_TAG);
}

// Rank 1 is late to send a long message, for which it then waits no longer.
inline void late_sender_of_much(int /*round*/) {
    come({0, 30, 0, 0});
    if (rank == 1) MPI_Send(large(), large_bytes, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(large(), large_bytes, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Rank 1 is late in all kinds of sends.
inline void kinds_of_sends(int /*round*/) {
    const Times at{0, 12, 0, 0};
    const auto receives = [] {
        if (rank == 0) receive(1, 3);
    };
    come(at);
    if (rank == 1) MPI_Ssend(in.data(), 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    receives();
    come(at);
    if (rank == 1) MPI_Rsend(in.data(), 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    receives();
    static std::array<char, 4096> buffer;
    if (rank == 1) MPI_Buffer_attach(buffer.data(), buffer.size());
    come(at);
    if (rank == 1) MPI_Bsend(in.data(), 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    receives();
    void* attached = nullptr;
    int bytes = 0;
    if (rank == 1) MPI_Buffer_detach(&attached, &bytes);
}

// Rank 0 receives from 1, 2 and 3 in this order, in which they send.
inline void senders_in_order(int /*round*/) {
    come({0, 10, 20, 30});
    if (rank > 0) send(0, 3);
    for (int from = 1; rank == 0 && from < ranks; ++from) receive(from, 3);
}

// Rank 0 receives from 1, 2 and 3 in this order, but 1 is the last to send: only for it does it wait.
inline void first_sender_last(int /*round*/) {
    come({0, 30, 10, 20});
    if (rank > 0) send(0, 3);
    for (int from = 1; rank == 0 && from < ranks; ++from) receive(from, 3);
}

// Rank 0 receives from whoever sends: 2, 3, 1.
inline void any_sender(int /*round*/) {
    come({0, 30, 10, 20});
    if (rank > 0) send(0, rank);
    for (int i = 1; rank == 0 && i < ranks; ++i) receive(MPI_ANY_SOURCE, MPI_ANY_TAG);
}

// Rank 1 sends with tags 1, 2 and 3, the last one 20 ms later; rank 0 receives 3, 1, 2.
inline void tags_out_of_order(int /*round*/) {
    come_together();
    if (rank == 1) {
        send(0, 1);
        send(0, 2);
    }
    come({0, 20, 0, 0});
    if (rank == 1) send(0, 3);
    for (const int tag : {3, 1, 2})
        if (rank == 0) receive(1, tag);
}

// Rank 1 is late to receive what rank 0 sends synchronously.
inline void late_receiver(int /*round*/) {
    come({0, 30, 0, 0});
    if (rank == 0) MPI_Ssend(in.data(), 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) receive(0, 3);
}

// Rank 1 is late to receive a long message: rank 0 can't send it before.
inline void late_receiver_of_much(int /*round*/) {
    come({0, 30, 0, 0});
    if (rank == 0) MPI_Send(large(), large_bytes, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(large(), large_bytes, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Rank 1 is late to receive a short message: rank 0 has sent it long ago, and nobody waits.
inline void eager(int /*round*/) {
    come({0, 30, 0, 0});
    if (rank == 0) send(1, 3);
    if (rank == 1) receive(0, 3);
}

// Rank 1 is late to receive long messages, of which rank 2 sends the second: it waits longer, since rank 1 takes the
// first one and computes for 10 ms in between.
inline void late_receiver_of_two(int /*round*/) {
    come({0, 20, 0, 0});
    if (rank == 0 || rank == 2) MPI_Ssend(in.data(), 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) {
        receive(0, 3);
        compute(10);
        receive(2, 3);
    }
}

// Each rank sends to the next one, ranks 0 and 3 at the ends to and from nobody; rank 1 is late.
inline void open_chain(int /*round*/) {
    come({0, 20, 0, 0});
    MPI_Sendrecv(in.data(), 1, MPI_INT, rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL, 3, out.data(), 1, MPI_INT,
                 rank > 0 ? rank - 1 : MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Three shifts round a ring, where rank 2 is late to the first: each delays the next rank, until rank 1 waits.
inline void ring(int /*round*/) {
    come({0, 0, 30, 0});
    for (int i = 0; i < 3; ++i)
        MPI_Sendrecv(in.data(), 1, MPI_INT, (rank + 1) % ranks, 3, out.data(), 1, MPI_INT, (rank + 3) % ranks, 3,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// One shift of long messages round a ring, to which rank 2 is late: rank 1 can't send, and rank 3 can't receive.
inline void ring_of_much(int /*round*/) {
    static std::vector<char> received(large_bytes);
    come({0, 0, 30, 0});
    MPI_Sendrecv(large(), large_bytes, MPI_CHAR, (rank + 1) % ranks, 3, received.data(), large_bytes, MPI_CHAR,
                 (rank + 3) % ranks, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// One shift round a ring in place, to which rank 2 is late.
inline void replaced_in_ring(int /*round*/) {
    come({0, 0, 30, 0});
    MPI_Sendrecv_replace(in.data(), 1, MPI_INT, (rank + 1) % ranks, 3, (rank + 3) % ranks, 3, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}

// Rank 1 is late to send what rank 0 probes for: who waits in a probe isn't judged, and the receive needn't wait.
inline void probe(int /*round*/) {
    come({0, 30, 0, 0});
    if (rank == 1) send(0, 3);
    if (rank == 0) {
        MPI_Probe(1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        receive(1, 3);
    }
}

}  // namespace planted
