// More rows of allgather, and the Bine forms of gather and scatter, each from its own file.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm allgather_linear, allgather_circulant, allgather_bine, allgather_locality_bruck,
    allgather_by_topology;
extern const Algorithm gather_bine, scatter_bine;

}  // namespace palmette::collectives
