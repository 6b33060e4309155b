// The rows of barrier, from the files where the algorithms are.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

extern const Algorithm barrier_dissemination, barrier_by_topology, barrier_leaders;

}  // namespace palmette::collectives
