// The rows of reduce_scatter's files.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm reduce_scatter_ring, reduce_scatter_recursive_halving, reduce_scatter_pairwise,
    reduce_scatter_direct, reduce_scatter_leaders;

}  // namespace palmette::collectives
