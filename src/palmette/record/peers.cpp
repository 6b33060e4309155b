#include "palmette/record/peers.hpp"

#include <algorithm>
#include <numeric>

#include "palmette/record/inter.hpp"
#include "palmette/trace/served.hpp"

namespace palmette::record {

std::vector<int> members_of(MPI_Comm comm, bool remote) {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    std::vector<int> found;
    if ((remote ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group)) != MPI_SUCCESS) return found;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
        // MPICH 5.0.2 gives a Cartesian communicator of fewer ranks its parent's group.
        int size = 0;
        remote ? PMPI_Comm_remote_size(comm, &size) : PMPI_Comm_size(comm, &size);
        std::vector<int> ranks(static_cast<std::size_t>(size));
        std::iota(ranks.begin(), ranks.end(), 0);
        found.resize(ranks.size(), -1);
        PMPI_Group_translate_ranks(group, size, ranks.data(), world, found.data());
        PMPI_Group_free(&world);
    }
    PMPI_Group_free(&group);
    return found;
}

void PeerTable::attach(trace::SectionHeader& section) {
    section_ = &section;
    entries_ = trace::entries<trace::PeerEntry>(section, section.peers);
    entries_[0].rank = -1;
    entries_[1].rank = -2;
    section.peers.count.store(2);
}

void PeerTable::know_world() {
    PMPI_Comm_group(MPI_COMM_WORLD, &world_);
    PMPI_Group_rank(world_, &own_rank_);
    PMPI_Group_size(world_, &world_size_);
}

trace::PeerEntry* PeerTable::of_world(int rank) {
    if (rank < 0) return entries_;
    trace::PeerEntry*& entry = by_world_rank_[rank];
    if (entry) return entry;
    const std::uint32_t index = section_->peers.count.load(std::memory_order_relaxed);
    if (index >= section_->peers.capacity) return entry = entries_ + 1;
    entry = entries_ + index;
    entry->rank = rank;
    section_->peers.count.store(index + 1, std::memory_order_release);
    return entry;
}

trace::PeerEntry* PeerTable::find(MPI_Comm comm, int dest) {
    if (dest < 0) return nullptr;
    if (comm == MPI_COMM_WORLD) return dest < world_size_ ? of_world(dest) : nullptr;
    trace::PeerEntry*& entry = communicators_[trace::handle_word(comm)].by_rank[dest];
    if (entry) return entry;
    MPI_Group group = MPI_GROUP_NULL;
    int size = 0;
    int rank = -1;
    if ((is_inter(comm) ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group)) != MPI_SUCCESS)
        return nullptr;
    PMPI_Group_size(group, &size);
    if (dest < size && world_ != MPI_GROUP_NULL) PMPI_Group_translate_ranks(group, 1, &dest, world_, &rank);
    PMPI_Group_free(&group);
    return dest < size ? entry = of_world(rank) : nullptr;
}

trace::PeerEntry* PeerTable::at(MPI_Comm comm, int dest) {
    const std::lock_guard lock(mutex_);
    return find(comm, dest);
}

const std::vector<trace::PeerEntry*>& PeerTable::neighbours(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    auto& known = communicators_[trace::handle_word(comm)].neighbours;
    if (!known) {
        std::vector<trace::PeerEntry*> found;
        for (const int dest : destinations_of(comm)) found.push_back(find(comm, dest));
        known = std::move(found);
    }
    return *known;
}

const PeerTable::Members& PeerTable::members_on(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    auto& known = communicators_[trace::handle_word(comm)].members;
    if (known) return *known;
    const std::vector<int> ranks = members_of(comm, is_inter(comm));
    Members& made = known.emplace();
    for (const int rank : ranks) made.entries.push_back(rank == own_rank_ ? nullptr : of_world(rank));
    made.are_all_of_world = ranks.size() == static_cast<std::size_t>(world_size_) &&
                            std::ranges::none_of(ranks, [](int rank) { return rank < 0; });
    return made;
}

void PeerTable::forget(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    communicators_.erase(trace::handle_word(comm));
}

}  // namespace palmette::record
