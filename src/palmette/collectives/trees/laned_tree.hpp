// Lanes: several topology-aware trees over the same ranks with different node leaders, each for a part of one vector.
#pragma once

#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {

/// A position's links in lane `lane` (from 0, which is `tree` itself): the same tree, with every node's ranks rotated
/// by so many places, so that other ranks lead the node, and with the edges between the root and its stand-in reversed.
/// So messages between the same two nodes go between different ranks in each lane: over connections of their own, and
/// with their overhead distributed over ranks.
///
///   two nodes of three ranks, root 0, stars:   lane 0  0 → 3, 0 → 1, 0 → 2, 3 → 4, 3 → 5
///                                              lane 1  0 → 1, 1 → 4, 1 → 2, 4 → 3, 4 → 5
///
/// In a node with fewer ranks than lanes some ranks lead in several. Time: that of the tree, and of the path from the
/// root to its stand-in.
TreeNeighbours lane_links(const Job& job, const TopologyTree& tree, Position root, std::int32_t lane, Position self);

}  // namespace palmette::collectives
