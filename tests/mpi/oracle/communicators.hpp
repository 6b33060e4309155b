// Communicators: made in every way from each other, some with a topology, some between groups, and freed.
#pragma once

#include "completing.hpp"

namespace oracle {

/// A call that makes a communicator of `parent`.
template <class Function, class... Arguments>
void makes(Run& run, const char* name, int parent, Comm& into, Function function, Arguments... arguments) {
    MPI_Comm* const made_into = &into.handle;
    made(run.account, {name, parent}, function, arguments..., made_into);
}

inline int world_of(const Comm& comm, int rank) { return comm.members[static_cast<std::size_t>(rank)]; }

/// A communicator for each color, of those with the same one.
inline void split(Run& run, Comm& parent) {
    const int colors = run.rng.between(1, 3);
    const bool reversed = run.rng.one_in(2);
    std::vector<int> color;
    for (int r = 0; r < parent.size(); ++r) color.push_back(run.rng.one_in(8) ? MPI_UNDEFINED : run.rng.below(colors));
    MPI_Comm mine = MPI_COMM_NULL;
    if (parent.has_me())
        made(run.account, {"MPI_Comm_split", parent.label}, MPI_Comm_split, parent.handle,
             color[static_cast<std::size_t>(parent.rank)], reversed ? -parent.rank : parent.rank, &mine);
    for (int c = 0; c < colors; ++c) {
        std::vector<int> members;
        for (int r = 0; r < parent.size(); ++r)
            if (color[static_cast<std::size_t>(r)] == c) members.push_back(world_of(parent, r));
        if (members.empty()) continue;
        if (reversed) std::reverse(members.begin(), members.end());
        Comm& comm = run.add(members);
        if (comm.has_me()) comm.handle = mine;
    }
}

inline void duplicate(Run& run, Comm& parent) {
    const int how = run.rng.below(3);
    Comm& comm = run.add(parent.members, parent.others);
    if (!parent.has_me()) return;
    comm.is_wild = false;
    if (how == 0) return makes(run, "MPI_Comm_dup", parent.label, comm, MPI_Comm_dup, parent.handle);
    if (how == 1)
        return makes(run, "MPI_Comm_dup_with_info", parent.label, comm, MPI_Comm_dup_with_info, parent.handle,
                     MPI_INFO_NULL);
    MPI_Request request = MPI_REQUEST_NULL;
    made(run.account, {"MPI_Comm_idup", parent.label}, MPI_Comm_idup, parent.handle, &comm.handle, &request);
    run.starts(request, {"MPI_Comm_idup", parent.label});
    complete_all(run);
}

/// Makes a communicator of some of a communicator's ranks, which alone call where `alone`.
inline void of_group(Run& run, Comm& parent) {
    const bool alone = run.rng.one_in(2);
    const int tag = run.rng.below(3);
    std::vector<int> ranks, members;
    for (int r = 0; r < parent.size(); ++r)
        if (!run.rng.one_in(3)) {
            ranks.push_back(r);
            members.push_back(world_of(parent, r));
        }
    if (ranks.empty()) return;
    Comm& comm = run.add(members);
    if (!parent.has_me() || (alone && !comm.has_me())) return;
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    PMPI_Comm_group(parent.handle, &all);
    PMPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    if (alone)
        makes(run, "MPI_Comm_create_group", parent.label, comm, MPI_Comm_create_group, parent.handle, some, tag);
    else
        makes(run, "MPI_Comm_create", parent.label, comm, MPI_Comm_create, parent.handle, some);
    PMPI_Group_free(&some);
    PMPI_Group_free(&all);
}

/// A grid of as many ranks as fill it.
inline void grid(Run& run, Comm& parent) {
    const int rows = parent.size() >= 4 && run.rng.one_in(2) ? 2 : 1;
    const int extents[2] = {parent.size() / rows, rows};
    const int periodic[2] = {run.rng.below(2), run.rng.below(2)};
    std::vector<int> members(parent.members.begin(), parent.members.begin() + std::ptrdiff_t{extents[0]} * rows);
    Comm& comm = run.add(members);
    comm.shape = Shape::cart;
    if (!parent.has_me()) return;
    const int* const sizes = extents;
    const int* const wraps = periodic;
    makes(run, "MPI_Cart_create", parent.label, comm, MPI_Cart_create, parent.handle, 2, sizes, wraps, 0);
    if (!comm.has_me()) return;
    const int at[2] = {comm.rank / rows, comm.rank % rows};
    for (int d = 0; d < 2; ++d)
        for (const int step : {-1, 1}) {
            int there[2] = {at[0], at[1]};
            there[d] += step;
            if (periodic[d]) there[d] = (there[d] + extents[d]) % extents[d];
            const bool is_one = there[d] >= 0 && there[d] < extents[d];
            comm.targets.push_back(is_one ? there[0] * rows + there[1] : MPI_PROC_NULL);
        }
    comm.sources = comm.targets;
}

/// Any edges, several between the same ranks and to oneself among them.
inline void graph(Run& run, Comm& parent) {
    const bool adjacent = run.rng.one_in(2);
    const int edges = run.rng.below(2 * parent.size() + 1);
    Comm& comm = run.add(parent.members);
    comm.shape = Shape::graph;
    std::vector<std::pair<int, int>> all;
    for (int e = 0; e < edges; ++e) {
        const std::pair<int, int> edge{run.rng.below(parent.size()), run.rng.below(parent.size())};
        // The order of several edges between the same ranks isn't fixed.
        if (std::find(all.begin(), all.end(), edge) == all.end()) all.push_back(edge);
    }
    if (!parent.has_me()) return;
    std::vector<int> sources, targets;
    for (const auto& [from, to] : all) {
        if (to == parent.rank) sources.push_back(from);
        if (from == parent.rank) targets.push_back(to);
    }
    const auto* const from = const_cast<const int*>(run.list(sources));
    const auto* const to = const_cast<const int*>(run.list(targets));
    if (adjacent) {
        makes(run, "MPI_Dist_graph_create_adjacent", parent.label, comm, MPI_Dist_graph_create_adjacent, parent.handle,
              static_cast<int>(sources.size()), from, static_cast<const int*>(MPI_UNWEIGHTED),
              static_cast<int>(targets.size()), to, static_cast<const int*>(MPI_UNWEIGHTED), MPI_INFO_NULL, 0);
    } else {
        const int* const node = run.list(std::vector<int>{parent.rank});
        const int* const degree = run.list(std::vector<int>{static_cast<int>(targets.size())});
        makes(run, "MPI_Dist_graph_create", parent.label, comm, MPI_Dist_graph_create, parent.handle, 1, node, degree,
              to, static_cast<const int*>(MPI_UNWEIGHTED), MPI_INFO_NULL, 0);
    }
    comm.sources.resize(sources.size());
    comm.targets.resize(targets.size());
    // In the order that the MPI chose.
    PMPI_Dist_graph_neighbors(comm.handle, static_cast<int>(sources.size()), comm.sources.data(), MPI_UNWEIGHTED,
                              static_cast<int>(targets.size()), comm.targets.data(), MPI_UNWEIGHTED);
}

/// Between two halves of a communicator, and maybe one of both.
inline void between(Run& run, Comm& parent) {
    if (parent.size() < 2) return;
    const int first = run.rng.between(1, parent.size() - 1);
    const bool merges = run.rng.one_in(2);
    const int tag = run.own_tag();
    std::vector<int> low(parent.members.begin(), parent.members.begin() + first);
    std::vector<int> high(parent.members.begin() + first, parent.members.end());
    Comm& lower = run.add(low);
    Comm& higher = run.add(high);
    Comm& between_them = run.add(low, high);
    Comm* const both = merges ? &run.add(parent.members) : nullptr;
    if (!parent.has_me()) return;
    const bool is_low = parent.rank < first;
    Comm& half = is_low ? lower : higher;
    makes(run, "MPI_Comm_split", parent.label, half, MPI_Comm_split, parent.handle, is_low ? 0 : 1, parent.rank);
    makes(run, "MPI_Intercomm_create", half.label, between_them, MPI_Intercomm_create, half.handle, 0, parent.handle,
          is_low ? first : 0, tag);
    if (both)
        makes(run, "MPI_Intercomm_merge", between_them.label, *both, MPI_Intercomm_merge, between_them.handle,
              is_low ? 0 : 1);
}

inline void free_one(Run& run, std::list<Comm>::iterator which) {
    if (which->has_me()) {
        const About about{"MPI_Comm_free", none};
        made(run.account, about, MPI_Comm_free, &which->handle);
    }
    run.comms.erase(which);
}

inline void make_communicator(Run& run) {
    Comm* const parent = run.any_intra();
    switch (run.rng.below(7)) {
        case 0:
        case 1:
            return split(run, *parent);
        case 2:
            return duplicate(run, run.any_comm());
        case 3:
            return of_group(run, *parent);
        case 4:
            return grid(run, *parent);
        case 5:
            return graph(run, *parent);
        default:
            return between(run, *parent);
    }
}

/// Any but the first, which the others come from. Messages on it may be outstanding.
inline void free_communicator(Run& run) {
    if (run.comms.size() < 3) return;
    auto which = std::next(run.comms.begin(), run.rng.between(1, static_cast<int>(run.comms.size()) - 1));
    if (which->is_wild) return;
    if (run.rng.one_in(2)) complete_all(run);
    free_one(run, which);
}

/// Hundreds one after the other, each used once.
inline void many_communicators(Run& run) {
    Comm* const parent = run.any_intra();
    const int count = run.rng.between(20, 60);
    for (int i = 0; i < count; ++i) {
        Comm& comm = run.add(parent->members);
        if (!parent->has_me()) {
            run.comms.pop_back();
            continue;
        }
        makes(run, "MPI_Comm_dup", parent->label, comm, MPI_Comm_dup, parent->handle);
        if (i % 8 == 0)
            made(run.account, {"MPI_Barrier", comm.label, 0, none, unsaid, ++comm.collectives}, MPI_Barrier,
                 comm.handle);
        free_one(run, std::prev(run.comms.end()));
    }
}

}  // namespace oracle
