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
/// *One edge.* What must cross the edge that cuts a group of s of p ranks off (crossing.hpp), over its capacity in that direction.
///
/// *All edges of a level.* A message leaves one group and enters one other. To bring one element's sum of k groups to all k of them
/// takes 2 (k-1) such messages (one-way gossip), so an allreduce of n bytes needs 2 (k-1) n / (sum of capacities). The like holds with (k-1) p m
/// for allgather and reduce_scatter and with (k-1) n for bcast and reduce, but there the slowest edge is never the weaker bound.
///
/// *Latency.* No result is complete before the slowest message that must be sent has arrived: between the root and the rank that is farthest
/// from it, or between the two ranks that are farthest apart. A rank may have any number of messages under way, so a number of
/// rounds bounds nothing. The latency between two ranks is that of the outermost level that tells them apart.
///
/// Memory inside of hosts is taken as infinitely fast. Edges without a capacity and levels without latency bound nothing.
///
/// `block_bytes`: one entry, of the meaning of Request::block_bytes, or one for each rank (gather, scatter, allgather, reduce_scatter) or for
/// each pair, sender * p + receiver (alltoall). A barrier takes any one entry. Throws base::Error on a list of another length, and on
/// a root outside of the job where the root matters.
Bound bound(const topology::Job& job, const plan::Request& request, const std::vector<std::int64_t>& block_bytes);

}  // namespace palmette::model
