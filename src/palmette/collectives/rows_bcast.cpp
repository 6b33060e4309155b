// The algorithms of bcast.
#include "palmette/collectives/bcast_rows.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> bcast_rows() {
    return {bcast_linear,   bcast_k_nomial,          bcast_k_ary,     bcast_chain,   bcast_by_topology, bcast_bine,
            bcast_earliest, bcast_scatter_allgather, bcast_circulant, bcast_leaders, bcast_node_pieces};
}

}  // namespace palmette::collectives
