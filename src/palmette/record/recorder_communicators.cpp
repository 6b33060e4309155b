#include <unistd.h>

#include "palmette/base/hash.hpp"
#include "palmette/record/recorder.hpp"

namespace palmette::record {
namespace {

std::uint64_t hashed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    const std::array<std::uint64_t, 3> words{a, b, c};
    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, {reinterpret_cast<const char*>(words.data()), sizeof words});
    return hash;
}

/// The rank in MPI_COMM_WORLD of a communicator's rank 0, which tells the parts of a split apart. Needs a world.
int leader_of(MPI_Comm comm) {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    int leader = -1;
    const int first = 0;
    if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS) return -1;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
        PMPI_Group_translate_ranks(group, 1, &first, world, &leader);
        PMPI_Group_free(&world);
    }
    PMPI_Group_free(&group);
    return leader;
}

}  // namespace

std::uint64_t Recorder::own_id(int rank) { return hashed(2, static_cast<std::uint64_t>(rank), 0); }

std::uint64_t Recorder::leader(MPI_Comm comm) const {
    return has_world_ ? static_cast<std::uint64_t>(leader_of(comm)) : 0;
}

std::uint16_t Recorder::add_communicator(MPI_Comm comm, std::uint64_t id) {
    const std::uint32_t index = section_->communicators.count.load(std::memory_order_relaxed);
    if (index >= section_->communicators.capacity) {
        communicators_[trace::handle_word(comm)] = {};  // so that it isn't asked about at each call
        return 0;
    }
    auto& entry = table<trace::CommunicatorEntry>(section_->communicators)[index];
    entry.id = id;
    // Of an inter-communicator peers and roots are of the other group: nobody is named by them.
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    entry.rank = -1;
    entry.size = 0;
    if (inter == 0) {
        PMPI_Comm_rank(comm, &entry.rank);
        PMPI_Comm_size(comm, &entry.size);
    }
    section_->communicators.count.store(index + 1, std::memory_order_release);
    communicators_[trace::handle_word(comm)] = {static_cast<std::uint16_t>(index), 0};
    generation_.fetch_add(1, std::memory_order_acq_rel);
    return static_cast<std::uint16_t>(index);
}

std::uint16_t Recorder::find_communicator(MPI_Comm comm, ThreadState& thread) {
    if (comm == MPI_COMM_NULL || !(has_world_ || sessions_.load() > 0)) return 0;
    const std::lock_guard lock(mutex_);
    const std::uint64_t generation = generation_.load(std::memory_order_acquire);
    const auto known = communicators_.find(trace::handle_word(comm));
    std::uint16_t index = 0;
    if (known != communicators_.end()) {
        index = known->second.index;
    } else {
        // Made in a way that wasn't seen; a handle that is none is the MPI's to complain about.
        int inter = 0;
        if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) return 0;
        index = add_communicator(comm, hashed(3, leader(comm), 0));
        return index;
    }
    thread.last_comm = comm;
    thread.last_communicator = index;
    thread.last_generation = generation;
    return index;
}

void Recorder::made_communicator(MPI_Comm parent, MPI_Comm made, std::optional<int> tag_of_group) {
    const std::lock_guard lock(mutex_);
    std::uint64_t parent_id = 0;
    std::uint64_t order = 0;
    if (const auto known = communicators_.find(trace::handle_word(parent)); known != communicators_.end()) {
        parent_id = table<trace::CommunicatorEntry>(section_->communicators)[known->second.index].id;
        // Only some ranks of the parent make a group's communicator: it has no place in the order of the others.
        if (!tag_of_group) order = ++known->second.children;
    }
    if (made == MPI_COMM_NULL) return;
    if (tag_of_group) {
        int size = 0;
        PMPI_Comm_size(made, &size);
        order = hashed(5, static_cast<std::uint64_t>(*tag_of_group), static_cast<std::uint64_t>(size));
    }
    // Without a world nothing tells alike on all ranks which communicator it is: it is this process's alone.
    if (!has_world_) parent_id = hashed(6, static_cast<std::uint64_t>(getpid()), section_->communicators.count.load());
    add_communicator(made, hashed(parent_id, order, leader(made)));
}

void Recorder::will_make_communicator(MPI_Comm parent, MPI_Comm made) {
    const std::lock_guard lock(mutex_);
    const auto known = communicators_.find(trace::handle_word(parent));
    const std::uint32_t index = section_->communicators.count.load(std::memory_order_relaxed);
    if (known == communicators_.end() || index >= section_->communicators.capacity) return;
    auto* const entries = table<trace::CommunicatorEntry>(section_->communicators);
    const trace::CommunicatorEntry& like = entries[known->second.index];
    entries[index].id = hashed(like.id, ++known->second.children, leader(parent));
    entries[index].rank = like.rank;
    entries[index].size = like.size;
    section_->communicators.count.store(index + 1, std::memory_order_release);
    communicators_[trace::handle_word(made)] = {static_cast<std::uint16_t>(index), 0};
    generation_.fetch_add(1, std::memory_order_acq_rel);
}

void Recorder::freed_communicator(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    communicators_.erase(trace::handle_word(comm));
    generation_.fetch_add(1, std::memory_order_acq_rel);
}

std::uint64_t Recorder::next_instance(std::uint16_t communicator) {
    auto& entry = table<trace::CommunicatorEntry>(section_->communicators)[communicator];
    add(entry.collectives, std::uint64_t{1});
    return entry.collectives.load(std::memory_order_relaxed);
}

}  // namespace palmette::record
