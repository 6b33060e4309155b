// The rows of alltoall, each from its own file.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm alltoall_linear, alltoall_pairwise, alltoall_bruck, alltoall_node_aware, alltoall_leaders;

}  // namespace palmette::collectives
