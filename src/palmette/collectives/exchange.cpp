#include "palmette/collectives/exchange.hpp"

#include <algorithm>

namespace palmette::collectives {

std::vector<plan::StepId> Exchanger::steps_that_brought(Range range) const {
    // Ranges are circular: two overlap when either's first lies in the other.
    const auto inside = [this](std::int32_t participant, Range r) { return (participant - r.first + n_) % n_ < r.count; };
    const auto overlap = [&](Range a, Range b) { return inside(a.first, b) || inside(b.first, a); };
    std::vector<plan::StepId> steps;
    if (inside(me_, range)) steps = own_;
    if (range.count == 1) {
        // The common case of rings: what goes on is what came last.
        for (std::size_t i = brought_.size(); i-- > 0;)
            if (overlap(brought_[i], range)) {
                steps.push_back(arrivals_[i].step);
                break;
            }
        return steps;
    }
    for (std::size_t i = 0; i < brought_.size(); ++i)
        if (overlap(brought_[i], range)) steps.push_back(arrivals_[i].step);
    return steps;
}

void Exchanger::run(const Schedule& schedule) {
    for (const Exchange& exchange : schedule) {
        const plan::Blocks blocks = blocks_of_(exchange.range);
        if (blocks.empty()) continue;
        const std::int32_t tag = first_tag_ + exchange.tag;
        if (exchange.send) {
            builder_.send(rank_of_(exchange.peer), tag, plan::Buffer::recv, blocks, steps_that_brought(exchange.range));
        } else {
            arrivals_.push_back({builder_.recv(rank_of_(exchange.peer), tag, plan::Buffer::recv, blocks, {}), blocks});
            brought_.push_back(exchange.range);
        }
    }
}

}  // namespace palmette::collectives
