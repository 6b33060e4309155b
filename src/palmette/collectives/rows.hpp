// The rows that each algorithm's file contributes to the registry.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm gather_linear, gather_k_nomial, gather_by_topology;
extern const Algorithm scatter_linear, scatter_k_nomial, scatter_by_topology;
extern const Algorithm allgather_ring, allgather_recursive_doubling, allgather_bruck, allgather_neighbor_exchange,
    allgather_leaders;

/// By collective, each in a file of its own.
std::vector<Algorithm> bcast_rows();
std::vector<Algorithm> reduce_rows();
std::vector<Algorithm> barrier_rows();
std::vector<Algorithm> allreduce_rows();
std::vector<Algorithm> reduce_scatter_rows();
std::vector<Algorithm> scan_rows();
std::vector<Algorithm> exscan_rows();
std::vector<Algorithm> alltoall_rows();
/// Bine, circulant and locality-aware forms.
std::vector<Algorithm> allgather_more_rows();
/// One node, through its shared memory.
std::vector<Algorithm> shared_rows();

}  // namespace palmette::collectives
