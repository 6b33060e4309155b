#include "palmette/collectives/trees/chunk_tree.hpp"

#include <algorithm>

namespace palmette::collectives {

using plan::Interval;

std::int64_t chunk_leader(const Job& job, Interval range, std::int32_t chunk, std::int32_t chunks, Spread spread) {
    const topology::Partition& nodes = job.nodes().groups;
    const std::int64_t first = nodes.group_of(static_cast<std::int32_t>(range.first));
    const std::int64_t count = nodes.group_of(static_cast<std::int32_t>(range.end() - 1)) - first + 1;
    const bool turns = spread == Spread::turns;
    const auto node = static_cast<std::int32_t>(first + (turns ? chunk % count : chunk * count / chunks));
    const std::int64_t begin = std::max<std::int64_t>(nodes.first(node), range.first);
    const std::int64_t end = std::min<std::int64_t>(nodes.end(node), range.end());
    return begin + (turns ? chunk / count % (end - begin) : chunk * (end - begin) / chunks);
}

Interval ChunkTree::around(std::int64_t position, std::size_t depth) const {
    if (depth == 0) return group_;
    if (depth > levels_.size()) return {position, 1};
    const topology::Partition& groups = job_.levels()[levels_[depth - 1]].groups;
    const std::int32_t group = groups.group_of(static_cast<std::int32_t>(position));
    return {groups.first(group), groups.size_of(group)};
}

ChunkTree::Neighbours ChunkTree::of(Position position) const {
    const auto as_position = [](std::int64_t p) { return Position{static_cast<std::int32_t>(p)}; };
    Neighbours out;
    std::int64_t leader = root();
    for (std::size_t depth = 0; depth <= levels_.size(); ++depth) {
        const Interval group = around(position.value, depth);
        // The leader of a subgroup: the group's leader, where that one is inside.
        const auto leader_of = [&](const Interval& subgroup) -> std::int64_t {
            const auto has = [&](std::int64_t p) { return p >= subgroup.first && p < subgroup.end(); };
            if (has(leader)) return leader;
            if (preferred_ && has(preferred_->value)) return preferred_->value;
            return chunk_leader(job_, subgroup, chunk_, chunks_, spread_);
        };
        const Interval mine = around(position.value, depth + 1);
        const std::int64_t next_leader = leader_of(mine);
        if (next_leader == position.value) {
            const bool single = depth == levels_.size();
            const topology::Partition* inner = single ? nullptr : &job_.levels()[levels_[depth]].groups;
            const auto index_of = [&](std::int64_t p) {
                return inner ? inner->group_of(static_cast<std::int32_t>(p)) : static_cast<std::int32_t>(p);
            };
            // Subgroups are numbered from the leader's own on, cyclically.
            const std::int32_t first = index_of(group.first);
            const std::int32_t n = index_of(group.end() - 1) - first + 1;
            const std::int32_t turn = index_of(leader) - first;
            const auto leader_of_member = [&](std::int32_t member) {
                const std::int32_t index = first + (member + turn) % n;
                if (!inner) return as_position(index);
                return as_position(leader_of({inner->first(index), inner->size_of(index)}));
            };
            const std::int32_t me = (index_of(position.value) - first - turn + n) % n;
            for (const SubTree& child : shape_.children(me, n)) out.children.push_back(leader_of_member(child.first));
            if (const auto parent = shape_.parent(me, n)) out.parent = leader_of_member(*parent);
        }
        leader = next_leader;
    }
    std::sort(out.children.begin(), out.children.end(), [](Position a, Position b) { return a.value < b.value; });
    return out;
}

}  // namespace palmette::collectives
