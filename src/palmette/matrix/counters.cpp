#include "palmette/matrix/counters.hpp"

#include <unordered_map>

namespace palmette::matrix {
namespace {

constinit thread_local bool inside = false;

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type) {
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    return count > 0 && size > 0 ? static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size) : 0;
}

int no_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}

/// Destinations of this rank in a neighbourhood collective, in the order of their blocks; MPI_PROC_NULL among them.
std::vector<int> destinations_of(MPI_Comm comm) {
    int kind = MPI_UNDEFINED;
    PMPI_Topo_test(comm, &kind);
    std::vector<int> found;
    if (kind == MPI_CART) {
        int dimensions = 0;
        PMPI_Cartdim_get(comm, &dimensions);
        for (int d = 0; d < dimensions; ++d) {
            int lower = MPI_PROC_NULL;
            int upper = MPI_PROC_NULL;
            PMPI_Cart_shift(comm, d, 1, &lower, &upper);
            found.insert(found.end(), {lower, upper});
        }
    } else if (kind == MPI_GRAPH) {
        int rank = 0;
        int count = 0;
        PMPI_Comm_rank(comm, &rank);
        PMPI_Graph_neighbors_count(comm, rank, &count);
        found.resize(static_cast<std::size_t>(count));
        PMPI_Graph_neighbors(comm, rank, count, found.data());
    } else if (kind == MPI_DIST_GRAPH) {
        int in = 0;
        int out = 0;
        int weighted = 0;
        PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
        std::vector<int> sources(static_cast<std::size_t>(in));
        std::vector<int> source_weights(sources.size());
        found.resize(static_cast<std::size_t>(out));
        std::vector<int> weights(found.size());
        PMPI_Dist_graph_neighbors(comm, in, sources.data(), source_weights.data(), out, found.data(), weights.data());
    }
    return found;
}

}  // namespace

/// Attached to a communicator as an attribute: the cells of its ranks that were sent to.
struct Counters::Peers {
    std::unordered_map<int, Cell*> cells;
    std::vector<Cell*> neighbours;  // null: none there
    bool neighbours_known = false;

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
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world_) == MPI_SUCCESS &&
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
    int between = 0;
    PMPI_Comm_test_inter(comm, &between);
    MPI_Group group = MPI_GROUP_NULL;
    if (between)
        PMPI_Comm_remote_group(comm, &group);
    else
        PMPI_Comm_group(comm, &group);
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

void Counters::add(const Sending& sending) {
    for (const auto& [cell, bytes] : sending) {
        cell->bytes += bytes;
        ++cell->messages;
    }
}

Sending Counters::to_neighbours(MPI_Comm comm, std::int64_t count, MPI_Datatype type) {
    Sending out;
    const std::uint64_t bytes = bytes_of(count, type);
    for (Cell* const cell : neighbours_of(comm))
        if (cell) out.emplace_back(cell, bytes);
    return out;
}

template <class Count>
Sending Counters::to_neighbours(MPI_Comm comm, const Count* counts, MPI_Datatype type) {
    Sending out;
    for (Cell* const cell : neighbours_of(comm)) {
        if (cell) out.emplace_back(cell, bytes_of(*counts, type));
        ++counts;
    }
    return out;
}

template <class Count>
Sending Counters::to_neighbours(MPI_Comm comm, const Count* counts, const MPI_Datatype* types) {
    Sending out;
    for (Cell* const cell : neighbours_of(comm)) {
        if (cell) out.emplace_back(cell, bytes_of(*counts, *types));
        ++counts;
        ++types;
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

void Counters::sent_to_neighbours(MPI_Comm comm, std::int64_t count, MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    add(to_neighbours(comm, count, type));
}

template <class Count>
void Counters::sent_to_neighbours(MPI_Comm comm, const Count* counts, MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    add(to_neighbours(comm, counts, type));
}

template <class Count>
void Counters::sent_to_neighbours(MPI_Comm comm, const Count* counts, const MPI_Datatype* types) {
    const std::lock_guard lock(mutex_);
    add(to_neighbours(comm, counts, types));
}

void Counters::keep(MPI_Request request, MPI_Comm comm, int dest, std::int64_t count, MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    if (Cell* const cell = cell_of(comm, dest)) persistent_[request] = {{cell, bytes_of(count, type)}};
}

void Counters::keep_neighbours(MPI_Request request, MPI_Comm comm, std::int64_t count, MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    persistent_[request] = to_neighbours(comm, count, type);
}

template <class Count>
void Counters::keep_neighbours(MPI_Request request, MPI_Comm comm, const Count* counts, MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    persistent_[request] = to_neighbours(comm, counts, type);
}

template <class Count>
void Counters::keep_neighbours(MPI_Request request, MPI_Comm comm, const Count* counts, const MPI_Datatype* types) {
    const std::lock_guard lock(mutex_);
    persistent_[request] = to_neighbours(comm, counts, types);
}

void Counters::started(MPI_Request request) {
    const std::lock_guard lock(mutex_);
    const auto found = persistent_.find(request);
    if (found != persistent_.end()) add(found->second);
}

void Counters::forget(MPI_Request request) {
    const std::lock_guard lock(mutex_);
    persistent_.erase(request);
}

// Counts are int, or MPI_Count in the forms with large counts.
#define PALMETTE_COUNTS(Count)                                                                  \
    template void Counters::sent_to_neighbours(MPI_Comm, const Count*, MPI_Datatype);           \
    template void Counters::sent_to_neighbours(MPI_Comm, const Count*, const MPI_Datatype*);    \
    template void Counters::keep_neighbours(MPI_Request, MPI_Comm, const Count*, MPI_Datatype); \
    template void Counters::keep_neighbours(MPI_Request, MPI_Comm, const Count*, const MPI_Datatype*);
PALMETTE_COUNTS(int)
PALMETTE_COUNTS(MPI_Count)
#undef PALMETTE_COUNTS

Outermost::Outermost() : entered_(Counters::any() && !inside), counts_(entered_ && Counters::instance().counting()) {
    if (entered_) inside = true;
}

Outermost::~Outermost() {
    if (entered_) inside = false;
}

}  // namespace palmette::matrix
