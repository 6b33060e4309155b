// Calls that fail: with a code that is returned, and with a handler that leaves the call for good.
#pragma once

#include <csetjmp>
#include <stdexcept>

#include "communicators.hpp"
#include "messages.hpp"

namespace oracle {

/// With several threads MPICH holds a lock while a handler runs, which mustn't leave it.
inline bool leaves_calls = false;

/// A message that is longer than its receive has room for: whether it counts as received isn't fixed.
inline constexpr int half_got = -2;

inline std::jmp_buf back;
inline void jumps(MPI_Comm* /*comm*/, int* /*code*/, ...) { std::longjmp(back, 1); }
inline void throws(MPI_Comm* /*comm*/, int* /*code*/, ...) { throw std::runtime_error("from a handler"); }
inline MPI_Errhandler jumping = MPI_ERRHANDLER_NULL, throwing = MPI_ERRHANDLER_NULL;

inline void make_handlers() {
    PMPI_Comm_create_errhandler(jumps, &jumping);
    PMPI_Comm_create_errhandler(throws, &throwing);
}

/// Sends to a rank that there isn't, on a communicator with such a handler. The call never returns.
inline void left(Run& run, Comm& comm, bool by_jump) {
    PMPI_Comm_set_errhandler(comm.handle, by_jump ? jumping : throwing);
    const int data = 0;
    Call& call = run.account.begin({"MPI_Send", comm.label, unsaid});
    call.left = true;
    if (by_jump) {
        if (setjmp(back) == 0) MPI_Send(&data, 1, MPI_INT, comm.size() + 3, 1, comm.handle);
    } else {
        try {
            MPI_Send(&data, 1, MPI_INT, comm.size() + 3, 1, comm.handle);
        } catch (const std::runtime_error&) {
        }
    }
    call.after_ns = clock_ns();
    PMPI_Comm_set_errhandler(comm.handle, MPI_ERRORS_RETURN);
}

/// One message of several doesn't fit into its receive; the others are right, and so are those behind it.
inline void truncated(Run& run, Comm& comm, bool together) {
    std::vector<Message> all;
    const int bad = run.rng.below(3);
    for (int i = 0; i < 3; ++i) {
        all.push_back(run.message(comm, 1, true));
        Message& m = all.back();
        if (i > 0) {
            m.from = all.front().from, m.to = all.front().to;
            m.from_world = all.front().from_world, m.to_world = all.front().to_world;
        }
        m.type = 0;
        m.count = i == bad ? 300 : 64;
        m.capacity = 64;
        run.update(m);
    }
    std::vector<MPI_Request> requests;
    std::vector<Pending> mine;
    if (all.front().received_here() && together) {
        for (const Message& m : all) start_receive(run, m);
        for (std::size_t i = run.pending.size() - 3; i < run.pending.size(); ++i) mine.push_back(run.pending[i]);
        run.pending.resize(run.pending.size() - 3);
        for (const Pending& one : mine) requests.push_back(one.handle);
    }
    for (const Message& m : all) start_send(run, m);
    if (!comm.has_me()) return;
    PMPI_Barrier(comm.handle);
    if (!all.front().received_here()) return;
    if (together) {
        std::vector<MPI_Status> statuses(3);
        // Who hears of it isn't the same in all MPIs.
        for (MPI_Comm all_hear : {MPI_COMM_WORLD, MPI_COMM_SELF}) PMPI_Comm_set_errhandler(all_hear, MPI_ERRORS_RETURN);
        const int code = made(run.account, completing("MPI_Waitall"), MPI_Waitall, 3, requests.data(), statuses.data());
        for (MPI_Comm all_hear : {MPI_COMM_WORLD, MPI_COMM_SELF})
            PMPI_Comm_set_errhandler(all_hear, MPI_ERRORS_ARE_FATAL);
        for (std::size_t i = 0; i < 3; ++i) {
            const int own = code == MPI_SUCCESS ? MPI_SUCCESS : statuses[i].MPI_ERROR;
            if (own == MPI_ERR_PENDING) {
                mine[i].handle = requests[i];
                run.pending.push_back(mine[i]);
                continue;
            }
            if (static_cast<int>(i) == bad) mine[i].buffer = nullptr;
            run.completed(mine[i]);
            if (static_cast<int>(i) == bad) run.account.requests[mine[i].request].got = half_got;
        }
        return;
    }
    for (std::size_t i = 0; i < 3; ++i) {
        receive(run, all[i]);
        if (static_cast<int>(i) == bad) run.account.calls.back().got = half_got;
    }
}

inline void error(Run& run) {
    Comm* const parent = run.any_intra();
    const int how = run.rng.below(5);
    Comm& comm = run.add(parent->members);
    if (parent->has_me()) {
        makes(run, "MPI_Comm_dup", parent->label, comm, MPI_Comm_dup, parent->handle);
        PMPI_Comm_set_errhandler(comm.handle, MPI_ERRORS_RETURN);
    }
    if (how > 2) return truncated(run, comm, how == 3);
    if (!comm.has_me()) return;
    const int data = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    const About about{"MPI_Send", comm.label, 0};
    if (how == 0) {
        made(run.account, about, MPI_Send, static_cast<const void*>(&data), 1, MPI_INT, comm.size() + 3, 1,
             comm.handle);
        made(run.account, {"MPI_Isend", comm.label, 0}, MPI_Isend, static_cast<const void*>(&data), 1, MPI_INT,
             comm.size() + 3, 1, comm.handle, &request);
        made(run.account, {"MPI_Recv", comm.label, 0}, MPI_Recv, const_cast<void*>(static_cast<const void*>(&data)), -1,
             MPI_INT, 0, 1, comm.handle, MPI_STATUS_IGNORE);
        // A collective that no rank's MPI accepts takes no number.
        int value = 0;
        made(run.account, {"MPI_Bcast", comm.label, 0, none}, MPI_Bcast, static_cast<void*>(&value), 1, MPI_INT, 999,
             comm.handle);
        made(run.account, {"MPI_Barrier", comm.label, 0, none, unsaid, ++comm.collectives}, MPI_Barrier, comm.handle);
    } else if (leaves_calls) {
        left(run, comm, how == 1);
    }
}

}  // namespace oracle
