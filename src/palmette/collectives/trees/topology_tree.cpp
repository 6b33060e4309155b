#include "palmette/collectives/trees/topology_tree.hpp"

#include <algorithm>

namespace palmette::collectives {

using plan::Blocks;
using plan::Interval;

/// The subgroups of a group in the order in which one tree numbers them: a few intervals, ascending or descending.
class TopologyTree::Members {
  public:
    void add(std::int32_t first, std::int32_t count, std::int32_t step = 1) {
        if (count > 0) runs_.push_back({first, count, step});
        size_ += std::max(count, 0);
    }
    std::int32_t size() const { return size_; }
    /// The member that is subgroup `index`, or nothing where that one isn't in this tree.
    std::optional<std::int32_t> member(std::int32_t index) const {
        std::int32_t before = 0;
        for (const Run& run : runs_) {
            const std::int32_t offset = (index - run.first) * run.step;
            if (offset >= 0 && offset < run.count) return before + offset;
            before += run.count;
        }
        return std::nullopt;
    }
    std::int32_t index(std::int32_t member) const {
        for (const Run& run : runs_) {
            if (member < run.count) return run.first + member * run.step;
            member -= run.count;
        }
        return -1;
    }
    /// Subgroups lowest..highest for each interval of a subtree.
    template <class Visit>
    void for_each_run(SubTree tree, const Visit& visit) const {
        std::int32_t before = 0;
        for (const Run& run : runs_) {
            const std::int32_t begin = std::max(tree.first, before) - before;
            const std::int32_t end = std::min(tree.first + tree.count, before + run.count) - before;
            if (begin < end) {
                const std::int32_t one = run.first + begin * run.step;
                const std::int32_t other = run.first + (end - 1) * run.step;
                visit(std::min(one, other), std::max(one, other));
            }
            before += run.count;
        }
    }

  private:
    struct Run {
        std::int32_t first, count, step;
    };
    std::vector<Run> runs_;
    std::int32_t size_ = 0;
};

/// A group of depth `depth` with its subgroups: of the next chosen level, or single positions.
class TopologyTree::Group {
  public:
    Group(const TopologyTree& tree, const Interval& positions, int depth)
        : tree_(tree),
          positions_(positions),
          outer_(depth < 0 ? -1 : static_cast<int>(tree.levels_[static_cast<std::size_t>(depth)].level)),
          level_(depth + 1 < static_cast<int>(tree.levels_.size())
                     ? static_cast<int>(tree.levels_[static_cast<std::size_t>(depth + 1)].level)
                     : static_cast<int>(tree.job_.levels().size())),
          inner_(level_ < static_cast<int>(tree.job_.levels().size()) ? &level(level_) : nullptr) {}

    std::int32_t index_of(std::int64_t position) const {
        const auto at = static_cast<std::int32_t>(position);
        return inner_ ? inner_->group_of(at) : at;
    }
    Interval subgroup(std::int32_t index) const {
        const std::int64_t begin = inner_ ? inner_->first(index) : index;
        const std::int64_t end = inner_ ? inner_->end(index) : index + 1;
        const std::int64_t first = std::max(begin, positions_.first);
        return {first, std::min(end, positions_.end()) - first};
    }
    /// One list of members, or two where the root has a side on the left.
    std::vector<Members> trees() const {
        const std::int32_t first = index_of(positions_.first);
        const std::int32_t end = index_of(positions_.end() - 1) + 1;
        std::vector<Members> out(1);
        if (!tree_.has_root(positions_)) {
            out[0].add(first, end - first);
            return out;
        }
        const std::int32_t root = index_of(tree_.root_);
        if (tree_.numbering_ == Numbering::sides) {
            out[0].add(root, end - root);
            if (root > first) out.emplace_back().add(root, root - first + 1, -1);
            return out;
        }
        std::int32_t low = root;
        std::int32_t high = root + 1;
        out[0].add(root, 1);
        const auto widen = [&](std::int32_t begin, std::int32_t past) {
            out[0].add(high, past - high);
            out[0].add(begin, low - begin);
            low = begin, high = past;
        };
        for (int between = level_ - 1; between > outer_; --between) {
            const topology::Partition& groups = level(between);
            const std::int32_t around = groups.group_of(static_cast<std::int32_t>(tree_.root_));
            widen(index_of(std::max<std::int64_t>(groups.first(around), positions_.first)),
                  index_of(std::min<std::int64_t>(groups.end(around), positions_.end()) - 1) + 1);
        }
        widen(first, end);
        return out;
    }
    Blocks blocks_of(const Members& members, SubTree tree) const {
        Blocks blocks;
        members.for_each_run(tree, [&](std::int32_t lowest, std::int32_t highest) {
            const std::int64_t begin = subgroup(lowest).first;
            blocks.insert({begin, subgroup(highest).end() - begin});
        });
        return blocks;
    }

  private:
    const topology::Partition& level(int index) const {
        return tree_.job_.levels()[static_cast<std::size_t>(index)].groups;
    }

    const TopologyTree& tree_;
    Interval positions_;
    int outer_, level_;  ///< levels of the job that this group and its subgroups belong to
    const topology::Partition* inner_;
};

TopologyTree::TopologyTree(const Job& job, Interval range, Position root, std::vector<LevelShape> levels, TreeShape top,
                           Numbering numbering)
    : job_(job), range_(range), root_(root.value), levels_(std::move(levels)), top_(top), numbering_(numbering) {}

Interval TopologyTree::group_around(std::int64_t position, int depth) const {
    if (depth < 0) return range_;
    if (depth >= static_cast<int>(levels_.size())) return {position, 1};
    const topology::Partition& groups = job_.levels()[levels_[static_cast<std::size_t>(depth)].level].groups;
    const std::int32_t group = groups.group_of(static_cast<std::int32_t>(position));
    const std::int64_t first = std::max<std::int64_t>(groups.first(group), range_.first);
    return {first, std::min<std::int64_t>(groups.end(group), range_.end()) - first};
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
        if (leader(group_around(position.value, depth + 1)) != position.value) continue;
        const Group group(*this, group_around(position.value, depth), depth);
        const TreeShape shape = depth < 0 ? top_ : levels_[static_cast<std::size_t>(depth)].shape;
        const std::string stage =
            depth < 0 ? "top" : job_.levels()[levels_[static_cast<std::size_t>(depth)].level].name;
        const auto link = [&](const Members& members, std::int32_t peer, SubTree below) {
            const std::int64_t at = leader(group.subgroup(members.index(peer)));
            return TreeLink{{static_cast<std::int32_t>(at)}, group.blocks_of(members, below), stage, shape.shared};
        };
        const std::size_t before = out.children.size();
        for (const Members& members : group.trees()) {
            const auto me = members.member(group.index_of(position.value));
            if (!me) continue;
            for (const SubTree& child : shape.children(*me, members.size()))
                out.children.push_back(link(members, child.first, child));
            if (const auto parent = shape.parent(*me, members.size()))
                out.parent = link(members, *parent, shape.subtree(*me, members.size()));
        }
        // A star's farthest members are served first, so that messages over slow outer links start earliest.
        if (shape.is_star())
            std::stable_sort(out.children.begin() + static_cast<std::ptrdiff_t>(before), out.children.end(),
                             [&](const TreeLink& a, const TreeLink& b) {
                                 return outermost_crossed(position, a.peer) < outermost_crossed(position, b.peer);
                             });
    }
    return out;
}

}  // namespace palmette::collectives
