#include "palmette/collectives/trees/relayed_tree.hpp"

#include <algorithm>

namespace palmette::collectives {

Position RelayedTree::leader(std::int32_t node) const {
    return node == node_of(root_) ? root_ : Position{nodes_.first(node)};
}

std::vector<TreeLink> RelayedTree::outside(Position leader) const {
    std::vector<TreeLink> links = tree_.of(leader).children;
    std::erase_if(links, [&](const TreeLink& link) { return node_of(link.peer) == node_of(leader); });
    // In a star every leader's index is computed directly, without enumerating the others.
    if (star_)
        std::sort(links.begin(), links.end(),
                  [&](const TreeLink& a, const TreeLink& b) { return a.peer.value < b.peer.value; });
    return links;
}

Position RelayedTree::relay(Position leader, std::int64_t index) const {
    const std::int32_t node = node_of(leader);
    const std::int32_t size = nodes_.size_of(node);
    const auto turn = static_cast<std::int32_t>((index + 1) % std::min(relays_, size));
    return {nodes_.first(node) + (leader.value - nodes_.first(node) + turn) % size};
}

plan::Blocks RelayedTree::widened(const plan::Blocks& positions, Position leader,
                                  const std::vector<TreeLink>& links) const {
    plan::Blocks out = positions;
    for (std::size_t i = 0; i < links.size(); ++i)
        if (positions.contains(relay(leader, static_cast<std::int64_t>(i)).value)) out.unite(links[i].blocks);
    return out;
}

TreeNeighbours RelayedTree::of(Position position) const {
    const std::int32_t node = node_of(position);
    const Position own_leader = leader(node);
    const std::vector<TreeLink> links = outside(own_leader);
    TreeNeighbours near = tree_.of(position);
    std::erase_if(near.children, [&](const TreeLink& link) { return node_of(link.peer) != node; });
    for (TreeLink& link : near.children) link.blocks = widened(link.blocks, own_leader, links);
    for (std::size_t i = 0; i < links.size(); ++i)
        if (relay(own_leader, static_cast<std::int64_t>(i)) == position) near.children.push_back(links[i]);
    if (!near.parent) return near;
    if (position != own_leader) {
        near.parent->blocks = widened(near.parent->blocks, own_leader, links);
        return near;
    }
    const Position above = near.parent->peer;
    std::int64_t index = node < node_of(above) ? node : node - 1;
    if (!star_) {
        const std::vector<TreeLink> siblings = outside(above);
        index = std::find_if(siblings.begin(), siblings.end(),
                             [&](const TreeLink& link) { return link.peer == position; }) -
                siblings.begin();
    }
    near.parent->peer = relay(above, index);
    return near;
}

}  // namespace palmette::collectives
