// What ranks are busy with in a simulation: one thing at a time, the rest waits.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "palmette/model/flow/flow_steps.hpp"
#include "palmette/topology/costs.hpp"

namespace palmette::model {

/// Seconds that a rank is busy with a step: overheads of messages, bytes moved or combined at the rates of `memory`.
/// `costs`: between it and its partner, for steps that have one.
double busy_seconds(const FlowSteps::Step& step, const topology::MemoryCosts& memory,
                    const topology::LevelCosts* costs);

/// Work of each rank: what was ready first comes first, then in the order of the program.
class FlowWork {
  public:
    using Id = FlowSteps::Id;
    explicit FlowWork(std::size_t ranks) : ranks_(ranks) {}

    void add(std::int32_t rank, double now, Id id);
    /// What the rank does next, taken out; nothing while it is busy, or has nothing to do.
    std::optional<Id> take(std::int32_t rank);
    void begin(std::int32_t rank, double seconds);
    void end(std::int32_t rank) { of(rank).busy = false; }

    /// The rank that was busy longest, the first of several, and for how long.
    std::pair<std::int32_t, double> busiest() const;

  private:
    struct Rank {
        bool busy = false;
        double busy_s = 0;
        std::vector<std::pair<double, Id>> waiting;  ///< a heap
    };
    Rank& of(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    std::vector<Rank> ranks_;
};

}  // namespace palmette::model
