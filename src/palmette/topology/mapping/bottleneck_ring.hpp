// Bottleneck travelling salesman: the ring (Hamiltonian cycle) whose longest edge is shortest.
#pragma once

#include <cstdint>

#include "palmette/topology/mapping/rank_orders.hpp"
#include "palmette/topology/nearest.hpp"

namespace palmette::topology {

struct BottleneckRing {
    RankOrder order;
    double slowest = 0;  ///< the longest edge, the closing one included
    double bound = 0;    ///< lower bound on the longest edge of any ring
    bool proven() const { return slowest <= bound; }
};

/// The longest edge of a ring, the closing one included; 0 for one rank.
double slowest_edge(const Distances& distances, const RankOrder& order);

/// Searches the smallest threshold for which the graph of the edges up to it has a Hamiltonian cycle. Exact by dynamic
/// programming over sets for up to 20 places (Held, Karp 1962). Beyond, the bound is the smallest threshold for which
/// that graph is biconnected, and cycles are searched by rotations (Posa 1976) for at most `budget` elementary
/// operations: deterministic, with `bound` giving the optimality gap.
BottleneckRing bottleneck_ring(const Distances& distances, std::int64_t budget = 400'000'000);

}  // namespace palmette::topology
