#include "palmette/collectives/trees/laned_tree.hpp"

#include <algorithm>

namespace palmette::collectives {
namespace {

/// The rank `places` places further in its node, cyclically; `places` may be negative.
Position moved(const topology::Partition& nodes, Position position, std::int32_t places) {
    const std::int32_t node = nodes.group_of(position.value);
    const std::int32_t size = nodes.size_of(node);
    const std::int32_t first = nodes.first(node);
    return {first + ((position.value - first + places) % size + size) % size};
}

}  // namespace

TreeNeighbours lane_links(const Job& job, const TopologyTree& tree, Position root, std::int32_t lane, Position self) {
    const topology::Partition& nodes = job.nodes().groups;
    // This rank has the place in the tree of the rank `lane` places before it.
    const Position place = moved(nodes, self, -lane);
    TreeNeighbours near = tree.of(place);
    // Path in the tree from the root's place up to that of its stand-in. Both are in one node.
    std::vector<Position> way = {moved(nodes, root, -lane)};
    while (way.back() != root) way.push_back(tree.of(way.back()).parent->peer);
    if (const auto here = std::find(way.begin(), way.end(), place); here != way.end() && way.size() > 1) {
        std::optional<TreeLink> above = std::move(near.parent);
        near.parent.reset();
        if (here != way.begin()) {
            const Position below = here[-1];
            std::erase_if(near.children, [&](const TreeLink& child) { return child.peer == below; });
            near.parent = tree.of(below).parent;
            near.parent->peer = below;
        }
        if (above) near.children.insert(near.children.begin(), std::move(*above));
    }
    if (near.parent) near.parent->peer = moved(nodes, near.parent->peer, lane);
    for (TreeLink& child : near.children) child.peer = moved(nodes, child.peer, lane);
    return near;
}

}  // namespace palmette::collectives
