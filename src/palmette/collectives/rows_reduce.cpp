// The algorithms of reduce.
#include "palmette/collectives/reduce_rows.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> reduce_rows() {
    return {reduce_linear,      reduce_k_nomial,   reduce_k_ary,    reduce_chain,
            reduce_by_topology, reduce_bine,       reduce_earliest, reduce_reduce_scatter_gather,
            reduce_ring_gather, reduce_node_pieces};
}

}  // namespace palmette::collectives
