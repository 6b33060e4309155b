// Lower bound on the time of irregular calls, from bytes across the machine's edges: each rank only knows its own
// messages, so they are summed up over ranks when the job ends.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "palmette/base/json.hpp"
#include "palmette/model/bound/own_messages.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::model {

/// Topology order of the world, rotated to begin with rank 0: in this order the ranks of a group are combined early in
/// a reduction.
class RoundOrder {
  public:
    /// `world` may be null, where the machine is unknown; then it is rank order.
    RoundOrder(const topology::Job* world, std::int32_t ranks) : world_(world), ranks_(ranks) {
        if (world) first_ = world->position_of({0}).value;
    }
    std::int32_t place_of(std::int32_t rank) const {
        return world_ ? (world_->position_of({rank}).value - first_ + ranks_) % ranks_ : rank;
    }
    std::int32_t rank_at(std::int32_t place) const {
        return world_ ? world_->rank_at({(place + first_) % ranks_}).value : place;
    }
    const topology::Job* world() const { return world_; }
    /// Whether the whole group lies within the `count` places from `place` on.
    bool covers(std::int32_t place, std::int32_t count, const topology::Partition& groups, std::int32_t group) const {
        if (count == ranks_) return true;
        const std::int32_t begin = (groups.first(group) - first_ + ranks_) % ranks_;
        return place <= begin && begin + groups.size_of(group) <= place + count;
    }

  private:
    const topology::Job* world_;
    std::int32_t ranks_;
    std::int32_t first_ = 0;
};

/// Accumulates one kind of calls. Keeps the bytes of a group only until all of its ranks are included.
class CrossedEdges {
  public:
    /// Adds one call of the rank `world_rank`; `job` is that of the communicator, whose levels are a subset of the
    /// world's.
    void add(const OwnMessages& messages, const topology::Job& job, const topology::Job& world,
             topology::Rank world_rank);
    void absorb(const CrossedEdges& other);
    /// Converts the bytes of the groups completely within the `count` places from `place` on to the time of their
    /// edges.
    void settle(const RoundOrder& order, std::int32_t place, std::int32_t count);

    /// Lower bound on the total time of the calls of this kind; 0: unknown.
    double seconds() const { return least_s_; }
    bool empty() const { return groups_.empty() && least_s_ <= 0 && latency_s_ <= 0 && copy_s_ <= 0; }

    base::Json pack() const;
    static CrossedEdges unpack(const base::Json& packed);

  private:
    std::map<std::pair<std::int32_t, std::int32_t>, Traffic> groups_;  ///< by level of the world, and group
    double latency_s_ = 0, copy_s_ = 0;  ///< sums over this rank's calls; over several ranks the maximum
    double least_s_ = 0;
};

}  // namespace palmette::model
