// Bine trees and butterflies: binomial ones with negabinary distances, about a third shorter on average. Peer
// arithmetic only.
//
// In step j partners are 1, -1, 3, -5, 11, ... = (1 - (-2)^(j+1)) / 3 apart: an even member's partner is so far above
// it, an odd one's so far below, modulo p. The tree of a broadcast takes the steps from the longest distance to the
// shortest:
//
//     p = 8        0 ──3──► 3
//                  0 ─-1──► 7    3 ─-1──► 4
//                  0 ──1──► 1    3 ──1──► 2    7 ──1──► 6    4 ──1──► 5
//
// De Sensi et al.: "Bine trees: enhancing collective operations by optimizing communication locality", SC 2025. For p
// that is no power of two, the first members form pairs, so that a power of two pairs and single members take part:
// palmette's extension, still ceil(lg p) steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace palmette::collectives {

/// The butterfly among p = 2^s members.
struct BineButterfly {
    std::int32_t p = 1;

    std::int32_t steps() const;
    /// The partner of a member in step 0 <= step < steps(), nearest first.
    std::int32_t partner(std::int32_t member, std::int32_t step) const;
    /// After the first `steps` steps of an allgather a member holds the contributions of 2^steps consecutive members,
    /// modulo p: the first of them.
    std::int32_t first_held(std::int32_t member, std::int32_t steps) const;
};

/// Any number of members as a power of two groups of one or two consecutive members.
class BinePairs {
  public:
    explicit BinePairs(std::int32_t p);
    std::int32_t groups() const { return groups_; }
    /// The first member of a group; first(groups()) is p.
    std::int32_t first(std::int32_t group) const { return group + (group < pairs_ ? group : pairs_); }
    std::int32_t group_of(std::int32_t member) const { return member < 2 * pairs_ ? member / 2 : member - pairs_; }

  private:
    std::int32_t groups_, pairs_;
};

/// A member's neighbours in the tree that is rooted at member 0, for any p.
struct BineNeighbours {
    std::optional<std::int32_t> parent;
    std::vector<std::int32_t> children;  ///< in the order of a broadcast: the largest subtree first
};
BineNeighbours bine_tree(std::int32_t p, std::int32_t member);

}  // namespace palmette::collectives
