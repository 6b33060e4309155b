// Common part of all-to-alls that aggregate the blocks between two groups into parcels: collect, exchange parcels, hand
// out.
#pragma once

#include "palmette/collectives/alltoall/alltoall_parcels.hpp"
#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

/// Tags of exposes that a rank may use.
inline constexpr std::int64_t most_exposes = 64;

/// One rank's program. `parcels` defines the messages between groups. Keys:
///  - inside=linear|shared: how members of a group exchange blocks. With shared those on the same node read
///    each other's memory, unless some rank would have to expose more than most_exposes pieces.
///  - segment=SIZE: blocks in slices, which are pipelined independently.
///  - rounds=R: parcels leave in R rounds, of which two are in flight at once; communication inside groups
///    before and after a round overlaps with other rounds.
Program combined_alltoall(const Job& job, Rank rank, const Request& request, const Spec& spec, const Parcels& parcels);

/// Throws base::Error for a bad value of one of these keys.
void check_combined(const Spec& spec);

/// The groups of key level=LEVEL; nodes without it and where the job has no such level.
const topology::Partition& combined_groups(const Job& job, const Spec& spec);

/// Tags for Algorithm::tags: the exchange, and two phases inside per round; exposes have a tag space of their own.
std::int64_t combined_tags(const Job& job, const Request& request, const Spec& spec);

}  // namespace palmette::collectives
