// Symbolic contents of memory: what a block holds, as an expression over the contributions of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palmette/plan/blocks.hpp"

namespace palmette::plan {

/// A handle to an expression. Equal expressions have equal handles, so two results with the same expression tree,
/// operand for operand, are bitwise equal whatever the operation.
using Contents = std::int64_t;
inline constexpr Contents undefined_contents = -1;

/// All expressions that occur in one plan.
class Contributions {
  public:
    /// What rank `rank` contributes to block `block`.
    Contents leaf(std::int32_t rank, std::int64_t block);
    /// left op right. Nothing when their blocks differ or they have a contribution in common; `why` says which.
    std::optional<Contents> combine(Contents left, Contents right, std::string& why);

    std::int64_t block_of(Contents contents) const { return nodes_[static_cast<std::size_t>(contents)].block; }
    /// Runs of ranks in the order of the operands.
    const std::vector<Interval>& order_of(Contents contents) const {
        return nodes_[static_cast<std::size_t>(contents)].order;
    }
    bool holds(Contents contents, std::int32_t rank) const;
    /// The number of ranks in it.
    std::int64_t count(Contents contents) const;
    /// "the contribution of rank 3 to block 2", "the contributions of ranks 0 to 3 and 5 to block 2".
    std::string text(Contents contents) const;

  private:
    struct Node {
        std::int64_t block;
        std::vector<Interval> order;   ///< ranks, as operands stand
        std::vector<Interval> sorted;  ///< the ranks of `order`, ascending
    };
    std::vector<Node> nodes_;
    std::map<std::pair<std::int32_t, std::int64_t>, Contents> leaves_;
    std::map<std::pair<Contents, Contents>, Contents> combined_;
};

}  // namespace palmette::plan
