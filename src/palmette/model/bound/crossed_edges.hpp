// Bytes that calls took across the machine's edges, where each rank knows its own messages only: added up when the job
// ends.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "palmette/base/json.hpp"
#include "palmette/model/bound/own_messages.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::model {

/// All ranks' positions in the world's tree, from that of rank 0 on, round to it again: in this order counts of groups
/// come together early.
class RoundOrder {
  public:
    /// `world` may be null, where nothing is known of the machine; then it is the order of ranks.
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
    /// Whether all of a group is among `count` places from `place` on.
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

/// Of one kind of calls. Holds each group's bytes only until those of all its ranks are there.
class CrossedEdges {
  public:
    /// One call of the rank `world_rank`; `job` is that of the communicator, whose levels are among the world's.
    void add(const OwnMessages& messages, const topology::Job& job, const topology::Job& world,
             topology::Rank world_rank);
    void absorb(const CrossedEdges& other);
    /// Turns bytes of the groups that `count` places from `place` on hold into the time that their edges need.
    void settle(const RoundOrder& order, std::int32_t place, std::int32_t count);

    /// The calls of this kind, one after the other, can't have taken less than this; 0: nothing is known.
    double seconds() const { return least_s_; }
    bool empty() const { return groups_.empty() && least_s_ <= 0 && latency_s_ <= 0 && copy_s_ <= 0; }

    base::Json pack() const;
    static CrossedEdges unpack(const base::Json& packed);

  private:
    std::map<std::pair<std::int32_t, std::int32_t>, Traffic> groups_;  ///< by level of the world, and group
    double latency_s_ = 0, copy_s_ = 0;  ///< of this rank's calls; of several ranks the largest
    double least_s_ = 0;
};

}  // namespace palmette::model
