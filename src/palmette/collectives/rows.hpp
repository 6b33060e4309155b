// Declarations of all algorithms' rows: each algorithm's file defines its row, rows.cpp lists them.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm gather_linear, gather_k_nomial, gather_by_topology, scatter_linear, scatter_k_nomial,
    scatter_by_topology, allgather_ring, allgather_recursive_doubling, allgather_bruck, allgather_neighbor_exchange,
    allgather_leaders, allgather_linear, allgather_circulant, allgather_bine, allgather_locality_bruck,
    allgather_by_topology, gather_bine, scatter_bine;

extern const Algorithm bcast_linear, bcast_k_nomial, bcast_k_ary, bcast_chain, bcast_by_topology, bcast_bine,
    bcast_earliest, bcast_scatter_allgather, bcast_circulant, bcast_leaders, bcast_node_pieces;

extern const Algorithm reduce_linear, reduce_k_nomial, reduce_k_ary, reduce_chain, reduce_by_topology, reduce_bine,
    reduce_earliest, reduce_reduce_scatter_gather, reduce_ring_gather, reduce_node_pieces;

extern const Algorithm allreduce_recursive_doubling, allreduce_recursive_multiplying, allreduce_all,
    allreduce_rabenseifner, allreduce_ring, allreduce_direct, allreduce_reduce_bcast, allreduce_leaders,
    allreduce_node_aware, allreduce_node_pieces, allreduce_in_network;

extern const Algorithm reduce_scatter_ring, reduce_scatter_recursive_halving, reduce_scatter_pairwise,
    reduce_scatter_direct, reduce_scatter_leaders;

extern const Algorithm alltoall_linear, alltoall_pairwise, alltoall_bruck, alltoall_node_aware, alltoall_leaders;

extern const Algorithm barrier_dissemination, barrier_by_topology, barrier_leaders;

/// A method of both scan and exscan, which differ only in the own contribution.
struct ScanMethod {
    std::string_view name, sentence, source, keys, preconditions;
    std::optional<std::string> (*refuse)(const Job& job, const Request& request, const Spec& spec);
    Program (*make)(const Job& job, Rank rank, const Request& request, const Spec& spec);
    std::int64_t (*tags)(const Job& job, const Request& request, const Spec& spec);

    Algorithm row(Collective collective) const {
        return {collective, name, sentence, source, keys, preconditions, true, refuse, make, tags};
    }
};

extern const ScanMethod scan_linear, scan_recursive_doubling, scan_all, scan_leaders, scan_grouped;

/// Algorithm `shared`, within one node: a row for each collective.
std::vector<Algorithm> shared_rows();

/// All of them, in the order of listings.
std::vector<Algorithm> all_rows();

}  // namespace palmette::collectives
