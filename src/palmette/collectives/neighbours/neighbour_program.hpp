// Plans of neighbourhood collectives: the edges between two groups combined, all others direct.
//
//     node 0   0 ─┐                 ┌─> 4   node 1        edges 0→4, 0→5, 1→4, 2→5: one message instead of four
//              1 ─┼──> 2 ════> 5 ───┤
//              2 ─┘                 └─> 5
//
//   gather    Sources send their blocks to one of them, ...
//   between   ... which sends all that goes to the other group to one of the targets there, ...
//   spread    ... which sends the others theirs.
//
// Both relays have edges of their own in the pair, so a rank without neighbours takes no part. They are a function of
// the pair and its edges, which all members of both groups know from their own group's lists: nothing else is agreed.
// The blocks of an allgather cross once for each pair.
//
// Bienz, Gropp, Olson, "Node aware sparse matrix-vector multiplication", JPDC 2019; Collom, Li, Bienz, "Optimizing
// irregular communication with neighborhood collectives and locality-aware parallelism", SC Workshops 2023.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "palmette/collectives/neighbours/neighbourhood.hpp"
#include "palmette/collectives/spec.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::collectives {

/// How a neighbourhood is routed. The same on all ranks.
struct NeighbourRoute {
    /// Indices of the job's levels, outermost first. An edge belongs to the pair of groups of the first of them that
    /// tells its ends apart; none: all edges are direct.
    std::vector<std::size_t> levels;
    /// Pairs of groups with fewer pairs of ranks are not combined.
    std::int32_t combine_from = 2;
};

/// The longest blocks that a setting wants combined: `combined`, `combined:up_to=64K`; -1: `direct`. Throws base::Error
/// for anything else.
std::int64_t combined_up_to(const Spec& spec);

/// Exclusive upper bound of a plan's tags.
inline constexpr std::int64_t neighbour_tags = 4;

/// One rank's program, Collective::composed. `known`: the edges of the rank's group at the outermost of the route's
/// levels, or more. Cost: that of sorting them.
plan::Program neighbour_program(const topology::Job& job, Rank rank, const Neighbourhood& known,
                                const NeighbourBlocks& blocks, const NeighbourRoute& route);

}  // namespace palmette::collectives
