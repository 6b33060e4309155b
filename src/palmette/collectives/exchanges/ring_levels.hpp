// At which of a job's levels a nested ring closes.
#pragma once

#include <cstddef>
#include <vector>

#include "palmette/collectives/spec.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::collectives {

/// The partitions that a nested ring over all ranks in topology order is given, outermost first: none with `nested=no`
/// or `order=rank`, all with `nested=yes`.
///
/// Otherwise those with which the fullest edge is done earliest. A group that closes takes in no block of its own
/// through its edge, but its last node sends these blocks back to the first: where groups are uneven and their edges as
/// fast as a node's, that node then has more to send than a plain ring asks of anybody. Edges of unknown capacity count
/// as fast. Levels from nodes inwards always close.
///
///     two switches of one and five nodes, edges alike: who ends the five would send n - 1 blocks on and 5 back, now n
///     - 1
///
/// Time: nodes times the subsets of the levels outside of nodes.
std::vector<topology::Partition> ring_levels(const topology::Job& job, const Spec& spec);

/// The same for a ring over the groups of a level, nodes or larger ones: of the levels round it, as partitions of its
/// groups.
std::vector<topology::Partition> ring_levels_round(const topology::Job& job, std::size_t level);

}  // namespace palmette::collectives
