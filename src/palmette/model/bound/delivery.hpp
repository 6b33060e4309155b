// Lower bound on broadcast latency with bandwidth: messages keep their sender busy, and each host has one link.
#pragma once

#include <cstdint>

#include "palmette/base/ids.hpp"
#include "palmette/model/bound/spread_of_job.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::model {

/// Numbers of hosts at home and outside, and of their ranks.
struct DeliveryShape {
    std::int32_t root_ranks;  ///< ranks of the root's host
    std::int32_t home_hosts;
    std::int32_t most_home_ranks;  ///< ranks of the fullest host at home
    std::int32_t hosts;            ///< hosts outside
    std::int32_t fewest_ranks, most_ranks;
};

/// A latency includes both overheads and the wire, a gap keeps one end busy.
struct DeliveryCosts {
    Gaps gaps;
    double inside_latency_s;  ///< the least within a host
    double near_latency_s;    ///< the least between hosts
    double far_latency_s;     ///< the least between home and the rest
    double link_bytes_per_s;  ///< bandwidth of the fastest host's link; infinite: unknown
};

/// Lower bound on the time in seconds until all ranks outside of home have the root's vector; 0: no bound.
///
/// The postal model (spread.hpp) extended by bytes. Ranks sit on hosts, hosts in groups; *home* is the group of the
/// root, or the root's host alone.
/// - A rank is informed once it has received any byte. An informed rank may begin a message each gap, an intra-node and
///   an inter-node one concurrently. A host that is entered again counts as a new one; no more ranks and hosts are
///   informed than there are.
/// - A message carries at most one copy of the vector. Copies leave no faster than the links of the informed hosts
///   allow.
/// - Each byte has to reach each rank of each host. A copy that arrives with so much time left contributes at most the
///   share of the host's ranks that intra-node messages can still inform; averaged over bytes, these shares must add up
///   to one for each host.
///
/// Each of these is a relaxation, so that no schedule is faster, whether it cuts the vector or not. Reversed in time,
/// with the receivers' gaps, it is a lower bound on the time of a reduction to the root.
///
/// Time: the square of the bound in steps, a 20th of the smallest gap or latency, but no less than a 512th of the
/// longest. There are 2^14 at most: where the vector can't be everywhere by then, that is the bound.
double least_delivery_s(const DeliveryShape& shape, const DeliveryCosts& costs, double bytes);

/// The largest of these bounds for a vector of a job's root, home being the root's host, or its group at a level.
double delivery_s(const topology::Job& job, base::Position root, const Gaps& gaps, double inside_latency_s,
                  double bytes);

}  // namespace palmette::model
