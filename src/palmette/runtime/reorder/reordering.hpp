// Common part of the four topology constructors that reorder ranks.
#pragma once

#include <mpi.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "palmette/runtime/state/process.hpp"
#include "palmette/topology/mapping/graph_mapping.hpp"

namespace palmette::runtime {

/// One call that may reorder.
class Reordering {
  public:
    Reordering(Constructor constructor, MPI_Comm comm) : constructor_(constructor), comm_(comm) {}

    /// Where `reorder` is true. Local, with the same answer on all ranks. False: the MPI makes the communicator, which
    /// is counted.
    bool open(int reorder);
    /// `open` for MPI_Cart_map and MPI_Graph_map, which only query the rank's number and aren't counted.
    bool open_to_map();
    /// Records why ranks keep their order; always returns nothing.
    std::nullopt_t keep_order(const std::string& reason);

    const topology::Job& job() const { return *job_; }
    int rank() const { return rank_; }
    int size() const { return job_->size(); }
    topology::Position position() const { return job().position_of(topology::Rank{rank()}); }

    /// The load of the links under a mapping.
    using Cost = std::function<topology::MappedTraffic(const topology::NodePositions&)>;
    /// The best of some mappings of nodes, or nothing when none is better than the order of the ranks. Positions by
    /// node.
    std::optional<topology::NodePositions> best(std::int32_t nodes,
                                                const std::vector<topology::NodePositions>& candidates,
                                                const Cost& cost);
    /// The candidate with the fewest crossings where messages go along the edges of a graph.
    std::optional<topology::NodePositions> best(const topology::Graph& graph,
                                                const std::vector<topology::NodePositions>& candidates);
    /// The order of the ranks as positions by node.
    topology::NodePositions in_order(std::int32_t nodes) const;
    /// The number that this rank gets where nodes take the first positions.
    int number_with(const topology::NodePositions& positions) const;

    /// Crossings of each level by messages whose ends this rank knows.
    class Crossings {
      public:
        explicit Crossings(const topology::Job& job) : job_(job), of_level_(job.levels().size(), 0) {}
        void add(topology::Position from, topology::Position to, double weight);
        /// At one level alone.
        void add_at(std::size_t level, double weight) { of_level_[level] += weight; }

      private:
        friend class Reordering;
        const topology::Job& job_;
        std::vector<double> of_level_;
    };
    /// Collective: whether total traffic across the links is less after than before, by each rank's own edges.
    /// Approximates the busiest link where no rank knows all edges.
    bool reduces_crossings(const Crossings& before, const Crossings& after);
    /// Whether `after` crosses less in total than `before`, where this rank has added the edges of all ranks. Local.
    bool reduces_total_crossings(const Crossings& before, const Crossings& after);

    /// Collective: the communicator of `nodes` ranks in which this one has `number`. MPI_COMM_NULL for numbers beyond,
    /// and on an error, with its `code`.
    MPI_Comm renumbered(int number, std::int64_t nodes, int& code);
    /// After `renumbered`: reports the reordering where the MPI's `code` is a success, and frees `renumbered`.
    int finish(MPI_Comm renumbered, int code);

    /// The busiest link's time before and after, for the report.
    double before = 0, after = 0;
    /// Purpose of a grid's order, and the gain of the order for the other purpose; nothing: no grid.
    std::optional<GridOrder> grid;

  private:
    Constructor constructor_;
    MPI_Comm comm_;
    bool find_job(Refusal& refusal);
    bool less(const std::vector<double>& crossings);

    std::optional<topology::Job> job_;
    int rank_ = -1;
};

}  // namespace palmette::runtime
