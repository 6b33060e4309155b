#include "palmette/collectives/exchanges/exchange.hpp"

#include <algorithm>

namespace palmette::collectives {

std::vector<plan::StepId> Exchanger::steps_that_received(Range range, std::uint16_t part) const {
    const auto inside = [this](std::int32_t participant, Range r) {
        const std::int32_t distance = (participant - r.first + n_) % n_;
        return distance % r.stride == 0 && distance / r.stride < r.count;
    };
    // Ranges are circular: two without gaps overlap when either's first lies in the other.
    const auto overlap = [&](Range a, Range b) {
        if (a.stride == 1 && b.stride == 1) return inside(a.first, b) || inside(b.first, a);
        const Range& fewer = a.count < b.count ? a : b;
        const Range& more = a.count < b.count ? b : a;
        for (std::int32_t i = 0; i < fewer.count; ++i)
            if (inside(static_cast<std::int32_t>((fewer.first + std::int64_t{i} * fewer.stride) % n_), more))
                return true;
        return false;
    };
    std::vector<plan::StepId> steps;
    if (inside(me_, range)) steps = own_;
    if (range.count == 1) {
        // Fast path for rings: the last arrival is forwarded.
        for (std::size_t i = received_.size(); i-- > 0;)
            if (overlap(received_[i], range)) {
                steps.push_back(arrivals_[i].step + part);
                break;
            }
        return steps;
    }
    for (std::size_t i = 0; i < received_.size(); ++i)
        if (overlap(received_[i], range)) steps.push_back(arrivals_[i].step + part);
    return steps;
}

void Exchanger::run(const Schedule& schedule) {
    for (const Exchange& exchange : schedule) {
        const plan::Blocks blocks = blocks_of_range(exchange.range, n_, blocks_of_);
        if (blocks.empty()) continue;
        const std::int32_t first_tag = first_tag_ + exchange.tag * parts_;
        if (!exchange.send) {
            // The slices of an arrival are consecutive steps.
            plan::StepId first = 0;
            for (std::uint16_t part = 0; part < parts_; ++part) {
                const plan::StepId step = builder_.recv(rank_of_(exchange.peer), first_tag + part, plan::Buffer::recv,
                                                        blocks, {}, {part, parts_});
                if (part == 0) first = step;
            }
            arrivals_.push_back({first, blocks});
            received_.push_back(exchange.range);
            continue;
        }
        for (std::uint16_t part = 0; part < parts_; ++part)
            builder_.send(rank_of_(exchange.peer), first_tag + part, plan::Buffer::recv, blocks,
                          steps_that_received(exchange.range, part), {part, parts_});
    }
}

}  // namespace palmette::collectives
