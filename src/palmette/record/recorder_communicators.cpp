#include <unistd.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "palmette/base/hash.hpp"
#include "palmette/record/inter.hpp"
#include "palmette/record/recorder.hpp"

namespace palmette::record {
namespace {

std::uint64_t hashed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    const std::array<std::uint64_t, 3> words{a, b, c};
    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, {reinterpret_cast<const char*>(words.data()), sizeof words});
    return hash;
}

/// The rank in MPI_COMM_WORLD of a communicator's rank 0, which tells the parts of a split apart; of an
/// inter-communicator the lower one of both groups', so that both sides say the same. Needs a world.
int leader_of(MPI_Comm comm) {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    int leader = -1;
    const int first = 0;
    if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS) return -1;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
        PMPI_Group_translate_ranks(group, 1, &first, world, &leader);
        if (is_inter(comm)) {
            MPI_Group remote = MPI_GROUP_NULL;
            int other = -1;
            PMPI_Comm_remote_group(comm, &remote);
            PMPI_Group_translate_ranks(remote, 1, &first, world, &other);
            PMPI_Group_free(&remote);
            leader = std::min(leader, other);
        }
        PMPI_Group_free(&world);
    }
    PMPI_Group_free(&group);
    return leader;
}

/// Who is in a communicator that has no place in the order of its parent's: the same on all of its ranks. O(ranks).
std::uint64_t hash_of_members(MPI_Comm comm) {
    std::vector<int> members = members_of(comm, false);
    if (is_inter(comm)) {
        std::vector<int> others = members_of(comm, true);
        if (others < members) std::swap(members, others);
        members.insert(members.end(), others.begin(), others.end());
    }
    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, {reinterpret_cast<const char*>(members.data()), members.size() * sizeof(int)});
    return hash;
}

/// How often this process has made such communicators by now: all that are in it have made as many. Under the
/// recorder's lock.
std::uint64_t next_alike(std::uint64_t key) {
    static auto* const made = new std::unordered_map<std::uint64_t, std::uint64_t>;
    return ++(*made)[key];
}

}  // namespace

std::uint64_t Recorder::own_id(int rank) { return hashed(2, static_cast<std::uint64_t>(rank), 0); }

std::uint64_t Recorder::leader(MPI_Comm comm) const {
    return has_world_ ? static_cast<std::uint64_t>(leader_of(comm)) : 0;
}

std::optional<std::uint16_t> Recorder::new_communicator() {
    const std::uint32_t index = section_->communicators.count.load(std::memory_order_relaxed);
    if (index < section_->communicators.capacity) return static_cast<std::uint16_t>(index);
    if (freed_communicators_.empty()) {
        section_->unnumbered_communicators.fetch_add(1, std::memory_order_relaxed);
        return std::nullopt;
    }
    const std::uint16_t freed = freed_communicators_.front();
    freed_communicators_.pop_front();
    auto& entry = table<trace::CommunicatorEntry>(section_->communicators)[freed];
    entry.collectives.store(0, std::memory_order_relaxed);
    entry.since_ticks.store(now(), std::memory_order_release);
    reuses_.store(true, std::memory_order_relaxed);
    return freed;
}

std::uint32_t Recorder::summed_if_new(std::uint32_t communicator) {
    const auto& entry = table<trace::CommunicatorEntry>(section_->communicators)[communicator];
    return entry.since_ticks.load(std::memory_order_relaxed) == 0 ? communicator : 0;
}

std::uint16_t Recorder::add_communicator(MPI_Comm comm, std::uint64_t id) {
    const std::optional<std::uint16_t> index = new_communicator();
    if (!index) {
        is_known_as(comm, 0, id);  // so that it isn't asked about at each call
        return 0;
    }
    auto& entry = table<trace::CommunicatorEntry>(section_->communicators)[*index];
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
    is_known_as(comm, *index, id);
    return *index;
}

void Recorder::is_known_as(MPI_Comm comm, std::uint16_t index, std::uint64_t id) {
    ++communicators_made_;
    trace::Shared<std::uint32_t>& count = section_->communicators.count;
    count.store(std::max(count.load(std::memory_order_relaxed), index + 1U), std::memory_order_release);
    communicators_[trace::handle_word(comm)] = {.index = index, .id = id, .children = 0};
    peers_.forget(comm);
    generation_.fetch_add(1, std::memory_order_acq_rel);
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
    // Not all ranks of the parent take part, or not all that take part have one parent, or there is none: what tells
    // such communicators alike on all of their ranks is who they are of, and how many there were before.
    const bool joins_two = made != MPI_COMM_NULL && parent != MPI_COMM_NULL && is_inter(made) && !is_inter(parent);
    const bool by_members = tag_of_group || parent == MPI_COMM_NULL || joins_two;
    if (const auto known = communicators_.find(trace::handle_word(parent)); known != communicators_.end()) {
        parent_id = known->second.id;
        if (!by_members) order = ++known->second.children;
    }
    if (made == MPI_COMM_NULL) return;
    if (by_members && has_world_) {
        if (joins_two) parent_id = 0;
        const std::uint64_t tag = tag_of_group ? static_cast<std::uint64_t>(*tag_of_group) : 0;
        const std::uint64_t key = hashed(5, parent_id, hashed(tag, hash_of_members(made), 0));
        order = hashed(key, next_alike(key), 0);
    }
    // Without a world nothing tells alike on all ranks which communicator it is: it is this process's alone.
    if (!has_world_) parent_id = hashed(6, static_cast<std::uint64_t>(getpid()), communicators_made_);
    add_communicator(made, hashed(parent_id, order, leader(made)));
}

