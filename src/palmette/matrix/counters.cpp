#include "palmette/matrix/counters.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace palmette::matrix {
namespace {

constinit thread_local base::OuterCalls outer_calls;

/// Whose ranks a communicator's destinations are. The caller frees it.
MPI_Group destinations_group(MPI_Comm comm) {
    int between = 0;
    MPI_Group group = MPI_GROUP_NULL;
    PMPI_Comm_test_inter(comm, &between);
    if (between)
        PMPI_Comm_remote_group(comm, &group);
    else
        PMPI_Comm_group(comm, &group);
    return group;
}

int no_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}

}  // namespace

/// Attached to a communicator as an attribute: the cells of its ranks that were sent to.
struct Counters::Peers {
    std::unordered_map<int, Cell*> cells;
    std::vector<Cell*> neighbours;  // null: none there
    bool neighbours_known = false;
    std::vector<int> members;  // the world ranks of all that an exchange goes to; MPI_UNDEFINED: outside
    bool members_known = false;
    bool all_of_world = false;  // they are all ranks of MPI_COMM_WORLD, in any order

    static int drop(MPI_Comm, int, void* value, void*) {
        delete static_cast<Peers*>(value);
        return MPI_SUCCESS;
    }
};

Counters& Counters::instance() {
    // Never destroyed: the MPI may free communicators later than static objects end.
    static auto* const made = new Counters;
    return *made;
}

void Counters::start() {
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world_) == MPI_SUCCESS && PMPI_Group_rank(world_, &own_rank_) == MPI_SUCCESS &&
        PMPI_Comm_create_keyval(no_copy, Peers::drop, &keyval_, nullptr) == MPI_SUCCESS)
        any_.store(true, std::memory_order_release), counting_.store(true, std::memory_order_release);
}

Counters::Peers* Counters::peers_of(MPI_Comm comm) {
    void* value = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(comm, keyval_, &value, &found);
    if (found) return static_cast<Peers*>(value);
    auto* const made = new Peers;
    PMPI_Comm_set_attr(comm, keyval_, made);
    return made;
}

Cell* Counters::cell_of(MPI_Comm comm, int dest) {
    if (dest == MPI_PROC_NULL) return nullptr;
    if (comm == MPI_COMM_WORLD) return &by_world_rank_[dest];
    Cell*& cell = peers_of(comm)->cells[dest];
    if (cell) return cell;
    MPI_Group group = destinations_group(comm);
    int rank = MPI_UNDEFINED;
    PMPI_Group_translate_ranks(group, 1, &dest, world_, &rank);
    PMPI_Group_free(&group);
    cell = rank == MPI_UNDEFINED ? &outside_ : &by_world_rank_[rank];
    return cell;
}

const std::vector<Cell*>& Counters::neighbours_of(MPI_Comm comm) {
    Peers* const peers = peers_of(comm);
    if (!peers->neighbours_known) {
        for (const int dest : destinations_of(comm)) peers->neighbours.push_back(cell_of(comm, dest));
        peers->neighbours_known = true;
    }
    return peers->neighbours;
}

const Counters::Peers& Counters::members_of(MPI_Comm comm) {
    Peers* const peers = peers_of(comm);
    if (peers->members_known) return *peers;
    MPI_Group group = destinations_group(comm);
    // MPICH 5.0.2 gives a Cartesian communicator of fewer ranks its parent's group.
    int size = 0, inter = 0, world_size = 0;
    PMPI_Comm_test_inter(comm, &inter);
    if (inter != 0)
        PMPI_Comm_remote_size(comm, &size);
    else
        PMPI_Comm_size(comm, &size);
    PMPI_Group_size(world_, &world_size);
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    peers->members.resize(ranks.size(), MPI_UNDEFINED);
    PMPI_Group_translate_ranks(group, size, ranks.data(), world_, peers->members.data());
    PMPI_Group_free(&group);
    peers->all_of_world = size == world_size && std::ranges::count(peers->members, MPI_UNDEFINED) == 0;
    peers->members_known = true;
    return *peers;
}

void Counters::add(const Sending& sending) {
    for (const auto& [cell, bytes] : sending) {
        cell->bytes += bytes;
        ++cell->messages;
    }
}

Sending Counters::to_neighbours(MPI_Comm comm, const Blocks& blocks) {
    Sending out;
    std::size_t block = 0;
    for (Cell* const cell : neighbours_of(comm)) {
        if (cell) out.emplace_back(cell, blocks.bytes(block));
        ++block;
    }
    return out;
}

Sending Counters::to_members(MPI_Comm comm, const Blocks& blocks) {
    Sending out;
    // Needs no list of members.
    if (blocks.alike() && comm == MPI_COMM_WORLD) return out;
    const Peers& peers = members_of(comm);
    if (blocks.alike() && peers.all_of_world) return out;
    for (std::size_t i = 0; i < peers.members.size(); ++i) {
        const int rank = peers.members[i];
        const std::uint64_t bytes = rank == own_rank_ ? 0 : blocks.bytes(i);
        if (bytes > 0) out.emplace_back(rank == MPI_UNDEFINED ? &outside_ : &exchanged_[rank], bytes);
    }
    return out;
}

void Counters::sent(MPI_Comm comm, int dest, std::int64_t count, MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    Cell* const cell = cell_of(comm, dest);
    if (!cell) return;
    cell->bytes += bytes_of(count, type);
    ++cell->messages;
}

void Counters::sent_to_neighbours(MPI_Comm comm, const Blocks& blocks) {
    const std::lock_guard lock(mutex_);
    add(to_neighbours(comm, blocks));
}

void Counters::exchanged(MPI_Comm comm, const Blocks& blocks) {
    const std::lock_guard lock(mutex_);
    add(to_members(comm, blocks));
}

void Counters::keep(MPI_Request request, MPI_Comm comm, int dest, std::int64_t count, MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    if (Cell* const cell = cell_of(comm, dest)) persistent_[request] = {{cell, bytes_of(count, type)}};
}

void Counters::keep_neighbours(MPI_Request request, MPI_Comm comm, const Blocks& blocks) {
    const std::lock_guard lock(mutex_);
    persistent_[request] = to_neighbours(comm, blocks);
}

void Counters::keep_exchange(MPI_Request request, MPI_Comm comm, const Blocks& blocks) {
    const std::lock_guard lock(mutex_);
    persistent_[request] = to_members(comm, blocks);
}

void Counters::started(MPI_Request before, MPI_Request request) {
    const std::lock_guard lock(mutex_);
    auto found = persistent_.find(before);
    if (found == persistent_.end()) return;
    add(found->second);
    if (before == request) return;
    auto node = persistent_.extract(found);
    node.key() = request;
    persistent_.insert(std::move(node));
}

void Counters::forget(MPI_Request request) {
    const std::lock_guard lock(mutex_);
    persistent_.erase(request);
}

Outermost::Outermost(const void* return_address, const void* frame)
    : place_(Counters::any() ? outer_calls.begin(return_address, frame) : base::OuterCalls::Place()),
      counts_(place_ && Counters::instance().counting()) {}

Outermost::~Outermost() {
    if (place_) outer_calls.end(place_);
}

}  // namespace palmette::matrix
