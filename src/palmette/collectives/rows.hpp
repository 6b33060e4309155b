// Declarations of all algorithms' rows: each algorithm's file defines its row, and is listed here.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

// An entry of it is all that an algorithm needs besides its own file. In the order of listings.
// clang-format off
#define PALMETTE_ALGORITHMS(ROW) \
    ROW(gather_linear) ROW(gather_k_nomial) ROW(gather_by_topology) ROW(gather_bine) \
    ROW(scatter_linear) ROW(scatter_k_nomial) ROW(scatter_by_topology) ROW(scatter_bine) \
    ROW(allgather_ring) ROW(allgather_recursive_doubling) ROW(allgather_bruck) ROW(allgather_neighbor_exchange) \
    ROW(allgather_leaders) ROW(allgather_linear) ROW(allgather_circulant) ROW(allgather_pat) ROW(allgather_bine) \
    ROW(allgather_locality_bruck) ROW(allgather_by_topology) \
    ROW(bcast_linear) ROW(bcast_k_nomial) ROW(bcast_k_ary) ROW(bcast_chain) ROW(bcast_by_topology) ROW(bcast_bine) \
    ROW(bcast_earliest) ROW(bcast_scatter_allgather) ROW(bcast_circulant) ROW(bcast_leaders) ROW(bcast_node_pieces) \
    ROW(reduce_linear) ROW(reduce_k_nomial) ROW(reduce_k_ary) ROW(reduce_chain) ROW(reduce_by_topology) \
    ROW(reduce_bine) ROW(reduce_earliest) ROW(reduce_reduce_scatter_gather) ROW(reduce_ring_gather) \
    ROW(reduce_node_pieces) ROW(reduce_circulant) \
    ROW(allreduce_recursive_doubling) ROW(allreduce_recursive_multiplying) ROW(allreduce_all) \
    ROW(allreduce_rabenseifner) ROW(allreduce_circulant) ROW(allreduce_pat) \
    ROW(allreduce_ring) ROW(allreduce_direct) ROW(allreduce_reduce_bcast) ROW(allreduce_leaders) \
    ROW(allreduce_node_aware) ROW(allreduce_node_pieces) ROW(allreduce_in_network) \
    ROW(reduce_scatter_ring) ROW(reduce_scatter_recursive_halving) ROW(reduce_scatter_circulant) \
    ROW(reduce_scatter_pat) ROW(reduce_scatter_pairwise) \
    ROW(reduce_scatter_direct) ROW(reduce_scatter_leaders) \
    ROW(alltoall_linear) ROW(alltoall_pairwise) ROW(alltoall_bruck) ROW(alltoall_node_aware) ROW(alltoall_leaders) \
    ROW(barrier_dissemination) ROW(barrier_by_topology) ROW(barrier_leaders) \
    ROW(scan_linear) ROW(scan_recursive_doubling) ROW(scan_all) ROW(scan_leaders) ROW(scan_grouped)
// clang-format on

#define PALMETTE_ROW(NAME) extern const Algorithm NAME;
PALMETTE_ALGORITHMS(PALMETTE_ROW)
#undef PALMETTE_ROW

/// Algorithm `shared`, within one node: a row for each collective.
std::vector<Algorithm> shared_rows();

/// All of them, in the order of listings.
std::vector<Algorithm> all_rows();

}  // namespace palmette::collectives
