// Common part of gather and scatter: a tree over all ranks, and the slices in which blocks travel along it.
#pragma once

#include "palmette/collectives/registry.hpp"
#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {

/// One rank's view of a tree, and how its blocks are numbered.
struct RootedTree {
    Job ranks;  ///< only for order=rank: the job without its topology
    plan::BlockOrder order = plan::BlockOrder::topology;
    TreeNeighbours neighbours;
    std::vector<TreeNeighbours>
        lanes;  ///< further trees, of bcast: slices are distributed round-robin over all of them
    Position self;
    std::uint16_t parts = 1;   ///< slices that every message is cut into
    bool keeps_order = false;  ///< subtrees are intervals (Numbering::sides)

    const TreeNeighbours& of_slice(std::uint16_t part) const {
        const std::size_t lane = part % (1 + lanes.size());
        return lane == 0 ? neighbours : lanes[lane - 1];
    }
    Rank rank_at(const Job& job, Position position) const {
        return order == plan::BlockOrder::topology ? job.rank_at(position) : Rank{position.value};
    }
};

/// linear, and k_nomial with key radix: one tree over all ranks, in topology or (order=rank) in rank order.
RootedTree flat_tree(const Job& job, Rank rank, const Request& request, const Spec& spec, TreeShape shape);

/// by_topology: keys LEVEL=SHAPE for the levels that have leaders (all levels, binomial, when no level is named),
/// top=SHAPE, segment=SIZE, relays=R|all, direct=SIZE (blocks of at least that size are sent directly to or from the
/// root).
RootedTree topology_tree(const Job& job, Rank rank, const Request& request, const Spec& spec);

/// The levels that the spec gives a shape to, outermost first; all with `fallback` when it names none.
std::vector<LevelShape> level_shapes(const Job& job, const Spec& spec, TreeShape fallback);

/// Key relays=R|all (1): how many ranks of a node share a leader's messages to other nodes. Throws base::Error on
/// another value.
std::int32_t relays_of(const Spec& spec);
/// Why relays are impossible: they need nodes with leaders. Nothing where they are possible, or there is but one.
std::optional<std::string> refuse_relays(const Job& job, const Spec& spec, const std::vector<LevelShape>& levels);
/// A position's links in the tree that `levels` and `top` make, with relays.
TreeNeighbours relayed_links(const Job& job, Position position, Position root, std::vector<LevelShape> levels,
                             TreeShape top, std::int32_t relays);

/// The checks of the rows; the same for both collectives.
std::optional<std::string> refuse_linear(const Job& job, const Request& request, const Spec& spec);
std::optional<std::string> refuse_k_nomial(const Job& job, const Request& request, const Spec& spec);
std::optional<std::string> refuse_by_topology(const Job& job, const Request& request, const Spec& spec);

Program gather_along(const Job& job, Rank rank, const RootedTree& tree);
Program scatter_along(const Job& job, Rank rank, const RootedTree& tree);

}  // namespace palmette::collectives
