// A topology-aware tree in which a leader's inter-node messages are distributed over relay ranks of its node.
#pragma once

#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {

/// The links of a TopologyTree with other senders: a leader's messages to (or from) other nodes' leaders are
/// distributed over the first `relays` ranks of its node, the leader last. They get the data from the leader first,
/// inside of the node. So a node starts or receives as many messages at once as it has relays, where a single rank
/// would serialise their overheads: a tree of nodes can be as flat as a star. As in Bienz, Olson, Gropp, "Node-aware
/// improvements to allreduce", ExaMPI 2019, for trees.
///
///   three nodes of two ranks, a star of them, relays=2:   by leaders  0 → 2, 0 → 4, 0 → 1     relayed  0 → 1, 1 → 2, 0
///   → 4
class RelayedTree {
  public:
    /// `tree` has leaders of nodes among its levels. Both must outlive this. `star`: all leaders of nodes are children
    /// of the root.
    RelayedTree(const Job& job, const TopologyTree& tree, Position root, std::int32_t relays, bool star)
        : nodes_(job.nodes().groups), tree_(tree), root_(root), relays_(relays), star_(star) {}

    /// Parent and children of one position; children inside of the node first. Time: that of the tree, plus a leader's
    /// links to other nodes.
    TreeNeighbours of(Position position) const;

  private:
    Position leader(std::int32_t node) const;
    std::int32_t node_of(Position position) const { return nodes_.group_of(position.value); }
    std::vector<TreeLink> outside(Position leader) const;
    /// The rank of a node that relays its leader's link `index` to other nodes.
    Position relay(Position leader, std::int64_t index) const;
    /// Adds the links of their node's leader that the relays among `positions` forward.
    plan::Blocks widened(const plan::Blocks& positions, Position leader, const std::vector<TreeLink>& links) const;

    const topology::Partition& nodes_;
    const TopologyTree& tree_;
    Position root_;
    std::int32_t relays_;
    bool star_;
};

}  // namespace palmette::collectives
