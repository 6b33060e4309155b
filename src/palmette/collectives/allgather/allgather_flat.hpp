// Flat allgathers: every rank is a participant, without leaders.
#pragma once

#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

/// Every rank is a participant, in topology order or (order=rank) in rank order. `nested`: a ring closes inside of the
/// job's levels; `parts`: slices of each block, pipelined.
Program allgather_among_ranks(const Job& job, Rank rank, const Spec& spec, const Pattern& pattern, bool nested,
                              std::uint16_t parts = 1);

}  // namespace palmette::collectives
