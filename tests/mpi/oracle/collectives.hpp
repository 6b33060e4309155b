// Collectives in all forms: blocking, nonblocking, persistent; in place; with a length for each rank; over neighbours;
// between groups. Their results are other tests' business.
#pragma once

#include "completing.hpp"

namespace oracle {

// What an MPI can't, by itself too: Intel MPI 2021.18 hangs in nonblocking collectives over neighbours, now and then,
// and loses the communicator of persistent ones; Open MPI 5 hangs in persistent ones that are started again, and
// crashes in those over neighbours. A session of Intel MPI takes seconds.
inline bool has_nonblocking_neighbours = true, has_persistent = true, starts_once = false, has_quick_sessions = true;
inline void know_mpi() {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    PMPI_Get_library_version(version, &length);
    const std::string name(version);
    has_nonblocking_neighbours = has_persistent = has_quick_sessions = name.find("Intel") == std::string::npos;
    starts_once = name.find("Open MPI") != std::string::npos;
}

enum class Form { blocking, nonblocking, persistent };

/// To whom a collective sends, for the matrix.
struct Targets {
    enum { nobody, exchange, neighbours } kind = nobody;
    std::vector<long long> bytes;  ///< by rank or neighbour
};

inline void count_targets(const Comm& comm, const Targets& targets) {
    if (targets.kind == Targets::exchange) {
        const std::vector<int>& peers = comm.is_inter() ? (comm.second ? comm.members : comm.others) : comm.members;
        for (std::size_t r = 0; r < peers.size(); ++r)
            if (peers[r] != world_rank && targets.bytes[r] > 0) sent_to.exchange(peers[r], targets.bytes[r]);
    } else if (targets.kind == Targets::neighbours) {
        for (std::size_t i = 0; i < comm.targets.size(); ++i)
            if (const int rank = comm.targets[i]; rank != MPI_PROC_NULL)
                sent_to.message(comm.members[static_cast<std::size_t>(rank)], targets.bytes[i]);
    }
}

/// One collective on a communicator, in the form that all ranks draw. Names are those of its three forms.
class Collective {
  public:
    Collective(Run& run, Comm& comm, Form form, Targets targets = {})
        : run_(run), comm_(comm), form_(form), targets_(std::move(targets)) {}

    template <class Plain, class Started, class Lasting, class... Arguments>
    void operator()(const char* plain, Plain blocking, const char* started, Started start, const char* lasting,
                    Lasting init, long long bytes, int root, Arguments... arguments) {
        About about{plain, comm_.label, bytes, root < 0 ? none : root, unsaid, ++comm_.collectives};
        MPI_Request request = MPI_REQUEST_NULL;
        if (form_ == Form::blocking) {
            count_targets(comm_, targets_);
            made(run_.account, about, blocking, arguments..., comm_.handle);
        } else if (form_ == Form::nonblocking) {
            count_targets(comm_, targets_);
            about.function = started;
            made(run_.account, about, start, arguments..., comm_.handle, &request);
            run_.starts(request, about);
        } else {
            about.function = lasting;
            About made_by = about;
            made_by.bytes = 0;  // each start moves them
            made(run_.account, made_by, init, arguments..., comm_.handle, MPI_INFO_NULL, &request);
            const int rounds = comm_.collectives % (starts_once ? 2 : 3);
            for (int round = 0; round < rounds; ++round) {
                made(run_.account, {"MPI_Start", none, bytes}, MPI_Start, &request);
                count_targets(comm_, targets_);
                run_.starts(request, about, nullptr, none, true);
                complete_all(run_);
            }
            made(run_.account, completing("MPI_Request_free"), MPI_Request_free, &request);
        }
    }

