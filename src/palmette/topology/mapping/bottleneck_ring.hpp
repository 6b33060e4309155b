// The ring whose slowest edge is as fast as can be.
#pragma once

#include <cstdint>

#include "palmette/topology/mapping/rank_orders.hpp"
#include "palmette/topology/nearest.hpp"

namespace palmette::topology {

struct BottleneckRing {
    RankOrder order;
    double slowest = 0;  ///< the longest edge, the closing one included
    double bound = 0;    ///< no ring has a shorter one
    bool proven() const { return slowest <= bound; }
};

/// The longest edge of a ring, the closing one included; 0 for one rank.
double slowest_edge(const Distances& distances, const RankOrder& order);

/// Searches the smallest threshold for which the edges up to it hold a Hamiltonian cycle. Exact by dynamic programming
/// over sets for up to 20 places (Held, Karp 1962). Beyond, the bound is the smallest threshold for which that graph is
/// biconnected, and cycles are searched by rotations (Posa 1976) for at most `budget` elementary operations: the same
/// result on every machine, with `bound` telling the gap.
BottleneckRing bottleneck_ring(const Distances& distances, std::int64_t budget = 400'000'000);

}  // namespace palmette::topology
