// The algorithms of barrier.
#include "palmette/collectives/barrier_rows.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> barrier_rows() { return {barrier_dissemination, barrier_by_topology, barrier_leaders}; }

}  // namespace palmette::collectives
