// Which way the data of one primitive goes, seen by one rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palmette/compose/composition.hpp"
#include "palmette/compose/hierarchy.hpp"

namespace palmette::compose {

/// A message of one primitive: at which stage, with which position.
struct Edge {
    std::int32_t stage = 0;
    std::int32_t peer = 0;
    bool sends = false;
};

/// What the primitives of one phase and kind have in common, which decides who relays for whom.
struct Manner {
    bool one_root = false;   ///< they have the same root: it speaks for its groups itself
    bool one_other = false;  ///< each has one other rank, the same: it is spoken to itself
    bool dense = false;      ///< one other rank each, and most pairs occur: relays on the other side are worth it
    bool ordered = false;    ///< partial results must stay in the order of positions
};

/// Routes of multicasts from a root to a set, over a tree. Level by level: inside of the root's group the data goes to
/// the group's own targets and to the rank that speaks for it (the lane's, at an offset for each stripe), then across
/// to one rank of every other group that has targets, then on inside of these; where the root speaks for its group
/// itself, its own targets get it last as well. A reduction is the same, backwards in time.
///
///     8 ranks in groups of 4, root 1, lanes=all, all are targets        stripes=2, the second one
///     stage 0                                                           1 → 0 2 3
///     stage 1   1 → 5                                                   3 → 7
///     stage 2   1 → 0 2 3, 5 → 4 6 7                                    7 → 4 5 6
///
/// Stripes go through ranks that are as far from each other as the node allows: where it has several sockets with
/// adapters of their own, each gets its part.
class Router {
  public:
    /// One method a level, outermost first; `tree` must outlive this. Throws base::Error on another number of methods.
    Router(const Tree& tree, std::vector<Method> methods, std::int32_t stripes = 1);

    /// Stages that any multicast takes at most; messages of one stage don't wait for each other.
    std::int32_t stages() const { return duration_[0]; }
    /// "between nodes", "inside of nodes, first"...
    std::string stage_name(std::int32_t stage) const;
    /// Whether the messages of a stage had better be single copies where their ranks share a host.
    bool single_copies(std::int32_t stage) const;

    /// Appends the messages of position `me` when `root` multicasts to `others` (positions).
    void multicast(std::int32_t me, std::int32_t root, const RankSet& others, std::int32_t stripe, Manner manner,
                   std::vector<Edge>& out) const;
    /// The same backwards: `others` contribute, `root` gets the result.
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
    /// The rank that the stripe of a rank's own data goes through.
    std::int32_t neighbor(std::size_t level, std::int32_t group, std::int32_t from, std::int32_t stripe) const;

    const Tree& tree_;
    std::vector<Method> methods_;
    std::int32_t stripes_;
    std::vector<std::int32_t> crossing_;  ///< by level: stages of its own
    std::vector<std::int32_t> duration_;  ///< by level: with all levels inside of it
};

}  // namespace palmette::compose
