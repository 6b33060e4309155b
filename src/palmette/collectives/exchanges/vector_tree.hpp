// Tree reduction and broadcast of a vector: combined up the tree, and down again.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "palmette/collectives/exchanges/reduce_exchange.hpp"

namespace palmette::collectives {

using topology::Position;

/// One rank's parent and children in a tree.
struct TreePlace {
    std::optional<Position> parent;
    std::vector<Position> children;  ///< ascending
};

/// The steps of one rank for some blocks of a vector, `input` at the ranks and `result` where results are wanted.
class VectorTree {
  public:
    VectorTree(const Job& job, Position self, plan::ProgramBuilder& builder, ScratchBuffer& scratch, TreePlace place,
               plan::Blocks blocks, plan::Slice slice)
        : job_(job),
          self_(self),
          builder_(builder),
          scratch_(scratch),
          place_(std::move(place)),
          blocks_(std::move(blocks)),
          slice_(slice) {}

    /// Reduces: combines the children's partial results with `held` into `work`, neighbours first, so that the order of
    /// positions is kept; then sends to the parent. Returns the partial result.
    HeldBlocks up(HeldBlocks held, plan::Buffer work, std::int32_t tag);
    /// Broadcasts: receives the result from the parent, unless this is the root, and forwards it. `whole`: the root's.
    /// Returns the steps after which it is complete.
    std::vector<plan::StepId> down(const HeldBlocks& whole, plan::Buffer result, std::int32_t tag);
    /// After `up`: steps that still read what was sent to the parent.
    const std::vector<plan::StepId>& sent() const { return sent_; }
    const plan::Blocks& blocks() const { return blocks_; }
    bool root() const { return !place_.parent; }
    /// Layers of scratch from 0 on that `up` uses.
    std::size_t layers() const { return std::min(place_.children.size(), most_layers); }

  private:
    /// Number of receive buffers: so many children's arrivals may be outstanding ahead of the combines.
    static constexpr std::size_t most_layers = 16;

    const Job& job_;
    Position self_;
    plan::ProgramBuilder& builder_;
    ScratchBuffer& scratch_;
    TreePlace place_;
    plan::Blocks blocks_;
    plan::Slice slice_;
    std::vector<plan::StepId> sent_;
};

}  // namespace palmette::collectives
