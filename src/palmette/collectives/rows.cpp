#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> all_rows() {
    std::vector<Algorithm> all{
        // gather, scatter, allgather
        gather_linear,
        gather_k_nomial,
        gather_by_topology,
        scatter_linear,
        scatter_k_nomial,
        scatter_by_topology,
        allgather_ring,
        allgather_recursive_doubling,
        allgather_bruck,
        allgather_neighbor_exchange,
        allgather_leaders,
        allgather_linear,
        allgather_circulant,
        allgather_bine,
        allgather_locality_bruck,
        allgather_by_topology,
        gather_bine,
        scatter_bine,
        // bcast
        bcast_linear,
        bcast_k_nomial,
        bcast_k_ary,
        bcast_chain,
        bcast_by_topology,
        bcast_bine,
        bcast_earliest,
        bcast_scatter_allgather,
        bcast_circulant,
        bcast_leaders,
        bcast_node_pieces,
        // reduce
        reduce_linear,
        reduce_k_nomial,
        reduce_k_ary,
        reduce_chain,
        reduce_by_topology,
        reduce_bine,
        reduce_earliest,
        reduce_reduce_scatter_gather,
        reduce_ring_gather,
        reduce_node_pieces,
        // allreduce
        allreduce_recursive_doubling,
        allreduce_recursive_multiplying,
        allreduce_all,
        allreduce_rabenseifner,
        allreduce_ring,
        allreduce_direct,
        allreduce_reduce_bcast,
        allreduce_leaders,
        allreduce_node_aware,
        allreduce_node_pieces,
        allreduce_in_network,
        // reduce_scatter
        reduce_scatter_ring,
        reduce_scatter_recursive_halving,
        reduce_scatter_pairwise,
        reduce_scatter_direct,
        reduce_scatter_leaders,
        // alltoall
        alltoall_linear,
        alltoall_pairwise,
        alltoall_bruck,
        alltoall_node_aware,
        alltoall_leaders,
        // barrier
        barrier_dissemination,
        barrier_by_topology,
        barrier_leaders,
    };
    for (const Collective collective : {Collective::scan, Collective::exscan})
        for (const ScanMethod* method :
             {&scan_linear, &scan_recursive_doubling, &scan_all, &scan_leaders, &scan_grouped})
            all.push_back(method->row(collective));
    for (const Algorithm& row : shared_rows()) all.push_back(row);
    return all;
}

}  // namespace palmette::collectives