  private:
    Run& run_;
    Comm& comm_;
    Form form_;
    Targets targets_;
};

#define ORACLE_FORMS(name, small) \
    "MPI_" #name, MPI_##name, "MPI_I" #small, MPI_I##small, "MPI_" #name "_init", MPI_##name##_init

inline Form any_form(Run& run, bool persistent = has_persistent) {
    const int form = run.rng.below(persistent ? 6 : 5);
    return form < 3 ? Form::blocking : form < 5 ? Form::nonblocking : Form::persistent;
}

/// Lengths by rank, the same on all ranks: lengths[from][to].
inline std::vector<std::vector<int>> lengths(Run& run, std::size_t from, std::size_t to) {
    std::vector<std::vector<int>> all(from, std::vector<int>(to));
    for (auto& row : all)
        for (int& one : row) one = run.rng.one_in(4) ? 0 : run.rng.below(40);
    return all;
}

struct Lists {
    int *counts, *places, *at_bytes;
    MPI_Datatype* types;
    long long sum;
};
/// For a v or w form. `bytes`: of an element.
inline Lists lists(Run& run, const std::vector<int>& counts, int bytes, MPI_Datatype type) {
    std::vector<int> places, at_bytes;
    int sum = 0;
    for (const int count : counts) {
        places.push_back(sum);
        at_bytes.push_back(sum * bytes);
        sum += count;
    }
    return {run.list(counts), run.list(places), run.list(at_bytes),
            run.list(std::vector<MPI_Datatype>(counts.size(), type)), sum};
}

/// All ranks of one group with data for all.
inline void all_to_all(Run& run, Comm& comm, Form form, int which) {
    const auto p = comm.members.size();
    const auto ranks = static_cast<long long>(p);
    const int count = run.rng.below(40);
    const bool in_place = run.rng.one_in(4);
    const auto table = lengths(run, p, p);
    if (!comm.has_me()) return;
    const auto me = static_cast<std::size_t>(comm.rank);
    std::vector<int> to = table[me], from;
    for (std::size_t r = 0; r < p; ++r)
        from.push_back(in_place ? (r < me ? table[r][me] : table[me][r]) : table[r][me]);
    if (in_place) to = from;
    void* const out = run.buffer();
    void* const in = run.buffer();
    const void* const data = in_place ? MPI_IN_PLACE : out;
    const Lists sending = lists(run, to, 8, MPI_DOUBLE);
    const Lists receiving = lists(run, from, 8, MPI_DOUBLE);
    const auto* const counts = const_cast<const int*>(sending.counts);
    const auto* const places = const_cast<const int*>(sending.places);
    const auto* const from_counts = const_cast<const int*>(receiving.counts);
    const auto* const from_places = const_cast<const int*>(receiving.places);
    std::vector<long long> bytes;
    for (const int one : to) bytes.push_back(8LL * one);
    if (which == 0) {
        const bool counted = comm.members.size() < static_cast<std::size_t>(world_size);
        Collective(run, comm, form,
                   {counted ? Targets::exchange : Targets::nobody, std::vector<long long>(p, 8LL * count)})(
            ORACLE_FORMS(Alltoall, alltoall), 8LL * count * ranks, none, data, in_place ? 0 : count, MPI_DOUBLE, in,
            count, MPI_DOUBLE);
        return;
    }
    if (which == 1)
        return Collective(run, comm, form, {Targets::exchange, bytes})(
            ORACLE_FORMS(Alltoallv, alltoallv), 8 * sending.sum, none, data, counts, places, MPI_DOUBLE, in,
            from_counts, from_places, MPI_DOUBLE);
    // Types differ, alike at both ends.
    long long all_bytes = 0;
    for (std::size_t r = 0; r < p; ++r) {
        if (in_place || (r + me) % 2 == 0) continue;
        sending.types[r] = receiving.types[r] = MPI_INT;
        bytes[r] /= 2;
    }
    for (const long long one : bytes) all_bytes += one;
    Collective(run, comm, form, {Targets::exchange, bytes})(
        ORACLE_FORMS(Alltoallw, alltoallw), all_bytes, none, data, counts, const_cast<const int*>(sending.at_bytes),
        const_cast<const MPI_Datatype*>(sending.types), in, from_counts, const_cast<const int*>(receiving.at_bytes),
        const_cast<const MPI_Datatype*>(receiving.types));
}

/// Gathering and scattering, with lengths of their own or not.
inline void rooted(Run& run, Comm& comm, Form form, int which) {
    const auto p = comm.members.size();
    const int root = run.rng.below(static_cast<int>(p));
    const int count = run.rng.below(200);
    const auto table = lengths(run, 1, p);
    const bool root_in_place = run.rng.one_in(3);
    if (!comm.has_me()) return;
    const bool is_root = comm.rank == root;
    const bool in_place = is_root && root_in_place;
    const int own_count = table[0][static_cast<std::size_t>(comm.rank)];
    void* const a = run.buffer();
    void* const b = run.buffer();
    const Lists all = lists(run, table[0], 4, MPI_INT);
    const auto* const counts = const_cast<const int*>(all.counts);
    const auto* const places = const_cast<const int*>(all.places);
    const void* const sends = in_place ? MPI_IN_PLACE : a;
    void* const gets = in_place ? MPI_IN_PLACE : b;
    Collective collective(run, comm, form);
    switch (which) {
        case 0:
            return collective(ORACLE_FORMS(Bcast, bcast), 4LL * count, root, a, count, MPI_INT, root);
        case 1:
            return collective(ORACLE_FORMS(Gather, gather), 4LL * count, root, sends, in_place ? 0 : count, MPI_INT, b,
                              count, MPI_INT, root);
        case 2:
            return collective(ORACLE_FORMS(Gatherv, gatherv), 4LL * own_count, root, sends, in_place ? 0 : own_count,
                              MPI_INT, b, counts, places, MPI_INT, root);
        case 3:
            return collective(ORACLE_FORMS(Scatter, scatter), 4LL * count, root, static_cast<const void*>(a), count,
                              MPI_INT, gets, in_place ? 0 : count, MPI_INT, root);
        case 4:
            return collective(ORACLE_FORMS(Scatterv, scatterv), 4LL * own_count, root, static_cast<const void*>(a),
                              counts, places, MPI_INT, gets, in_place ? 0 : own_count, MPI_INT, root);
        default:
            return collective(ORACLE_FORMS(Reduce, reduce), 4LL * count, root, sends, b, count, MPI_INT, MPI_SUM, root);
    }
}

inline void without_root(Run& run, Comm& comm, Form form, int which) {
    const auto p = comm.members.size();
    const int count = run.rng.one_in(6) ? 12000 : run.rng.below(200);
    const auto table = lengths(run, 1, p);
    const bool in_place = run.rng.one_in(4);
    if (!comm.has_me()) return;
    const int own_count = table[0][static_cast<std::size_t>(comm.rank)];
    void* const a = run.buffer();
    void* const b = run.buffer();
    const Lists all = lists(run, table[0], 4, MPI_INT);
    const auto* const counts = const_cast<const int*>(all.counts);
    const auto* const places = const_cast<const int*>(all.places);
    const void* const data = in_place ? MPI_IN_PLACE : a;
    const int small = count % 300;
    Collective collective(run, comm, form);
    switch (which) {
        case 0:
            return collective(ORACLE_FORMS(Barrier, barrier), 0, none);
        case 1:
            return collective(ORACLE_FORMS(Allgather, allgather), 4LL * small, none, data, in_place ? 0 : small,
                              MPI_INT, b, small, MPI_INT);
        case 2:
            return collective(ORACLE_FORMS(Allgatherv, allgatherv), 4LL * own_count, none, data,
                              in_place ? 0 : own_count, MPI_INT, b, counts, places, MPI_INT);
        case 3:
            return collective(ORACLE_FORMS(Allreduce, allreduce), 4LL * count, none, data, b, count, MPI_INT, MPI_SUM);
        case 4:
            return collective(ORACLE_FORMS(Reduce_scatter, reduce_scatter), 4LL * all.sum, none, data, b, counts,
                              MPI_INT, MPI_SUM);
        case 5:
            return collective(ORACLE_FORMS(Reduce_scatter_block, reduce_scatter_block),
                              4LL * small * static_cast<long long>(p), none, data, b, small, MPI_INT, MPI_SUM);
        case 6:
            return collective(ORACLE_FORMS(Scan, scan), 4LL * count, none, data, b, count, MPI_INT, MPI_SUM);
        default:
            return collective(ORACLE_FORMS(Exscan, exscan), 4LL * count, none, data, b, count, MPI_INT, MPI_SUM);
    }
}

#if MPI_VERSION >= 4
/// With large counts, a few for all.
inline void with_large_counts(Run& run, Comm& comm, int which) {
    const int count = run.rng.below(100);
    if (!comm.has_me()) return;
    void* const a = run.buffer();
    void* const b = run.buffer();
    const About about{"", comm.label, 4LL * count, none, unsaid, ++comm.collectives};
    const auto say = [&](const char* name, long long bytes, int root = none) {
        About own = about;
        own.function = name;
        own.bytes = bytes;
        own.peer = root;
        return own;
    };
    const auto p = comm.members.size();
    const std::vector<MPI_Count> each(p, count);
    std::vector<MPI_Aint> places;
    for (std::size_t r = 0; r < p; ++r) places.push_back(static_cast<MPI_Aint>(r) * count);
    const MPI_Count large = count;
    if (which == 0)
        made(run.account, say("MPI_Bcast_c", 4LL * count, 0), MPI_Bcast_c, a, large, MPI_INT, 0, comm.handle);
    else if (which == 1)
        made(run.account, say("MPI_Allreduce_c", 4LL * count), MPI_Allreduce_c, static_cast<const void*>(a), b, large,
             MPI_INT, MPI_SUM, comm.handle);
    else {
        count_targets(comm, {Targets::exchange, std::vector<long long>(p, 4LL * count)});
        made(run.account, say("MPI_Alltoallv_c", 4LL * count * static_cast<long long>(p)), MPI_Alltoallv_c,
             static_cast<const void*>(a), each.data(), const_cast<const MPI_Aint*>(places.data()), MPI_INT, b,
             each.data(), const_cast<const MPI_Aint*>(places.data()), MPI_INT, comm.handle);
    }
}
#endif

/// Any collective of one group.
inline void collective(Run& run) {
    Comm* const comm = run.any_intra();
    const Form form = any_form(run);
    switch (run.rng.below(8)) {
        case 0:
        case 1:
            return all_to_all(run, *comm, form, run.rng.below(3));
        case 2:
        case 3:
        case 4:
            return rooted(run, *comm, form, run.rng.below(6));
#if MPI_VERSION >= 4
        case 5:
            return with_large_counts(run, *comm, run.rng.below(3));
#endif
        default:
            return without_root(run, *comm, form, run.rng.below(8));
    }
}

/// Over the neighbours of a grid or a graph.
inline void over_neighbours(Run& run) {
    Comm* const comm = run.pick([](const Comm& one) { return one.shape != Shape::plain; });
    if (!comm) return;
    const Form form = has_nonblocking_neighbours ? any_form(run, has_persistent && !starts_once) : Form::blocking;
    const int which = run.rng.below(5);
    const int count = run.rng.below(50);
    if (!comm->has_me()) return;
    const std::size_t out_degree = comm->targets.size();
    const std::size_t in_degree = comm->sources.size();
    // A block's length is a function of both ends, which both know.
    const auto length = [&](int other) { return other == MPI_PROC_NULL ? 3 : (comm->rank + other) % 4 * count; };
    std::vector<int> to, from;
    for (const int other : comm->targets) to.push_back(length(other));
    for (const int other : comm->sources) from.push_back(length(other));
    void* const b = run.buffer();
    const void* const a = run.buffer();
    const Lists sending = lists(run, to, 4, MPI_INT);
    const Lists receiving = lists(run, from, 4, MPI_INT);
    const std::vector<int> equal(in_degree, count);
    const Lists blocks = lists(run, equal, 4, MPI_INT);
    const auto aints = [&](const int* at, std::size_t degree) {
        return const_cast<const MPI_Aint*>(run.list(std::vector<MPI_Aint>(at, at + degree)));
    };
    const auto* const counts = const_cast<const int*>(sending.counts);
    const auto* const places = const_cast<const int*>(sending.places);
    const auto* const from_counts = const_cast<const int*>(receiving.counts);
    const auto* const from_places = const_cast<const int*>(receiving.places);
    std::vector<long long> alike(out_degree, 4LL * count), own;
    long long all_alike = 0;
    long long all_own = 0;
    for (std::size_t i = 0; i < out_degree; ++i) {
        own.push_back(4LL * to[i]);
        if (comm->targets[i] == MPI_PROC_NULL) continue;
        all_alike += alike[i];
        all_own += own[i];
    }
    Collective same(run, *comm, form, {Targets::neighbours, alike});
    Collective different(run, *comm, form, {Targets::neighbours, own});
    switch (which) {
        case 0:
            return same(ORACLE_FORMS(Neighbor_allgather, neighbor_allgather), all_alike, none, a, count, MPI_INT, b,
                        count, MPI_INT);
        case 1:
            return same(ORACLE_FORMS(Neighbor_allgatherv, neighbor_allgatherv), all_alike, none, a, count, MPI_INT, b,
                        const_cast<const int*>(blocks.counts), const_cast<const int*>(blocks.places), MPI_INT);
        case 2:
            return same(ORACLE_FORMS(Neighbor_alltoall, neighbor_alltoall), all_alike, none, a, count, MPI_INT, b,
                        count, MPI_INT);
        case 3:
            return different(ORACLE_FORMS(Neighbor_alltoallv, neighbor_alltoallv), all_own, none, a, counts, places,
                             MPI_INT, b, from_counts, from_places, MPI_INT);
        default:
            return different(ORACLE_FORMS(Neighbor_alltoallw, neighbor_alltoallw), all_own, none, a, counts,
                             aints(sending.at_bytes, out_degree), const_cast<const MPI_Datatype*>(sending.types), b,
                             from_counts, aints(receiving.at_bytes, in_degree),
                             const_cast<const MPI_Datatype*>(receiving.types));
    }
}

/// From one group to the other.
inline void between_groups(Run& run) {
    Comm* const comm = run.pick([](const Comm& one) { return one.is_inter(); });
    if (!comm) return;
    const int which = run.rng.below(6);
    const int count = run.rng.below(50);
    const bool back = run.rng.one_in(2);
    const Form form = run.rng.one_in(2) ? Form::blocking : Form::nonblocking;
    const int first = run.rng.below(static_cast<int>(back ? comm->others.size() : comm->members.size()));
    const auto table = lengths(run, comm->members.size(), comm->others.size());
    const auto table_back = lengths(run, comm->others.size(), comm->members.size());
    if (!comm->has_me()) return;
    // The root's group, the root in it, and all of the other group.
    const bool in_root_group = comm->second == back;
    const bool is_root = in_root_group && comm->rank == first;
    const int root = !in_root_group ? first : is_root ? MPI_ROOT : MPI_PROC_NULL;
    const auto ranks = static_cast<long long>(comm->second ? comm->members.size() : comm->others.size());
    void* const a = run.buffer();
    void* const b = run.buffer();
    const void* const from = a;
    const long long bytes = 4LL * count;
    switch (which) {
        case 0:
            return Collective(run, *comm, form)(ORACLE_FORMS(Barrier, barrier), 0, none);
        case 1:
            return Collective(run, *comm, form)(ORACLE_FORMS(Bcast, bcast), is_root || !in_root_group ? bytes : 0,
                                                in_root_group ? none : first, a, count, MPI_INT, root);
        case 2:
            return Collective(run, *comm, form)(ORACLE_FORMS(Reduce, reduce), in_root_group ? 0 : bytes,
                                                in_root_group ? none : first, from, b, count, MPI_INT, MPI_SUM, root);
        case 3:
            return Collective(run, *comm, form)(ORACLE_FORMS(Allgather, allgather), bytes, none, from, count, MPI_INT,
                                                b, count, MPI_INT);
        case 4:
            return Collective(run, *comm, form,
                              {Targets::exchange, std::vector<long long>(static_cast<std::size_t>(ranks), bytes)})(
                ORACLE_FORMS(Alltoall, alltoall), bytes * ranks, none, from, count, MPI_INT, b, count, MPI_INT);
        default: {
            const auto me = static_cast<std::size_t>(comm->rank);
            const std::vector<int>& to = comm->second ? table_back[me] : table[me];
            std::vector<int> in;
            for (const auto& row : comm->second ? table : table_back) in.push_back(row[me]);
            const Lists sending = lists(run, to, 4, MPI_INT);
            const Lists receiving = lists(run, in, 4, MPI_INT);
            std::vector<long long> own;
            for (const int one : to) own.push_back(4LL * one);
            return Collective(run, *comm, form, {Targets::exchange, own})(
                ORACLE_FORMS(Alltoallv, alltoallv), 4 * sending.sum, none, from, const_cast<const int*>(sending.counts),
                const_cast<const int*>(sending.places), MPI_INT, b, const_cast<const int*>(receiving.counts),
                const_cast<const int*>(receiving.places), MPI_INT);
        }
    }
}

}  // namespace oracle
