// Routing of one primitive's data over the tree, from one rank's view.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palmette/compose/composition.hpp"
#include "palmette/compose/hierarchy.hpp"

namespace palmette::compose {

/// A message of one primitive: its stage, and the peer's position.
struct Edge {
    std::int32_t stage = 0;
    std::int32_t peer = 0;
    bool sends = false;
};

/// Common properties of the primitives of one phase and kind, which decide the choice of relays.
struct Manner {
    bool one_root = false;   ///< they have the same root, which represents its groups itself
    bool one_other = false;  ///< each has one other rank, the same, which is addressed directly
    bool dense = false;      ///< one other rank each, and most pairs occur: relays in the target groups pay
    bool ordered = false;    ///< partial results must stay in the order of positions
};

/// Routes of multicasts from a root to a set, over a tree. Level by level: inside of the root's group the data goes to
/// the group's own targets and to the group's representative (the lane's, at an offset for each stripe), then to one
/// rank of every other group that has targets, which forwards it inside; where the root represents its group itself,
/// its own targets get it last as well. A reduction is the same in reverse.
///
///     8 ranks in groups of 4, root 1, lanes=all, all are targets        stripes=2, the second one
///     stage 0                                                           1 → 0 2 3
///     stage 1   1 → 5                                                   3 → 7
///     stage 2   1 → 0 2 3, 5 → 4 6 7                                    7 → 4 5 6
///
/// Stripes go through ranks that are as far from each other as the node allows, so that on nodes with one network
/// adapter per socket every adapter gets its part.
class Router {
  public:
    /// One method a level, outermost first; `tree` must outlive this. Throws base::Error on another number of methods.
    Router(const Tree& tree, std::vector<Method> methods, std::int32_t stripes = 1);

    /// Upper bound of the stages of any multicast; messages of one stage don't wait for each other.
    std::int32_t stages() const { return duration_[0]; }
    /// "between nodes", "inside of nodes, first"...
    std::string stage_name(std::int32_t stage) const;
    /// How the messages of a stage should be carried where that is possible.
    Method::Transport transport(std::int32_t stage) const;

    /// Appends the messages of position `me` when `root` multicasts to `others` (positions).
    void multicast(std::int32_t me, std::int32_t root, const RankSet& others, std::int32_t stripe, Manner manner,
                   std::vector<Edge>& out) const;
    /// Edges of the reduction that reverses multicast(): `others` contribute, `root` gets the result.
    void reduce(std::int32_t me, std::int32_t root, const RankSet& others, std::int32_t stripe, Manner manner,
                std::vector<Edge>& out) const;

  private:
    struct Walk;
    std::int32_t exit_of(std::size_t level, std::int32_t group, const Walk& walk, std::int32_t from) const;
    std::int32_t entry_of(std::size_t level, std::int32_t from_group, std::int32_t group, const Walk& walk,
                          std::int32_t from, std::int32_t exit) const;
    void descend(std::size_t level, std::int32_t first, std::int32_t end, std::int32_t from, std::int32_t stage,
                 Walk& walk) const;
    void across(std::size_t level, std::int32_t from_group, std::int32_t self, std::int32_t from, std::int32_t exit,
                std::int32_t stage, Walk& walk) const;
    std::int32_t lane_of(std::size_t level, std::int32_t group, const Walk& walk, std::int32_t from) const;
    /// The rank that relays a stripe of a rank's own data.
    std::int32_t neighbour(std::size_t level, std::int32_t group, std::int32_t from, std::int32_t stripe) const;

    const Tree& tree_;
    std::vector<Method> methods_;
    std::int32_t stripes_;
    std::vector<std::int32_t> crossing_;  ///< by level: stages of its own
    std::vector<std::int32_t> duration_;  ///< by level: including all levels inside of it
};

}  // namespace palmette::compose
