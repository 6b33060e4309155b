// Messages from one rank to another: blocking and nonblocking in all modes, probed, matched, both ways at once, from
// any source, cancelled, and sends that are freed at once.
#pragma once

#include "completing.hpp"

namespace oracle {

inline constexpr int tags = 3;  ///< few, so that messages of a channel follow each other

struct BlockingSend {
    const char* name;
    int (*function)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
};
struct StartedSend {
    const char* name;
    int (*function)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
};
inline const std::vector<BlockingSend> blocking_sends{
    {"MPI_Send", MPI_Send}, {"MPI_Ssend", MPI_Ssend}, {"MPI_Bsend", MPI_Bsend}};
inline const std::vector<StartedSend> started_sends{
    {"MPI_Isend", MPI_Isend}, {"MPI_Isend", MPI_Isend}, {"MPI_Issend", MPI_Issend}, {"MPI_Ibsend", MPI_Ibsend}};

inline void send(Run& run, const Message& m) {
#if MPI_VERSION >= 4
    if (run.rng.one_in(6)) {
        if (!m.sent_here()) return;
        run.counts(m);
        made(run.account, Run::sends("MPI_Send_c", m), MPI_Send_c, static_cast<const void*>(run.filled(m)),
             MPI_Count{m.count}, m.datatype(), m.to, m.tag, m.comm->handle);
        return;
    }
#endif
    const BlockingSend& how = run.rng.pick(blocking_sends);
    if (!m.sent_here()) return;
    run.counts(m);
    made(run.account, Run::sends(how.name, m), how.function, static_cast<const void*>(run.filled(m)), m.count,
         m.datatype(), m.to, m.tag, m.comm->handle);
}

inline void send_started(Run& run, const Message& m, const StartedSend& how = started_sends.front()) {
    if (!m.sent_here()) return;
    run.counts(m);
    const About about = Run::sends(how.name, m);
    MPI_Request request = MPI_REQUEST_NULL;
    made(run.account, about, how.function, static_cast<const void*>(run.filled(m)), m.count, m.datatype(), m.to, m.tag,
         m.comm->handle, &request);
    run.starts(request, about);
}

inline void start_send(Run& run, const Message& m) { send_started(run, m, run.rng.pick(started_sends)); }

inline void start_receive(Run& run, const Message& m, int source = unsaid, int tag = unsaid) {
    if (!m.received_here()) return;
    const bool any = source != unsaid || tag != unsaid;
    if (source == unsaid) source = m.from;
    if (tag == unsaid) tag = m.tag;
    char* const in = run.space(m);
    MPI_Request request = MPI_REQUEST_NULL;
    About about = Run::gets("MPI_Irecv", m, !any);
    about.got = none;  // its request gets it
    made(run.account, about, MPI_Irecv, static_cast<void*>(in), m.capacity, m.datatype(), source, tag, m.comm->handle,
         &request);
    run.starts(request, about, in, any ? none : m.number);
}

/// What a call has received that could be any message.
inline void got_any(Run& run, const char* in) {
    Call& call = run.account.calls.back();
    call.got = run.number_in(in, none);
    if (const Message* const m = run.message_of(call.got)) {
        call.peer = m->from;
        call.tag = m->tag;
    }
}

inline void receive(Run& run, const Message& m, int source = unsaid, int tag = unsaid) {
    const bool ignores = run.own.one_in(2);
    if (!m.received_here()) return;
    const bool any = source != unsaid || tag != unsaid;
    if (source == unsaid) source = m.from;
    if (tag == unsaid) tag = m.tag;
    char* const in = run.space(m);
    MPI_Status status;
    MPI_Status* const to = ignores ? MPI_STATUS_IGNORE : &status;
    made(run.account, Run::gets("MPI_Recv", m, !any), MPI_Recv, static_cast<void*>(in), m.capacity, m.datatype(),
         source, tag, m.comm->handle, to);
    if (any)
        got_any(run, in);
    else
        run.number_in(in, m.number);
}

/// Found first, then received: by a probe, or as a matched message.
inline void receive_found(Run& run, const Message& m) {
    const int how = run.own.below(4);
    if (!m.received_here()) return;
    char* const in = run.space(m);
    void* const to = in;
    MPI_Status status;
    MPI_Message found = MPI_MESSAGE_NULL;
    int flag = 0;
    const auto about = [&](const char* function) { return About{function, m.comm->label, 0, m.from, m.tag}; };
    const MPI_Comm comm = m.comm->handle;
    if (how == 0) {
        made(run.account, about("MPI_Probe"), MPI_Probe, m.from, m.tag, comm, &status);
        return receive(run, m);
    }
    if (how == 1) {
        for (int tries = 0; tries < 5 && !flag; ++tries, sched_yield())
            made(run.account, about("MPI_Iprobe"), MPI_Iprobe, m.from, m.tag, comm, &flag, MPI_STATUS_IGNORE);
        return receive(run, m);
    }
    for (int tries = 0; how == 3 && tries < 5 && !flag; ++tries, sched_yield())
        made(run.account, about("MPI_Improbe"), MPI_Improbe, m.from, m.tag, comm, &flag, &found, &status);
    if (!flag) made(run.account, about("MPI_Mprobe"), MPI_Mprobe, m.from, m.tag, comm, &found, &status);
    // The receive began with the probe that has found the message.
    const int begin = run.account.last();
    About matched = Run::gets("MPI_Mrecv", m);
    matched.got = none;
    if (run.own.one_in(2)) {
        made(run.account, matched, MPI_Mrecv, to, m.capacity, m.datatype(), &found, MPI_STATUS_IGNORE);
        Request& one = run.account.start(matched);
        one.start = begin;
        one.end = run.account.last();
        one.end_thread = run.account.thread;
        one.got = run.number_in(in, m.number);
        return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    matched.function = "MPI_Imrecv";
    made(run.account, matched, MPI_Imrecv, to, m.capacity, m.datatype(), &found, &request);
    run.starts(request, matched, in, m.number);
    run.account.requests.back().start = begin;
}

/// One message, both of whose ends may wait for the other.
inline void one_message(Run& run) {
    Comm& comm = run.any_comm();
    const Message m = run.message(comm, run.rng.below(tags), false);
    const bool to_itself = m.from_world == m.to_world;
    const int how = run.rng.below(4);
    if (to_itself && m.received_here() && how == 0) start_receive(run, m);
    if (how == 1 || to_itself)
        start_send(run, m);
    else
        send(run, m);
    if (to_itself && how == 0) return;
    if (how == 2)
        start_receive(run, m);
    else if (how == 3)
        receive_found(run, m);
    else
        receive(run, m);
}

/// Several that are outstanding at once, some on one channel.
inline void burst(Run& run) {
    Comm& comm = run.any_comm();
    const int count = run.rng.between(2, 6);
    for (int i = 0; i < count; ++i) {
        const Message m = run.message(comm, run.rng.below(tags), false);
        start_receive(run, m);
        start_send(run, m);
    }
}

/// Ready sends, whose receives are there.
inline void ready(Run& run) {
    Comm* const comm = run.any_intra();
    const Message m = run.message(*comm, run.rng.below(tags), false);
    const bool starts = run.rng.one_in(2);
    if (!comm->has_me()) return;
    start_receive(run, m);
    PMPI_Barrier(comm->handle);
    if (!m.sent_here()) return;
    run.counts(m);
    const About about = Run::sends(starts ? "MPI_Irsend" : "MPI_Rsend", m);
    const void* const out = run.filled(m);
    if (starts) {
        MPI_Request request = MPI_REQUEST_NULL;
        made(run.account, about, MPI_Irsend, out, m.count, m.datatype(), m.to, m.tag, comm->handle, &request);
        run.starts(request, about);
    } else {
        made(run.account, about, MPI_Rsend, out, m.count, m.datatype(), m.to, m.tag, comm->handle);
    }
}

/// Everybody to the next one and from the one before, in one call.
inline void both_ways(Run& run) {
    Comm* const comm = run.any_intra();
    const int how = run.rng.below(4);
    const int to_tag = run.rng.below(tags);
    const int shift = run.rng.below(comm->size());
    std::vector<Message> all;
    for (int r = 0; r < comm->size(); ++r) {
        all.push_back(run.message(*comm, to_tag, false));
        Message& m = all.back();
        m.from = r;
        m.to = (r + shift) % comm->size();
        m.from_world = comm->members[static_cast<std::size_t>(m.from)];
        m.to_world = comm->members[static_cast<std::size_t>(m.to)];
        if (how % 2 == 1) {  // replaced: both have one type and length
            m.type = all.front().type;
            // MPICH 5.0 crashes in long ones that are replaced (MPI_Isendrecv_replace).
            if (r == 0) m.count = std::min(m.count, 20);
            m.count = m.capacity = all.front().count;
        }
        run.update(m);
    }
    if (!comm->has_me()) return;
    const Message& out = all[static_cast<std::size_t>(comm->rank)];
    const Message& in = all[static_cast<std::size_t>((comm->rank + comm->size() - shift) % comm->size())];
    run.counts(out);
    char* const to = run.space(in);
    char* const from = run.filled(out);
    void* const both = how % 2 == 1 ? from : to;
    constexpr const char* names[] = {"MPI_Sendrecv", "MPI_Sendrecv_replace", "MPI_Isendrecv", "MPI_Isendrecv_replace"};
    const About about = Run::sends(names[how], out);
    About received = Run::gets(names[how], in);
    MPI_Request request = MPI_REQUEST_NULL;
    const auto at_once = [&](int code) {
        Request& one = run.account.start(received);
        one.end = run.account.last();
        one.end_thread = run.account.thread;
        run.number_in(static_cast<char*>(both), in.number);
        return code;
    };
    const auto later = [&](int code) {
        received.got = none;
        run.starts(request, received, static_cast<char*>(both), in.number);
        return code;
    };
    const void* const const_from = from;
    void* const plain_to = to;
    if (how == 0)
        at_once(made(run.account, about, MPI_Sendrecv, const_from, out.count, out.datatype(), out.to, to_tag, plain_to,
                     in.capacity, in.datatype(), in.from, to_tag, comm->handle, MPI_STATUS_IGNORE));
    else if (how == 1)
        at_once(made(run.account, about, MPI_Sendrecv_replace, both, out.count, out.datatype(), out.to, to_tag, in.from,
                     to_tag, comm->handle, MPI_STATUS_IGNORE));
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
    else if (how == 2)
        later(made(run.account, about, MPI_Isendrecv, const_from, out.count, out.datatype(), out.to, to_tag, plain_to,
                   in.capacity, in.datatype(), in.from, to_tag, comm->handle, &request));
    else
        later(made(run.account, about, MPI_Isendrecv_replace, both, out.count, out.datatype(), out.to, to_tag, in.from,
                   to_tag, comm->handle, &request));
#endif
}

/// From any source, with any tag or both. Nothing else may be on its way on the communicator: barriers stand around it.
inline void wild(Run& run) {
    Comm* const comm = run.pick([](const Comm& one) { return !one.is_inter() && one.is_wild; });
    if (!comm) return;
    const int count = run.rng.between(1, 4);
    std::vector<Message> all;
    // All of one type, so that each receive has room for each message.
    for (int i = 0; i < count; ++i) {
        all.push_back(run.message(*comm, run.rng.below(tags), true));
        all.back().type = 0;
        all.back().count = all.back().capacity = std::max(4, all.back().count);
        run.update(all.back());
    }
    const int how = run.rng.below(3);  // of source, tag: any source, any tag, both
    const bool starts = run.rng.one_in(2);
    std::vector<int> kinds;
    for (int i = 0; i < count; ++i) kinds.push_back(run.rng.below(static_cast<int>(started_sends.size())));
    if (!comm->has_me()) return;
    PMPI_Barrier(comm->handle);
    int longest = 0;
    for (const Message& m : all) longest = std::max(longest, static_cast<int>(m.most()));
    for (Message m : all) {
        const int source = how == 1 ? m.from : MPI_ANY_SOURCE;
        const int tag = how == 0 ? m.tag : MPI_ANY_TAG;
        m.capacity = longest;
        if (starts) start_receive(run, m, source, tag);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        send_started(run, all[i], started_sends[static_cast<std::size_t>(kinds[i])]);
    }
    for (Message m : all) {
        m.capacity = longest;
        if (!starts) receive(run, m, how == 1 ? m.from : MPI_ANY_SOURCE, how == 0 ? m.tag : MPI_ANY_TAG);
    }
    complete_all(run);
    PMPI_Barrier(comm->handle);
}

/// A receive for which nothing comes, on a channel that is used again afterwards.
inline void cancelled(Run& run) {
    Comm* const comm = run.any_intra();
    const Message m = run.message(*comm, run.rng.below(tags), false);
    if (!comm->has_me()) return;
    // Before it everything on its channel has been received.
    complete_all(run);
    PMPI_Barrier(comm->handle);
    if (m.received_here()) {
        char* const in = run.space(m);
        MPI_Request request = MPI_REQUEST_NULL;
        About about = Run::gets("MPI_Irecv", m);
        about.got = none;
        made(run.account, about, MPI_Irecv, static_cast<void*>(in), m.capacity, m.datatype(), m.from, m.tag,
             comm->handle, &request);
        run.account.start(about);
        const Pending one{request, run.account.requests.size() - 1, in, m.number};
        made(run.account, completing("MPI_Cancel"), MPI_Cancel, &request);
        MPI_Status status;
        made(run.account, completing("MPI_Wait"), MPI_Wait, &request, &status);
        run.completed(one, true);
        run.account.calls[static_cast<std::size_t>(run.account.requests.back().start)].peer = none;
        int flag = 0;
        made(run.account, completing("MPI_Test_cancelled"), MPI_Test_cancelled, const_cast<const MPI_Status*>(&status),
             &flag);
        if (!flag) run.fail("a receive can't be cancelled");
    }
    PMPI_Barrier(comm->handle);
}

/// Sends whose requests are freed while they are active, between others of their channel.
inline void freed_send(Run& run) {
    Comm& comm = run.any_comm();
    for (int i = 0; i < 3; ++i) {
        const Message m = run.message(comm, 0, false);
        const bool frees = run.rng.one_in(2);
        start_receive(run, m);
        const StartedSend& how = run.rng.pick(started_sends);
        if (!m.sent_here()) continue;
        run.counts(m);
        const About about = Run::sends(how.name, m);
        MPI_Request request = MPI_REQUEST_NULL;
        made(run.account, about, how.function, static_cast<const void*>(run.filled(m)), m.count, m.datatype(), m.to,
             m.tag, comm.handle, &request);
        if (!frees) {
            run.starts(request, about);
            continue;
        }
        run.account.start(about);
        run.frees(request);
    }
}

/// To and from nobody.
inline void to_nobody(Run& run) {
    Comm& comm = run.any_comm();
    const int count = run.rng.below(9);
    const bool starts = run.rng.one_in(2);
    if (!comm.has_me()) return;
    char* const data = run.buffer(64);
    const auto about = [&](const char* function) { return About{function, comm.label, 0, none, unsaid}; };
    made(run.account, about("MPI_Send"), MPI_Send, static_cast<const void*>(data), count, MPI_INT, MPI_PROC_NULL, 1,
         comm.handle);
    made(run.account, about("MPI_Recv"), MPI_Recv, static_cast<void*>(data), count, MPI_INT, MPI_PROC_NULL, 1,
         comm.handle, MPI_STATUS_IGNORE);
    if (!starts) return;
    MPI_Request request = MPI_REQUEST_NULL;
    made(run.account, about("MPI_Isend"), MPI_Isend, static_cast<const void*>(data), count, MPI_INT, MPI_PROC_NULL, 1,
         comm.handle, &request);
    run.starts(request, about("MPI_Isend"));
}

/// Types that are made and freed, of other sizes each time: the MPI gives the next one the handle of the last.
inline void own_types(Run& run) {
    Comm* const comm = run.any_intra();
    for (int i = 0; i < 3; ++i) {
        Message m = run.message(*comm, run.rng.below(tags), true);
        m.type = 1;
        m.count = m.capacity = run.rng.between(1, 30);
        run.update(m);
        if (m.from == m.to || (!m.sent_here() && !m.received_here())) continue;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        made(run.account, {"MPI_Type_contiguous", none}, MPI_Type_contiguous, m.count, MPI_INT, &type);
        made(run.account, {"MPI_Type_commit", none}, MPI_Type_commit, &type);
        if (m.sent_here()) {
            run.counts(m);
            made(run.account, Run::sends("MPI_Send", m), MPI_Send, static_cast<const void*>(run.filled(m)), 1, type,
                 m.to, m.tag, comm->handle);
        } else {
            char* const in = run.space(m);
            made(run.account, Run::gets("MPI_Recv", m), MPI_Recv, static_cast<void*>(in), 1, type, m.from, m.tag,
                 comm->handle, MPI_STATUS_IGNORE);
            run.number_in(in, m.number);
        }
        made(run.account, {"MPI_Type_free", none}, MPI_Type_free, &type);
    }
}

/// Looks for messages that aren't there, and asks for what is known.
inline void local(Run& run) {
    Comm& comm = run.any_comm();
    if (!comm.has_me()) return;
    int number = 0;
    switch (run.own.below(5)) {
        case 0:
            made(run.account, {"MPI_Comm_rank", comm.label}, MPI_Comm_rank, comm.handle, &number);
            if (number != comm.rank) run.fail("another rank");
            break;
        case 1:
            made(run.account, {"MPI_Comm_size", comm.label}, MPI_Comm_size, comm.handle, &number);
            break;
        case 2:
            made(run.account, {"MPI_Iprobe", comm.label}, MPI_Iprobe, 0, 77, comm.handle, &number, MPI_STATUS_IGNORE);
            break;
        case 3:
            made(run.account, {"MPI_Comm_test_inter", comm.label}, MPI_Comm_test_inter, comm.handle, &number);
            break;
        default: {
            MPI_Group group = MPI_GROUP_NULL;
            made(run.account, {"MPI_Comm_group", comm.label}, MPI_Comm_group, comm.handle, &group);
            made(run.account, {"MPI_Group_size", none}, MPI_Group_size, group, &number);
            made(run.account, {"MPI_Group_free", none}, MPI_Group_free, &group);
        }
    }
}

/// Lets others come first.
inline void late(Run& run) {
    const int who = run.rng.below(world_size);
    if (who != world_rank) return;
    const timespec time{0, run.own.between(100, 800) * 1000};
    nanosleep(&time, nullptr);
}

}  // namespace oracle
