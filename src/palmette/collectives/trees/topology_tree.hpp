// A topology-aware (hierarchical) tree over all ranks, composed of a small tree in every group of every chosen level.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palmette/collectives/trees/tree_shape.hpp"
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
    std::string stage;    ///< the level inside of which the link is, "top" above all
    bool shared = false;  ///< through shared memory
};

struct TreeNeighbours {
    std::optional<TreeLink> parent;
    std::vector<TreeLink>
        children;  ///< outermost level first; within a level the largest subtree first, in a star the farthest
};

/// How the members of a group with the root are numbered, where the root is in the middle; every other group is
/// numbered from its first member on.
///  - nested: the root's subgroup, then the rest of the smallest group of any level around it, and so on outwards: a
///    chain leaves no group twice;
///  - sides: two trees, one over the root and what comes after it and one, in the other direction, over the root and
///    what comes before it. Every subtree is an interval, so that a reduction can keep the order of positions.
enum class Numbering : std::uint8_t { nested, sides };

/// A tree over the positions first..first+count-1, rooted anywhere. Every group of a chosen level has one leader: the
/// root where it is inside, else the group's first position. Inside a group the leaders of its subgroups form a tree of
/// the level's shape; the leaders of the outermost level form one of shape `top`. So each link of the machine below a
/// chosen level carries each block once. Kandalla, Subramoni, Vishnu, Panda: "Designing topology-aware collective
/// communication algorithms for large scale InfiniBand clusters", IPDPS workshops 2010, with any number of levels
/// instead of two.
class TopologyTree {
  public:
    /// `levels` outermost first. `job` must outlive the tree.
    TopologyTree(const Job& job, plan::Interval range, Position root, std::vector<LevelShape> levels, TreeShape top,
                 Numbering numbering = Numbering::nested);

    /// Parent and children of one position, by arithmetic on its own path: O(levels * (log groups + own children)).
    TreeNeighbours of(Position position) const;

  private:
    class Members;
    class Group;

    /// Group `index` of the chosen level `depth`; depth -1 is the whole range, depth levels_.size() single positions.
    plan::Interval group_around(std::int64_t position, int depth) const;
    bool has_root(const plan::Interval& group) const { return root_ >= group.first && root_ < group.end(); }
    std::int64_t leader(const plan::Interval& group) const { return has_root(group) ? root_ : group.first; }
    /// The outermost level at which two positions are in different groups; the number of levels where there is none.
    std::size_t outermost_crossed(Position a, Position b) const;

    const Job& job_;
    plan::Interval range_;
    std::int64_t root_;
    std::vector<LevelShape> levels_;
    TreeShape top_;
    Numbering numbering_;
};

}  // namespace palmette::collectives
