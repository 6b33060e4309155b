// What all-to-alls have in common in which blocks between two groups travel together: collect, exchange parcels, hand out.
#pragma once

#include "palmette/collectives/alltoall_parcels.hpp"
#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

/// Tags of exposes that a rank may use.
inline constexpr std::int64_t most_exposes = 64;

/// One rank's program. Keys inside=linear|shared (how members of a group give blocks to each other) and segment=SIZE. With inside=shared members on the same node read
/// each other's memory, unless some rank would have to expose more than most_exposes pieces. `parcels` says who exchanges what between groups.
Program combined_alltoall(const Job& job, Rank rank, const Request& request, const Spec& spec, const Parcels& parcels);

/// The groups of key level=LEVEL; nodes without it and where the job doesn't spread over that level.
const topology::Partition& combined_groups(const Job& job, const Spec& spec);

/// For Algorithm::tags: three phases; exposes number their tags apart.
std::int64_t combined_tags(const Job& job, const Request& request, const Spec& spec);

}  // namespace palmette::collectives
