// The rows of reduce, from the files where the algorithms are.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm reduce_linear, reduce_k_nomial, reduce_k_ary, reduce_chain, reduce_by_topology, reduce_bine;
extern const Algorithm reduce_earliest;
extern const Algorithm reduce_reduce_scatter_gather;
extern const Algorithm reduce_ring_gather, reduce_node_pieces;

}  // namespace palmette::collectives
