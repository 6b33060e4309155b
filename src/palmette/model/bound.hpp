// The physical limit of a collective on a job's tree: no plan and no library can be faster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::model {

/// The limit and what sets it.
struct Bound {
    double seconds = 0;
    /// link: the edge of one group; links: the edges of all groups of a level together; latency: a message's way; none: nothing is known
    std::string kind = "none";
    std::string level;
    std::int32_t group = -1;  ///< for link
    std::string group_name;   ///< for link, where names are known
    bool outwards = false;    ///< for link: bytes that leave the group, else bytes that enter
    std::int64_t bytes = 0;   ///< that have to cross
    double capacity_bytes_per_s = 0;
};

/// Lower bound on the time of `request`, store and forward inside of switches allowed but neither reduction nor multicast in the network.
///
/// An edge that cuts s of p ranks off must carry, out of and into them: gather s m if the root is outside, (p-s) m if inside; scatter
/// the reverse; allgather s m and (p-s) m. A message leaves one group and enters one other, so over all k groups of a level the
/// bytes that enter must also leave: allgather (k-1) p m over the sum of capacities. And no result is
/// complete before the slowest message that must be sent has arrived. Memory inside of hosts is taken as infinitely fast.
///
/// `block_bytes`: by rank, or one entry for all. Edges without a capacity and levels without latency bound nothing.
/// Throws base::Error on a list of another length.
Bound bound(const topology::Job& job, const plan::Request& request, const std::vector<std::int64_t>& block_bytes);

}  // namespace palmette::model
