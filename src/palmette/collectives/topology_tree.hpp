// One tree over all ranks, put together from a small tree in every group of every chosen level.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palmette/collectives/tree_shape.hpp"
#include "palmette/plan/blocks.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::collectives {

using topology::Job;
using topology::Position;

/// The tree that is used inside each group of one level.
struct LevelShape {
    std::size_t level = 0;  ///< index into Job::levels()
    TreeShape shape;
};

/// A neighbour in the tree, with the blocks (positions) at and below the lower of the two.
struct TreeLink {
    Position peer;
    plan::Blocks blocks;
    std::string stage;  ///< the level inside which the link runs, "top" above all
};

struct TreeNeighbours {
    std::optional<TreeLink> parent;
    std::vector<TreeLink>
        children;  ///< outermost level first; within a level the largest subtree first, in a star the farthest
};

/// A tree over the positions first..first+count-1, rooted anywhere. Every group of a chosen level has one leader: the root where it is
/// inside, else the group's first position. Inside a group the leaders of its subgroups form a tree of the level's shape; the leaders of
/// the outermost level form one of shape `top`. So each link of the machine below a chosen level carries each block once.
/// Kandalla, Subramoni, Vishnu, Panda: "Designing topology-aware collective communication algorithms for large scale
/// InfiniBand clusters", IPDPS workshops 2010, with any number of levels instead of two.
class TopologyTree {
  public:
    /// `levels` outermost first. `job` must outlive the tree.
    TopologyTree(const Job& job, plan::Interval range, Position root, std::vector<LevelShape> levels, TreeShape top);

    /// Parent and children of one position, from arithmetic on its own path: O(levels * (log groups + own children)).
    TreeNeighbours of(Position position) const;

  private:
    /// Group `index` of the chosen level `depth`; depth -1 is the whole range, depth levels_.size() single positions.
    plan::Interval group_around(std::int64_t position, int depth) const;
    std::int64_t leader(const plan::Interval& group) const;
    /// The outermost level at which two positions are in different groups; the number of levels where there is none.
    std::size_t outermost_crossed(Position a, Position b) const;

    const Job& job_;
    plan::Interval range_;
    std::int64_t root_;
    std::vector<LevelShape> levels_;
    TreeShape top_;
};

}  // namespace palmette::collectives
