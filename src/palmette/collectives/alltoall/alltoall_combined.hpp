// What all-to-alls have in common in which blocks between two groups travel together: collect, exchange parcels, hand
// out.
#pragma once

#include "palmette/collectives/alltoall/alltoall_parcels.hpp"
#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

/// Tags of exposes that a rank may use.
inline constexpr std::int64_t most_exposes = 64;

/// One rank's program. `parcels` says who exchanges what between groups. Keys:
///  - inside=linear|shared: how members of a group give blocks to each other. With shared those on the same node read
///    each other's memory, unless some rank would have to expose more than most_exposes pieces.
///  - segment=SIZE: blocks in slices, each going its way alone.
///  - rounds=R: parcels leave in R rounds, of which two are under way at once; what goes on inside, before a round and
///    after it, does so while others travel.
Program combined_alltoall(const Job& job, Rank rank, const Request& request, const Spec& spec, const Parcels& parcels);

/// Throws base::Error for a bad value of one of these keys.
void check_combined(const Spec& spec);

/// The groups of key level=LEVEL; nodes without it and where the job doesn't spread over that level.
const topology::Partition& combined_groups(const Job& job, const Spec& spec);

/// For Algorithm::tags: the exchange, and two phases inside for each round; exposes number their tags apart.
std::int64_t combined_tags(const Job& job, const Request& request, const Spec& spec);

}  // namespace palmette::collectives
