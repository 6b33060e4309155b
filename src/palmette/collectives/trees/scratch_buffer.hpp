// Collects the scratch blocks that a program needs while its steps are generated.
#pragma once

#include <vector>

#include "palmette/plan/program.hpp"

namespace palmette::collectives {

/// Scratch memory by blocks. Slices or chunks that share blocks may request them several times; `reserve` allocates
/// each block once.
class ScratchBuffer {
  public:
    void need(plan::Buffer layer, const plan::Blocks& blocks) {
        if (layers_.size() <= plan::layer_of(layer)) layers_.resize(plan::layer_of(layer) + 1);
        auto& list = layers_[plan::layer_of(layer)];
        // Slices request the same blocks repeatedly.
        if (!list.empty() && blocks.intervals().size() == 1 && list.back() == blocks.intervals().front()) return;
        list.insert(list.end(), blocks.intervals().begin(), blocks.intervals().end());
    }
    void reserve(plan::ProgramBuilder& builder);

  private:
    std::vector<std::vector<plan::Interval>> layers_;
};

}  // namespace palmette::collectives
