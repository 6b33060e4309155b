// MPI's functions by the names that Fortran programs call, where the MPI's library for them is there.
#pragma once

#include <dlfcn.h>

#include "communicators.hpp"

// The standard ABI has other names for them.
#if defined(PALMETTE_ABI_STANDARD)
#define ORACLE_WITHOUT_FORTRAN 1
namespace oracle {
inline void find_fortran() {}
}  // namespace oracle
#else
namespace oracle {

using Name = void (*)(...);

inline struct FortranNames {
    Name send, recv, isend, irecv, wait, waitall, alltoallv, bcast, send_init, recv_init, start, request_free;

    bool there() const { return request_free != nullptr; }
} fortran_names{};

inline void find_fortran() {
#if defined(OPEN_MPI)
    constexpr const char* library = "libmpi_mpifh.so.40";
#else
    constexpr const char* library = "libmpifort.so.12";
#endif
    if (!dlopen(library, RTLD_NOW | RTLD_GLOBAL)) return;
    const auto find = [](const char* name) { return reinterpret_cast<Name>(dlsym(RTLD_DEFAULT, name)); };
    fortran_names = {find("mpi_send_"),      find("mpi_recv_"),      find("mpi_isend_"),     find("mpi_irecv_"),
                     find("mpi_wait_"),      find("mpi_waitall_"),   find("mpi_alltoallv_"), find("mpi_bcast_"),
                     find("mpi_send_init_"), find("mpi_recv_init_"), find("mpi_start_"),     find("mpi_request_free_")};
}

/// Calls one of them; its last argument is the code.
template <class... Arguments>
void made_by(Run& run, const About& about, Name name, Arguments... arguments) {
    MPI_Fint code = MPI_SUCCESS;
    made(
        run.account, about,
        [&](auto... all) {
            name(all..., &code);
            return static_cast<int>(code);
        },
        arguments...);
    if (code != MPI_SUCCESS) run.fail("a call by its Fortran name has failed");
}

/// A message, started or not, one that is started several times, and two collectives.
inline void by_fortran(Run& run) {
    Comm* const comm = run.any_intra();
    const bool starts = run.rng.one_in(2);
    std::vector<Message> all;
    for (int i = 0; i < 3; ++i) {
        all.push_back(run.message(*comm, run.rng.below(3), true));
        all.back().type = 1;
        all.back().count = all.back().capacity = std::max(1, all.back().count % 2000);
        if (i == 2) all.back().number = run.again(all[1]);
        if (i == 2) {
            const int number = all.back().number;
            all.back() = all[1];
            all.back().number = number;
        }
        run.update(all.back());
    }
    const int root = run.rng.below(comm->size());
    if (!fortran_names.there() || !comm->has_me()) return;
    const FortranNames& f = fortran_names;
    MPI_Fint handle = PMPI_Comm_c2f(comm->handle);
    MPI_Fint type = PMPI_Type_c2f(MPI_INT);
    MPI_Fint status[32];
    MPI_Fint request = 0;
    const auto say = [](About about, bool sends, bool gets) {
        if (!sends) about.sent = none;
        if (!gets) about.got = none;
        return about;
    };
    const auto started = [&](const About& about) {
        run.account.start(about);
        return run.account.requests.size() - 1;
    };
    const auto wait = [&](std::size_t which) {
        made_by(run, completing("MPI_Wait"), f.wait, &request, status);
        run.account.requests[which].end = run.account.last();
        run.account.requests[which].end_thread = run.account.thread;
    };
    Message& m = all[0];
    if (m.from != m.to && m.sent_here()) {
        char* const out = run.filled(m);
        run.counts(m);
        if (starts) {
            made_by(run, Run::sends("MPI_Isend", m), f.isend, out, &m.count, &type, &m.to, &m.tag, &handle, &request);
            wait(started(Run::sends("MPI_Isend", m)));
        } else {
            made_by(run, Run::sends("MPI_Send", m), f.send, out, &m.count, &type, &m.to, &m.tag, &handle);
        }
    } else if (m.from != m.to && m.received_here()) {
        char* const in = run.space(m);
        made_by(run, Run::gets("MPI_Recv", m), f.recv, in, &m.count, &type, &m.from, &m.tag, &handle, status);
        run.number_in(in, m.number);
    }
    // Its two starts are two messages.
    Message& lasting = all[1];
    if (lasting.from != lasting.to && (lasting.sent_here() || lasting.received_here())) {
        const bool sends = lasting.sent_here();
        char* const data = sends ? run.filled(lasting) : run.space(lasting);
        const About about = sends ? Run::sends("MPI_Send_init", lasting) : Run::gets("MPI_Recv_init", lasting);
        About made_once = say(about, false, false);
        made_once.bytes = 0;
        int& other = sends ? lasting.to : lasting.from;
        made_by(run, made_once, sends ? f.send_init : f.recv_init, data, &lasting.count, &type, &other, &lasting.tag,
                &handle, &request);
        for (const Message* const one : {&all[1], &all[2]}) {
            if (sends) std::memcpy(data, &one->number, 4);
            About each = about;
            (sends ? each.sent : each.got) = one->number;
            made_by(run, {"MPI_Start", none, sends ? lasting.bytes() : 0}, f.start, &request);
            if (sends) run.counts(lasting);
            wait(started(each));
            if (!sends) run.number_in(data, one->number);
        }
        made_by(run, completing("MPI_Request_free"), f.request_free, &request);
    }
    void* const a = run.buffer();
    void* const b = run.buffer();
    int count = 5;
    int at = root;
    made_by(run, {"MPI_Bcast", comm->label, 20, root, unsaid, ++comm->collectives}, f.bcast, a, &count, &type, &at,
            &handle);
    std::vector<int> counts, places;
    for (int r = 0; r < comm->size(); ++r) {
        counts.push_back((comm->rank + r) % 3);
        places.push_back(10 * r);
        if (r != comm->rank && counts.back() > 0)
            sent_to.exchange(comm->members[static_cast<std::size_t>(r)], 4LL * counts.back());
    }
    long long bytes = 0;
    for (const int one : counts) bytes += 4LL * one;
    made_by(run, {"MPI_Alltoallv", comm->label, bytes, none, unsaid, ++comm->collectives}, f.alltoallv, a,
            counts.data(), places.data(), &type, b, counts.data(), places.data(), &type, &handle);
}

}  // namespace oracle
#endif
