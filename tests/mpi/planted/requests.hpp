// Nonblocking and persistent calls: the call that completes a request is the one that waits.
#pragma once

#include "communicators.hpp"
#include "messages.hpp"

namespace planted {

inline MPI_Request receiving(int from, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    static std::array<int, 4> into{};
    static unsigned next = 0;
    MPI_Irecv(&into[next++ % into.size()], 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request);
    return request;
}
inline MPI_Request sending(int to, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(in.data(), 1, MPI_INT, to, tag, MPI_COMM_WORLD, &request);
    return request;
}
inline void wait(MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

/// What ranks 1 to 3 send to rank 0.
using FromOthers = std::array<MPI_Request, 3>;
inline FromOthers from_others() { return {receiving(1, 3), receiving(2, 3), receiving(3, 3)}; }

// Rank 1 is late to start a sum, and a message to rank 0; all complete both together.
inline void nonblocking(int /*round*/) {
    std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (rank == 0) requests[0] = receiving(1, 4);
    come({0, 30, 0, 0});
    if (rank == 1) requests[0] = sending(0, 4);
    MPI_Iallreduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
}

// Rank 1 is late to start sending what rank 0 waits for.
inline void late_isend(int /*round*/) {
    come({0, 30, 0, 0});
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1) request = sending(0, 3);
    if (rank == 0) request = receiving(1, 3);
    if (rank < 2) wait(request);
}

// The same, but rank 0 computes for 10 ms before it waits.
inline void overlap(int /*round*/) {
    come({0, 30, 0, 0});
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1) request = sending(0, 3);
    if (rank == 0) {
        request = receiving(1, 3);
        compute(10);
    }
    if (rank < 2) wait(request);
}

// The same, but rank 0 computes until long after the message was sent: it needn't wait.
inline void full_overlap(int /*round*/) {
    come({0, 10, 0, 0});
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1) request = sending(0, 3);
    if (rank == 0) {
        request = receiving(1, 3);
        compute(30);
    }
    if (rank < 2) wait(request);
}

// Rank 0 waits for all others together: for the last one, rank 3.
inline void waitall(int /*round*/) {
    come({0, 10, 20, 30});
    if (rank > 0) send(0, 3);
    if (rank == 0) {
        FromOthers requests = from_others();
        MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
    }
}

// The same, but for any of them, three times.
inline void waitany(int /*round*/) {
    come({0, 10, 20, 30});
    if (rank > 0) send(0, 3);
    if (rank == 0) {
        FromOthers requests = from_others();
        int index = 0;
        for (int i = 0; i < 3; ++i) MPI_Waitany(3, requests.data(), &index, MPI_STATUS_IGNORE);
    }
}

// The same, but for some of them, until all are there.
inline void waitsome(int /*round*/) {
    come({0, 10, 20, 30});
    if (rank > 0) send(0, 3);
    if (rank == 0) {
        FromOthers requests = from_others();
        std::array<int, 3> indices{};
        for (int done = 0, count = 0; done < 3; done += count)
            MPI_Waitsome(3, requests.data(), &count, indices.data(), MPI_STATUSES_IGNORE);
    }
}

// The same, one by one in the order in which they are sent.
inline void waits(int /*round*/) {
    come({0, 10, 20, 30});
    if (rank > 0) send(0, 3);
    if (rank == 0) {
        FromOthers requests = from_others();
        for (MPI_Request& request : requests) wait(request);
    }
}

