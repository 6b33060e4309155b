// Traffic of one rank's own messages across the edges of groups: all it knows in v and w collectives, where ranks don't
// know each other's lengths.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "palmette/model/bound/crossing.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::model {

/// One rank in one call. Summed up over the ranks of a group it equals the result of Crossing for an alltoall with
/// lengths by pair.
struct OwnMessages {
    std::vector<Traffic>
        levels;  ///< by level of the job: bytes that it sends out of its group, and that enter it for this rank
    double latency_s = 0;  ///< latency to the farthest rank with which it exchanges data; 0: none, or unknown
    double copy_s = 0;     ///< time for copying what it sends to itself; 0 where the rate is unknown
};

/// `sent` and `received` give bytes by peer. Time: O(ranks + levels).
OwnMessages own_messages(const topology::Job& job, topology::Rank rank,
                         const std::function<std::int64_t(std::int32_t)>& sent,
                         const std::function<std::int64_t(std::int32_t)>& received);

}  // namespace palmette::model
