// What one rank's own messages take across the edges between groups: all that it knows where ranks don't know each
// other's lengths.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "palmette/model/bound/crossing.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::model {

/// Of one rank in one exchange. What all ranks of a group send across its edge, added up, is what Crossing tells of
/// alltoall with lengths by pair.
struct OwnMessages {
    std::vector<Traffic>
        levels;  ///< by level of the job: what it sends out of its group, and what comes into it for this rank
    double latency_s = 0;  ///< of the farthest rank with which it exchanges a byte; 0: none, or unknown
    double copy_s = 0;     ///< of what it sends to itself; 0 where the machine tells no rate
};

/// `sent` and `received` tell bytes by the other rank. Time: ranks and levels.
OwnMessages own_messages(const topology::Job& job, topology::Rank rank,
                         const std::function<std::int64_t(std::int32_t)>& sent,
                         const std::function<std::int64_t(std::int32_t)>& received);

}  // namespace palmette::model
