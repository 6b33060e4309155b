#include "palmette/collectives/topology_tree.hpp"

#include <algorithm>

namespace palmette::collectives {

using plan::Blocks;
using plan::Interval;

TopologyTree::TopologyTree(const Job& job, Interval range, Position root, std::vector<LevelShape> levels, TreeShape top)
    : job_(job), range_(range), root_(root.value), levels_(std::move(levels)), top_(top) {}

Interval TopologyTree::group_around(std::int64_t position, int depth) const {
    if (depth < 0) return range_;
    if (depth >= static_cast<int>(levels_.size())) return {position, 1};
    const topology::Partition& groups = job_.levels()[levels_[static_cast<std::size_t>(depth)].level].groups;
    const std::int32_t group = groups.group_of(static_cast<std::int32_t>(position));
    const std::int64_t first = std::max<std::int64_t>(groups.first(group), range_.first);
    return {first, std::min<std::int64_t>(groups.end(group), range_.end()) - first};
}

std::int64_t TopologyTree::leader(const Interval& group) const {
    return root_ >= group.first && root_ < group.end() ? root_ : group.first;
}

std::size_t TopologyTree::outermost_crossed(Position a, Position b) const {
    std::size_t level = 0;
    while (level < job_.levels().size() &&
           job_.levels()[level].groups.group_of(a.value) == job_.levels()[level].groups.group_of(b.value))
        ++level;
    return level;
}

TreeNeighbours TopologyTree::of(Position position) const {
    TreeNeighbours out;
    // From the whole range inwards, so that links across the outermost level come first.
    for (int depth = -1; depth < static_cast<int>(levels_.size()); ++depth) {
        const Interval mine = group_around(position.value, depth + 1);
        if (leader(mine) != position.value) continue;
        const Interval group = group_around(position.value, depth);
        const TreeShape shape = depth < 0 ? top_ : levels_[static_cast<std::size_t>(depth)].shape;
        const std::string stage =
            depth < 0 ? "top" : job_.levels()[levels_[static_cast<std::size_t>(depth)].level].name;

        // The subgroups are numbered from the one of the group's leader on, round and round.
        const bool single = depth + 1 >= static_cast<int>(levels_.size());
        const topology::Partition* inner =
            single ? nullptr : &job_.levels()[levels_[static_cast<std::size_t>(depth + 1)].level].groups;
        const auto index_of = [&](std::int64_t at) {
            return inner ? inner->group_of(static_cast<std::int32_t>(at)) : static_cast<std::int32_t>(at);
        };
        const std::int32_t first = index_of(group.first);
        const std::int32_t n = index_of(group.end() - 1) - first + 1;
        const std::int32_t turn = index_of(leader(group)) - first;
        const auto member_group = [&](std::int32_t member) -> Interval {
            const std::int32_t index = first + (member + turn) % n;
            const std::int64_t begin = inner ? std::max<std::int64_t>(inner->first(index), group.first) : index;
            const std::int64_t end = inner ? std::min<std::int64_t>(inner->end(index), group.end()) : index + 1;
            return {begin, end - begin};
        };
        const auto blocks_of = [&](SubTree tree) {
            Blocks blocks;
            const std::int32_t begin = (tree.first + turn) % n;
            const std::int32_t straight = std::min(tree.count, n - begin);
            const auto span = [&](std::int32_t from, std::int32_t count) {
                if (count < 1) return;
                const std::int64_t start = member_group((from - turn + n) % n).first;
                blocks.insert({start, member_group((from + count - 1 - turn + n) % n).end() - start});
            };
            span(begin, straight);
            span(0, tree.count - straight);
            return blocks;
        };
        const std::int32_t me = (index_of(position.value) - first - turn + n) % n;
        const std::size_t before = out.children.size();
        for (const SubTree& child : shape.children(me, n))
            out.children.push_back(
                {{static_cast<std::int32_t>(leader(member_group(child.first)))}, blocks_of(child), stage});
        // A star is served from afar to near: what must cross the slow outer links is under way first.
        if (shape.radix == 0)
            std::stable_sort(out.children.begin() + static_cast<std::ptrdiff_t>(before), out.children.end(),
                             [&](const TreeLink& a, const TreeLink& b) {
                                 return outermost_crossed(position, a.peer) < outermost_crossed(position, b.peer);
                             });
        if (const auto parent = shape.parent(me))
            out.parent = TreeLink{
                {static_cast<std::int32_t>(leader(member_group(*parent)))}, blocks_of(shape.subtree(me, n)), stage};
    }
    return out;
}

}  // namespace palmette::collectives
