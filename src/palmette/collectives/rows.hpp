// The rows that each algorithm's file contributes to the registry.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm gather_linear, gather_k_nomial, gather_by_topology;
extern const Algorithm scatter_linear, scatter_k_nomial, scatter_by_topology;
extern const Algorithm allgather_ring, allgather_recursive_doubling, allgather_bruck, allgather_neighbor_exchange,
    allgather_leaders;

}  // namespace palmette::collectives
