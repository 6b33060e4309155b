#include "palmette/runtime/reorder/reordering.hpp"

#include <algorithm>

#include "palmette/runtime/serve/background.hpp"

namespace palmette::runtime {
namespace {

/// Whether some ranks are nearer to each other than others.
bool has_hierarchy(const topology::Job& job) {
    return std::any_of(job.levels().begin(), job.levels().end(), [](const topology::JobLevel& level) {
        return level.groups.count() > 1 && !level.groups.all_single();
    });
}

}  // namespace

bool Reordering::find_job(Refusal& refusal) {
    Process& process = Process::instance();
    PMPI_Comm_rank(comm_, &rank_);
    job_ = process.job_of(comm_, refusal);
    if (job_ || process.world()) return job_.has_value();
    // A session's communicator is known where its collectives have been served.
    if (const Communicator* state = process.communicator(comm_, refusal, Process::Making::never)) job_ = state->job();
    return job_.has_value();
}

bool Reordering::open(int reorder) {
    if (comm_ == MPI_COMM_NULL) return false;
    if (!reorder) {
        keep_order("the program asked for no reordering");
        return false;
    }
    if (!Process::instance().settings().reorder) {
        keep_order("PALMETTE_REORDER=off");
        return false;
    }
    before_blocking(comm_);
    Refusal refusal = Refusal::no_state;
    if (!find_job(refusal)) {
        keep_order(sentence_of(refusal));
        return false;
    }
    if (!has_hierarchy(job())) {
        keep_order("no known topology level distinguishes the ranks");
        return false;
    }
    return true;
}

bool Reordering::open_to_map() {
    Refusal refusal = Refusal::no_state;
    return comm_ != MPI_COMM_NULL && Process::instance().settings().reorder && find_job(refusal) &&
           has_hierarchy(job());
}

std::nullopt_t Reordering::keep_order(const std::string& reason) {
    if (rank_ < 0) PMPI_Comm_rank(comm_, &rank_);
    if (rank_ == 0) Process::instance().report().topologies().kept_order(constructor_, reason, grid);
    return std::nullopt;
}

topology::NodePositions Reordering::in_order(std::int32_t nodes) const {
    topology::NodePositions out;
    for (int node = 0; node < nodes; ++node) out.push_back(job().position_of(topology::Rank{node}).value);
    return out;
}

std::optional<topology::NodePositions> Reordering::best(const topology::Graph& graph,
                                                        const std::vector<topology::NodePositions>& candidates) {
    return best(graph.size(), candidates, [&](const topology::NodePositions& positions) {
        return topology::traffic_of(job(), graph, positions);
    });
}

std::optional<topology::NodePositions> Reordering::best(std::int32_t nodes,
                                                        const std::vector<topology::NodePositions>& candidates,
                                                        const Cost& cost) {
    const topology::MappedTraffic unmapped = cost(in_order(nodes));
    topology::MappedTraffic least = unmapped;
    const topology::NodePositions* found = nullptr;
    for (const auto& candidate : candidates) {
        const topology::MappedTraffic traffic = cost(candidate);
        if (!topology::is_better(traffic, least)) continue;
        least = traffic;
        found = &candidate;
    }
    before = unmapped.busiest;
    after = least.busiest;
    return found ? std::optional(*found) : std::nullopt;
}

int Reordering::number_with(const topology::NodePositions& positions) const {
    const std::int32_t mine = position().value;
    // Those past the last node keep the order of positions.
    if (mine >= static_cast<std::int32_t>(positions.size())) return mine;
    return static_cast<int>(std::find(positions.begin(), positions.end(), mine) - positions.begin());
}

void Reordering::Crossings::add(topology::Position from, topology::Position to, double weight) {
    for (std::size_t level = of_level_.size(); level-- > 0;) {
        const topology::Partition& groups = job_.levels()[level].groups;
        if (groups.group_of(from.value) == groups.group_of(to.value)) return;
        of_level_[level] += weight;
    }
}

bool Reordering::reduces_crossings(const Crossings& before_all, const Crossings& after_all) {
    std::vector<double> mine = before_all.of_level_;
    mine.insert(mine.end(), after_all.of_level_.begin(), after_all.of_level_.end());
    std::vector<double> all(mine.size());
    if (PMPI_Allreduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_SUM, comm_) !=
        MPI_SUCCESS)
        return false;
    return less(all);
}

bool Reordering::reduces_total_crossings(const Crossings& before_all, const Crossings& after_all) {
    std::vector<double> all = before_all.of_level_;
    all.insert(all.end(), after_all.of_level_.begin(), after_all.of_level_.end());
    return less(all);
}

bool Reordering::less(const std::vector<double>& all) {
    const std::size_t levels = job().levels().size();
    before = after = 0;
    for (std::size_t l = 0; l < levels; ++l) {
        const topology::JobLevel& level = job().levels()[l];
        double capacity = 0;
        for (std::int32_t g = 0; g < level.groups.count(); ++g) capacity += level.free_bytes_per_s(g);
        if (capacity <= 0) capacity = level.groups.count();
        before = std::max(before, all[l] / capacity);
        after = std::max(after, all[levels + l] / capacity);
        if (level.name == "node") break;
    }
    return after < before * (1 - 1e-6);
}

MPI_Comm Reordering::renumbered(int number, std::int64_t nodes, int& code) {
    MPI_Comm out = MPI_COMM_NULL;
    // Those without a node are left out here: of a communicator that MPICH 5 shortens to a grid, MPI_Comm_group still
    // gives all.
    code = PMPI_Comm_split(comm_, number < nodes ? 0 : MPI_UNDEFINED, number, &out);
    if (code != MPI_SUCCESS || out == MPI_COMM_NULL) return MPI_COMM_NULL;
    return out;
}

int Reordering::finish(MPI_Comm renumbered, int code) {
    int number = -1;
    PMPI_Comm_rank(renumbered, &number);
    // Rank 0 of the old communicator may be left out.
    if (code == MPI_SUCCESS && number == 0)
        Process::instance().report().topologies().reordered(constructor_, before, after, grid);
    PMPI_Comm_free(&renumbered);
    return code;
}

}  // namespace palmette::runtime
