// The rows of allreduce's files.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm allreduce_recursive_doubling, allreduce_recursive_multiplying, allreduce_all,
    allreduce_rabenseifner, allreduce_ring, allreduce_direct;
extern const Algorithm allreduce_reduce_bcast, allreduce_leaders, allreduce_node_aware, allreduce_node_pieces;

}  // namespace palmette::collectives
