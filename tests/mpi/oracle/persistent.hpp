// Messages that are started several times: persistent requests, and those whose data comes in partitions.
#pragma once

#include "messages.hpp"

namespace oracle {

/// Both ends of a persistent message, and its starts.
struct Lasting {
    Message message;
    MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
    const char* function = "";
    char* out = nullptr;
    char* in = nullptr;
    bool any_source = false;
};

/// Makes some persistent messages, starts them some times, frees them; other steps' messages are outstanding meanwhile.
inline void persistent(Run& run) {
    using Init = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    static const std::vector<std::pair<const char*, Init>> kinds{
        {"MPI_Send_init", MPI_Send_init}, {"MPI_Ssend_init", MPI_Ssend_init}, {"MPI_Bsend_init", MPI_Bsend_init}};
    Comm* const comm = run.any_intra();
    const int count = run.rng.between(1, 3);
    std::vector<Lasting> all;
    for (int i = 0; i < count; ++i) {
        Lasting one;
        // Of its own tag where any source will do: nothing else may be taken.
        one.any_source = run.rng.one_in(3);
        one.message = run.message(*comm, one.any_source ? run.own_tag() : run.rng.below(tags), true);
        const auto& [name, init] = run.rng.pick(kinds);
        one.function = name;
        const Message& m = one.message;
        if (m.sent_here()) {
            one.out = run.filled(m);
            About about = Run::sends(name, m);
            about.sent = none;  // each start does
            about.bytes = 0;    // the same
            made(run.account, about, init, static_cast<const void*>(one.out), m.count, m.datatype(), m.to, m.tag,
                 comm->handle, &one.send);
        }
        if (m.received_here()) {
            one.in = run.space(m);
            About about = Run::gets("MPI_Recv_init", m, !one.any_source);
            about.got = none;
            about.bytes = 0;  // the same
            made(run.account, about, MPI_Recv_init, static_cast<void*>(one.in), m.capacity, m.datatype(),
                 one.any_source ? MPI_ANY_SOURCE : m.from, m.tag, comm->handle, &one.receive);
        }
        all.push_back(one);
    }
    const int rounds = run.rng.between(0, 3);
    for (int round = 0; round < rounds; ++round) {
        for (Lasting& one : all) one.message.number = run.again(one.message);
        std::vector<MPI_Request> receives, sends;
        const bool at_once = run.rng.one_in(2);
        const auto begun = [&](Lasting& one, bool sending) {
            const Message& m = one.message;
            if (sending) {
                run.counts(m);
                run.starts(one.send, Run::sends(one.function, m));
            } else {
                About about = Run::gets("MPI_Recv_init", m);
                about.got = none;
                run.starts(one.receive, about, one.in, m.number);
            }
        };
        const auto start = [&](bool sending) {
            std::vector<Lasting*> which;
            std::vector<MPI_Request> handles;
            for (Lasting& one : all) {
                if (sending ? !one.message.sent_here() : !one.message.received_here()) continue;
                if (sending) std::memcpy(one.out, &one.message.number, 4);
                which.push_back(&one);
                handles.push_back(sending ? one.send : one.receive);
            }
            if (handles.empty()) return;
            // Starting one may give it another handle.
            const auto keep = [&](std::size_t i) { (sending ? which[i]->send : which[i]->receive) = handles[i]; };
            long long bytes = 0;
            if (at_once) {
                for (const Lasting* const one : which) bytes += sending ? one->message.bytes() : 0;
                made(run.account, {"MPI_Startall", none, bytes}, MPI_Startall, static_cast<int>(handles.size()),
                     handles.data());
                for (std::size_t i = 0; i < which.size(); ++i) {
                    keep(i);
                    begun(*which[i], sending);
                }
            } else {
                for (std::size_t i = 0; i < which.size(); ++i) {
                    bytes = sending ? which[i]->message.bytes() : 0;
                    made(run.account, {"MPI_Start", none, bytes}, MPI_Start, &handles[i]);
                    keep(i);
                    begun(*which[i], sending);
                }
            }
        };
        start(false);
        start(true);
        // They are to be inactive before they are started or freed.
        complete_all(run);
    }
    for (Lasting& one : all)
        for (MPI_Request* const request : {&one.send, &one.receive})
            if (*request != MPI_REQUEST_NULL)
                made(run.account, completing("MPI_Request_free"), MPI_Request_free, request);
}

/// A persistent send that is freed while it is active: it goes on, and nobody completes it.
inline void freed_persistent(Run& run) {
    Comm* const comm = run.any_intra();
    const Message m = run.message(*comm, run.rng.below(tags), true);
    start_receive(run, m);
    if (!m.sent_here()) return;
    MPI_Request request = MPI_REQUEST_NULL;
    About about = Run::sends("MPI_Send_init", m);
    about.sent = none;
    about.bytes = 0;
    made(run.account, about, MPI_Send_init, static_cast<const void*>(run.filled(m)), m.count, m.datatype(), m.to, m.tag,
         comm->handle, &request);
    made(run.account, {"MPI_Start", none, m.bytes()}, MPI_Start, &request);
    run.account.start(Run::sends("MPI_Send_init", m));
    run.counts(m);
    run.frees(request);
}

#if MPI_VERSION >= 4
/// The data of one message in partitions.
inline void partitioned(Run& run) {
    Comm* const comm = run.any_intra();
    Message m = run.message(*comm, run.own_tag(), true);
    const int partitions = run.rng.between(1, 4);
    const int rounds = run.rng.between(1, 2);
    m.type = 1;
    m.count = std::min(m.count, 1000) * partitions;
    m.capacity = m.count;
    run.update(m);
    if (m.from == m.to) return;  // not every MPI can
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Count each = m.count / partitions;
    char* const data = run.filled(m);
    void* const memory = data;
    if (m.sent_here()) {
        About about = Run::sends("MPI_Psend_init", m);
        about.sent = none;
        about.bytes = 0;
        made(run.account, about, MPI_Psend_init, static_cast<const void*>(memory), partitions, each, m.datatype(), m.to,
             m.tag, comm->handle, MPI_INFO_NULL, &request);
    } else if (m.received_here()) {
        About about = Run::gets("MPI_Precv_init", m);
        about.got = none;
        about.bytes = 0;
        made(run.account, about, MPI_Precv_init, memory, partitions, each, m.datatype(), m.from, m.tag, comm->handle,
             MPI_INFO_NULL, &request);
    }
    for (int round = 0; round < rounds; ++round) {
        m.number = run.again(m);
        if (m.sent_here()) std::memcpy(data, &m.number, 4);
        if (request == MPI_REQUEST_NULL) continue;
        made(run.account, {"MPI_Start", none, m.sent_here() ? m.bytes() : 0}, MPI_Start, &request);
        if (m.sent_here()) {
            run.counts(m);
            run.starts(request, Run::sends("MPI_Psend_init", m), nullptr, none, true);
            for (int p = partitions; p-- > 0;) made(run.account, completing("MPI_Pready"), MPI_Pready, p, request);
        } else {
            About about = Run::gets("MPI_Precv_init", m);
            about.got = none;
            run.starts(request, about, data, m.number, true);
            int flag = 0;
            made(run.account, completing("MPI_Parrived"), MPI_Parrived, request, 0, &flag);
        }
        complete_all(run);
    }
    if (request != MPI_REQUEST_NULL) made(run.account, completing("MPI_Request_free"), MPI_Request_free, &request);
}
#endif

}  // namespace oracle
