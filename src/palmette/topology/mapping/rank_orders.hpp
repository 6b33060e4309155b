// Orders of ranks that put what a pattern's heaviest messages join near to each other.
//
// S. H. Mirsadeghi, A. Afsahi: Topology-aware rank reordering for MPI collectives, 2016. Each heuristic leaves rank 0
// where it is and puts one rank after the other on the free place nearest to a reference, which is placed already; they
// differ in who comes next and what the reference is.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/topology/nearest.hpp"

namespace palmette::topology {

/// order[r]: the place that rank r takes; a permutation in which 0 stays.
using RankOrder = std::vector<std::int32_t>;

/// The next rank nearest to the one before: the greedy order of a ring.
RankOrder ring_order(FreePlaces& places);

/// Recursive doubling sends most in its last stages, which some MPIs make between ranks that differ in the highest bit:
/// from the reference the partners r xor 2^k come in order of falling k, and after two of them the second becomes the
/// reference. Ranks past the largest power of two, which only speak with the rank so much lower, come last.
RankOrder recursive_doubling_order(FreePlaces& places);

/// Binomial gather to rank 0: the edge with the most ranks below it comes first; a child is put near its parent.
RankOrder binomial_gather_order(FreePlaces& places);

/// Binomial broadcast from rank 0: the edges in the order in which they are used.
RankOrder binomial_bcast_order(FreePlaces& places);

}  // namespace palmette::topology