void Recorder::will_make_communicator(MPI_Comm parent, MPI_Comm made) {
    const std::lock_guard lock(mutex_);
    const auto known = communicators_.find(trace::handle_word(parent));
    if (known == communicators_.end()) return;
    auto* const entries = table<trace::CommunicatorEntry>(section_->communicators);
    const trace::CommunicatorEntry& like = entries[known->second.index];
    const std::uint64_t id = hashed(known->second.id, ++known->second.children, leader(parent));
    const std::optional<std::uint16_t> index = new_communicator();
    if (!index) {
        is_known_as(made, 0, id);
        return;
    }
    entries[*index].id = id;
    entries[*index].rank = like.rank;
    entries[*index].size = like.size;
    is_known_as(made, *index, id);
}

void Recorder::freed_communicator(MPI_Comm comm) {
    peers_.forget(comm);
    const std::lock_guard lock(mutex_);
    const auto known = communicators_.find(trace::handle_word(comm));
    if (known == communicators_.end()) return;
    if (known->second.index != 0) freed_communicators_.push_back(known->second.index);
    communicators_.erase(known);
    generation_.fetch_add(1, std::memory_order_acq_rel);
}

bool Recorder::knows(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    return communicators_.contains(trace::handle_word(comm));
}

trace::PeerEntry* Recorder::find_peer(MPI_Comm comm, int dest, std::uint64_t key, ThreadState& thread) {
    trace::PeerEntry* const found = peers_.at(comm, dest);
    const std::uint64_t generation = generation_.load(std::memory_order_acquire);
    if (thread.sent_generation != generation) {
        thread.sent_to.fill({});
        thread.sent_generation = generation;
    }
    // Calls of several communicators have no communicator's own number.
    if (found && key >> 32U != 0) thread.sent_to[ThreadState::slot_of(key)] = {key, found};
    return found;
}

void Recorder::keep_matched(MPI_Message message, const MatchedMessage& what) {
    const std::lock_guard lock(mutex_);
    matched_[trace::handle_word(message)] = what;
}

std::optional<Recorder::MatchedMessage> Recorder::take_matched(MPI_Message message) {
    const std::lock_guard lock(mutex_);
    const auto found = matched_.find(trace::handle_word(message));
    if (found == matched_.end()) return std::nullopt;
    const MatchedMessage what = found->second;
    matched_.erase(found);
    return what;
}

void Recorder::keep_source(const trace::RequestEntry& request, const Source& source) {
    const std::lock_guard lock(mutex_);
    sources_[&request] = source;
}

std::optional<Recorder::Source> Recorder::take_source(const trace::RequestEntry& request) {
    const std::lock_guard lock(mutex_);
    const auto found = sources_.find(&request);
    if (found == sources_.end()) return std::nullopt;
    const Source source = found->second;
    sources_.erase(found);
    return source;
}

void Recorder::withdraw_message(const trace::RequestEntry& request) {
    if (request.maker == 0 || request.maker > section_->threads.count.load()) return;
    const trace::ThreadEntry& thread = table<trace::ThreadEntry>(section_->threads)[request.maker - 1];
    const std::uint64_t recorded = thread.recorded.load(std::memory_order_relaxed);
    const std::uint32_t since = static_cast<std::uint32_t>(recorded) - request.made_record;
    // None, or it is overwritten.
    if (since == 0 || since > thread.ring_capacity) return;
    trace::Record& record =
        table<trace::Record>(section_->ring)[thread.ring_first + (recorded - since) % thread.ring_capacity];
    if (record.function == request.function && record.is_request == 0) record.bytes_and_peer |= trace::no_peer;
}

void Recorder::withdraw_instance(std::uint16_t communicator) {
    auto& entry = table<trace::CommunicatorEntry>(section_->communicators)[communicator];
    add(entry.collectives, ~std::uint64_t{0});
}

std::uint64_t Recorder::next_instance(std::uint16_t communicator) {
    auto& entry = table<trace::CommunicatorEntry>(section_->communicators)[communicator];
    add(entry.collectives, std::uint64_t{1});
    return entry.collectives.load(std::memory_order_relaxed);
}

}  // namespace palmette::record
