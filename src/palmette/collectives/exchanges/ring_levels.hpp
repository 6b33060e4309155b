// Selects the levels of a job at which a nested ring closes.
#pragma once

#include <cstddef>
#include <vector>

#include "palmette/collectives/spec.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::collectives {

/// The partitions for a nested ring over all ranks in topology order, outermost first: none with `nested=no` or
/// `order=rank`, all with `nested=yes`.
///
/// Otherwise those that minimise the time of the bottleneck edge. A group that closes receives none of its own blocks
/// through its edge, but its last node sends these blocks back to the first: where groups are uneven and their edges as
/// fast as a node's, that node then sends more than any node in a plain ring. Edges of unknown capacity count as fast.
/// Levels from nodes inwards always close.
///
///     two switches of one and five nodes, edges alike: the last of the five would send n - 1 blocks on and 5 back,
///     now n - 1
///
/// Time: O(nodes * 2^(levels outside of nodes)).
std::vector<topology::Partition> ring_levels(const topology::Job& job, const Spec& spec);

/// Closing levels of a ring over the groups of `level`, nodes or larger ones: the levels around it, as partitions of
/// its groups.
std::vector<topology::Partition> ring_levels_round(const topology::Job& job, std::size_t level);

}  // namespace palmette::collectives
