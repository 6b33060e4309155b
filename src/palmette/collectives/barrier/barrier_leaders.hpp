// A barrier with one leader per group: gather, exchange between leaders, release.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

/// Exchange between leaders: dissemination rounds, or all to all.
enum class Between : std::uint8_t { dissemination, all };

/// Gather inside of each group of level `level`, exchange between leaders, release. Keys LEVEL=SHAPE and inside=SHAPE
/// for the trees inside of the groups (by default shared memory inside of nodes where it is allowed, stars of up to 8
/// members, binomial trees of more), radix of the rounds.
Program barrier_among_leaders(const Job& job, Rank rank, const Request& request, const Spec& spec, std::size_t level,
                              Between between);

}  // namespace palmette::collectives
