// Allgathers in which every rank takes part on its own.
#pragma once

#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

/// Every rank is a participant, in topology order or (order=rank) in rank order. `nested` lets a ring keep inside of
/// the job's levels; `parts` slices of each block travel one behind the other.
Program allgather_among_ranks(const Job& job, Rank rank, const Spec& spec, const Pattern& pattern, bool nested,
                              std::uint16_t parts = 1);

}  // namespace palmette::collectives
