#include "palmette/collectives/trees/scratch_buffer.hpp"

#include <algorithm>

namespace palmette::collectives {

void ScratchBuffer::reserve(plan::ProgramBuilder& builder) {
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
        auto& list = layers_[layer];
        std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        plan::Blocks blocks;
        std::int64_t until = 0;
        for (const plan::Interval& interval : list) {
            const std::int64_t first = std::max(interval.first, until);
            blocks.insert({first, interval.end() - first});
            until = std::max(until, interval.end());
        }
        builder.reserve_scratch(blocks, plan::scratch_layer(layer));
    }
}

}  // namespace palmette::collectives
