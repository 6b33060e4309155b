// The rows of bcast, from the files where the algorithms are.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm bcast_linear, bcast_k_nomial, bcast_k_ary, bcast_chain, bcast_by_topology, bcast_bine,
    bcast_earliest;
extern const Algorithm bcast_scatter_allgather;
extern const Algorithm bcast_circulant, bcast_leaders, bcast_node_pieces;

}  // namespace palmette::collectives