// Rank 0 waits together for three messages that it takes from any rank: for the last one, from rank 3.
inline void any_irecv(int /*round*/) {
    come({0, 20, 10, 30});
    if (rank > 0) send(0, rank);
    if (rank == 0) {
        static std::array<int, 3> from{};
        FromOthers requests{};
        for (std::size_t i = 0; i < requests.size(); ++i)
            MPI_Irecv(&from[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
    }
}

// Rank 0 asks for two messages of rank 1 at one time, and waits for each; the second is sent later.
inline void two_of_one_sender(int /*round*/) {
    come({0, 10, 0, 0});
    if (rank == 1) {
        send(0, 3);
        compute(20);
        send(0, 3);
    }
    if (rank == 0) {
        MPI_Request first = receiving(1, 3);
        MPI_Request second = receiving(1, 3);
        wait(first);
        wait(second);
    }
}

// Rank 0 completes together a message from rank 1, who sends it late, and a short one to rank 2. That was sent long
// before rank 2 asks for it, just after rank 1 sends: rank 0 waits for rank 1.
inline void sent_besides(int /*round*/) {
    come({0, 20, 20.05, 0});
    if (rank == 0) {
        std::array<MPI_Request, 2> requests{receiving(1, 3), sending(2, 3)};
        MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    }
    if (rank == 1) send(0, 3);
    if (rank == 2) receive(0, 3);
}

// Rank 0 asks for a message before it computes for 30 ms; rank 1 sends it synchronously meanwhile, and needn't wait.
inline void asked_before(int /*round*/) {
    come({0, 5, 0, 0});
    if (rank == 1) MPI_Ssend(in.data(), 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Request request = receiving(1, 3);
        compute(30);
        wait(request);
    }
}

// Rank 1 sends two messages, the second one late. Of the first nobody completes the request.
inline void freed_request(int /*round*/) {
    come_together();
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1) request = sending(0, 9);
    if (rank == 1) MPI_Request_free(&request);
    come({5, 30, 0, 0});
    if (rank == 1) send(0, 9);
    for (int i = 0; rank == 0 && i < 2; ++i) receive(1, 9);
}

// Rank 0 tests until the message of rank 1 is there, every millisecond: tests don't wait.
inline void tests(int /*round*/) {
    come({0, 20, 0, 0});
    if (rank == 1) send(0, 3);
    if (rank == 0) {
        MPI_Request request = receiving(1, 3);
        for (int done = 0; !done; compute(1)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

// Rank 1 is late to receive what rank 0 sends synchronously.
inline void late_receiver_of_issend(int /*round*/) {
    come({0, 30, 0, 0});
    if (rank == 0) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Issend(in.data(), 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
        wait(request);
    }
    if (rank == 1) receive(0, 3);
}

// The same of a long message.
inline void late_receiver_of_isend(int /*round*/) {
    come({0, 30, 0, 0});
    if (rank == 0) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(large(), large_bytes, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &request);
        wait(request);
    }
    if (rank == 1) MPI_Recv(large(), large_bytes, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Rank 1 is late to start a barrier.
inline void late_ibarrier(int /*round*/) {
    come({0, 30, 0, 0});
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait(request);
}

// Rank 1 is late to start each of these; of the scan rank 0 waits for nobody.
inline void late_nonblocking(int /*round*/) {
    const Times at{0, 12, 0, 0};
    std::array<MPI_Request, 2> requests{};
    come(at);
    MPI_Iallgather(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, MPI_COMM_WORLD, &requests[0]);
    wait(requests[0]);
    come(at);
    MPI_Ialltoall(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, MPI_COMM_WORLD, &requests[0]);
    MPI_Waitall(1, requests.data(), MPI_STATUSES_IGNORE);
    come(at);
    MPI_Iscan(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    int index = 0;
    MPI_Waitany(1, requests.data(), &index, MPI_STATUS_IGNORE);
}

// Rank 1, the root, is late to start a broadcast; the others compute for 12 ms before they wait.
inline void late_ibcast(int /*round*/) {
    come({0, 30, 0, 0});
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(in.data(), 1, MPI_INT, 1, MPI_COMM_WORLD, &request);
    if (rank != 1) compute(12);
    wait(request);
}

// Rank 1 is late to start a reduction to rank 3.
inline void late_ireduce(int /*round*/) {
    come({0, 30, 0, 0});
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ireduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, 3, MPI_COMM_WORLD, &request);
    wait(request);
}

// All start a sum together, but rank 1 computes for 30 ms before it completes it: that is nobody's waiting.
inline void late_wait(int /*round*/) {
    come_together();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 1) compute(30);
    wait(request);
}

// Two sums are outstanding: rank 1 is late to start the first, rank 2, later, to start the second.
inline void two_outstanding(int /*round*/) {
    std::array<MPI_Request, 2> requests{};
    static std::array<int, 2> sums{};
    come({0, 10, 0, 0});
    MPI_Iallreduce(in.data(), &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    come({0, 0, 15, 0});
    MPI_Iallreduce(in.data(), &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
}

// All start a sum together, rank 1 is late to a barrier, and then all complete the sum, which is no wait.
inline void barrier_between(int /*round*/) {
    MPI_Request request = MPI_REQUEST_NULL;
    come_together();
    MPI_Iallreduce(in.data(), out.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    come({0, 20, 0, 0});
    MPI_Barrier(MPI_COMM_WORLD);
    wait(request);
}

// Sums on two communicators, which ranks start in different order: rank 1 is late to start the second one.
inline void crossed(int /*round*/) {
    std::array<MPI_Request, 2> requests{};
    static std::array<int, 2> sums{};
    const std::array<MPI_Comm, 2> comms{MPI_COMM_WORLD, twin()};
    const auto start = [&](std::size_t i) {
        MPI_Iallreduce(in.data(), &sums[i], 1, MPI_INT, MPI_SUM, comms[i], &requests[i]);
    };
    const std::size_t first = rank % 2 == 0 ? 0 : 1;
    come_together();
    start(first);
    come({0, 20, 0, 0});
    start(1 - first);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
}

// A message that is started again in each round: rank 1 is late to start sending.
inline void persistent(int round) {
    static MPI_Request request = MPI_REQUEST_NULL;
    static int from = 0;
    if (round == 0 && rank == 1) MPI_Send_init(in.data(), 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
    if (round == 0 && rank == 0) MPI_Recv_init(&from, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
    come({0, 30, 0, 0});
    if (rank < 2) {
        MPI_Start(&request);
        wait(request);
    }
    if (round == rounds - 1 && rank < 2) MPI_Request_free(&request);
}

// The same, sent synchronously and received from any rank with any tag.
inline void persistent_from_any(int round) {
    static MPI_Request request = MPI_REQUEST_NULL;
    static int from = 0;
    if (round == 0 && rank == 1) MPI_Ssend_init(in.data(), 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
    if (round == 0 && rank == 0)
        MPI_Recv_init(&from, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    come({0, 30, 0, 0});
    int index = 0;
    if (rank < 2) {
        MPI_Start(&request);
        MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
    }
    if (round == rounds - 1 && rank < 2) MPI_Request_free(&request);
}

// Messages to both neighbours in a ring, started together in each round: rank 2 is late.
inline void persistent_ring(int round) {
    static std::array<MPI_Request, 4> requests;
    static std::array<int, 2> from{};
    const int left = (rank + 3) % ranks;
    const int right = (rank + 1) % ranks;
    if (round == 0) {
        MPI_Recv_init(&from[0], 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Recv_init(&from[1], 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Send_init(in.data(), 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Send_init(in.data(), 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[3]);
    }
    come({0, 0, 25, 0});
    MPI_Startall(4, requests.data());
    MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
    for (MPI_Request& request : requests)
        if (round == rounds - 1) MPI_Request_free(&request);
}

#if MPI_VERSION >= 4
// One shift round a ring, to which rank 2 is late.
inline void isendrecv(int /*round*/) {
    static int from = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    come({0, 0, 30, 0});
    MPI_Isendrecv(in.data(), 1, MPI_INT, (rank + 1) % ranks, 3, &from, 1, MPI_INT, (rank + 3) % ranks, 3,
                  MPI_COMM_WORLD, &request);
    wait(request);
}

// A barrier that is started again in each round: rank 1 is late to start it.
inline void persistent_barrier(int round) {
    static MPI_Request request = MPI_REQUEST_NULL;
    if (round == 0) MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    come({0, 30, 0, 0});
    MPI_Start(&request);
    wait(request);
    if (round == rounds - 1) MPI_Request_free(&request);
}
#endif

}  // namespace planted
