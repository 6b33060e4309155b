// Rank reordering heuristics: place the ranks of a pattern's heaviest messages close to each other.
//
// S. H. Mirsadeghi, A. Afsahi: Topology-aware rank reordering for MPI collectives, 2016. Each heuristic keeps rank 0 in
// place and greedily assigns one rank after the other to the free place nearest to a reference rank, which is placed
// already; they differ in the choice of the next rank and of the reference.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/topology/nearest.hpp"

namespace palmette::topology {

/// order[r]: the place that rank r takes; a permutation in which 0 stays.
using RankOrder = std::vector<std::int32_t>;

/// Each rank nearest to its predecessor: the greedy (nearest-neighbour) order of a ring.
RankOrder ring_order(FreePlaces& places);

/// Recursive doubling sends most in its last stages, which some MPIs make between ranks that differ in the highest bit:
/// the partners r xor 2^k of the reference are placed in order of descending k, and after two of them the second
/// becomes the reference. Ranks past the largest power of two, whose only partner is the rank that much lower, are
/// placed last.
RankOrder recursive_doubling_order(FreePlaces& places);

/// Binomial gather to rank 0: edges in order of descending subtree size; each child is placed near its parent.
RankOrder binomial_gather_order(FreePlaces& places);

/// Binomial broadcast from rank 0: the edges in the order in which they are used.
RankOrder binomial_bcast_order(FreePlaces& places);

}  // namespace palmette::topology
