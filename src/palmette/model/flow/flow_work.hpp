// CPU time of ranks in a flow simulation: each rank executes one step at a time, others are queued.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "palmette/model/graph/step_graph.hpp"
#include "palmette/topology/costs.hpp"

namespace palmette::model {

/// CPU time of a step: overheads of messages and packing of their blocks, bytes copied or reduced at the rates of
/// `memory`. `costs`: between it and its partner, for steps that have one.
double busy_seconds(const GraphStep& step, const topology::MemoryCosts& memory, const topology::LevelCosts& costs);

/// Ready queue of each rank: ordered by ready time, then by program order.
class FlowWork {
  public:
    using Id = std::uint32_t;
    explicit FlowWork(std::size_t ranks) : ranks_(ranks) {}

    void add(std::uint32_t rank, double now, Id id);
    /// Dequeues the next step of the rank; nothing while it is busy or its queue is empty.
    std::optional<Id> take(std::uint32_t rank);
    void begin(std::uint32_t rank, double seconds);
    void end(std::uint32_t rank) { of(rank).busy = false; }
    /// A copy whose time isn't known when it begins.
    void begin_copy(std::uint32_t rank, double now) { of(rank).busy = true, of(rank).copying_since = now; }
    void end_copy(std::uint32_t rank, double now) { end(rank), of(rank).busy_s += now - of(rank).copying_since; }

    /// The rank with the most CPU time, the lowest of several, and that time.
    std::pair<std::int32_t, double> busiest() const;

  private:
    struct Rank {
        bool busy = false;
        double busy_s = 0, copying_since = 0;
        std::vector<std::pair<double, Id>> waiting;  ///< a heap
    };
    Rank& of(std::uint32_t rank) { return ranks_[rank]; }

    std::vector<Rank> ranks_;
};

}  // namespace palmette::model
