// Reduce-scatter over skips (circulant graphs, PAT), any number of participants, and the allgather back.
//
//   n = 6, parts by their distance from the own one; what participant i sends away, and still holds:
//
//       circulant    345 to i+3, 2 to i+2, 1 to i+1      holds 012345, 012, 01, 0
//       pat          135 to i+1, 2 to i+2, 4 to i+4      holds 012345, 0 2 4, 0 4, 0
//
// A circulant graph sends most to the farthest, PAT to the nearest. Partial results of all parts but one have been
// combined with others before they are sent; the exception exists where n is odd.
#include "palmette/collectives/exchanges/reduce_exchange.hpp"

namespace palmette::collectives {

using plan::Blocks;
using plan::Buffer;
using plan::Region;
using plan::StepId;

Blocks SkipExchange::blocks_of(Range parts) const {
    return blocks_of_range(parts, context_.n, [this](Range range) {
        const std::int32_t straight = std::min(range.count, context_.n - range.first);
        Blocks out;
        if (straight < range.count) out = context_.blocks_of(0, range.count - straight);
        out.unite(context_.blocks_of(range.first, straight));
        return out;
    });
}

HeldBlocks SkipExchange::reduce_parts() {
    const SkipStep& first = steps_.back();
    // Whether the first step, which receives the most, has combined the part at a distance.
    const auto combined = [&first](std::int32_t distance) {
        return distance % first.stride == 0 && distance / first.stride < first.count;
    };
    given_.resize(steps_.size());
    HeldBlocks held{context_.input, context_.ready};
    std::vector<StepId> used[layers];
    for (std::size_t s = steps_.size(); s-- > 0;) {
        const SkipStep& step = steps_[s];
        const auto tag = static_cast<std::int32_t>(s);
        const std::size_t landing_at = (steps_.size() - 1 - s) % layers;
        const Buffer landing = context_.layer(landing_at);
        const std::int32_t last = step.skip + (step.count - 1) * step.stride;
        // The last part may lie in the input still: then both sides name its blocks last.
        const bool apart = s + 1 < steps_.size() && !combined(last);
        const std::int32_t together = apart ? step.count - 1 : step.count;
        const auto regions = [&](std::int32_t distance, Buffer buffer, Buffer buffer_of_last) {
            std::vector<Region> out;
            const auto add = [&out](const Blocks& blocks, Buffer lies_in) {
                for (const plan::Interval& interval : blocks.intervals()) out.push_back({lies_in, interval});
            };
            add(blocks_of(at(distance, together, step.stride)), buffer);
            if (apart) add(blocks_of(at(distance + together * step.stride, 1, 1)), buffer_of_last);
            return out;
        };
        const Blocks mine = blocks_of(at(0, step.count, step.stride));
        std::optional<StepId> got;
        if (!mine.empty()) {
            context_.scratch.need(landing, mine);
            got = context_.builder.recv(context_.rank_of(peer(-step.skip)), context_.first_tag + tag,
                                        regions(0, landing, landing), used[landing_at], context_.slice);
        }
        if (const auto given = regions(step.skip, held.buffer, context_.input); !given.empty())
            given_[s] = context_.builder.send(context_.rank_of(peer(step.skip)), context_.first_tag + tag, given,
                                              held.ready, context_.slice);
        const Buffer target = s == 0 ? context_.result : context_.work;
        if (got) {
            held.ready.push_back(*got);
            const StepId reduced = context_.reduce(held.buffer, landing, target, mine, held.ready);
            used[landing_at] = {reduced};
            held.ready = {reduced};
        }
        held.buffer = target;
    }
    return held;
}

std::vector<StepId> SkipExchange::collect_parts(std::vector<StepId> ready) {
    const auto count = static_cast<std::int32_t>(steps_.size());
    std::vector<std::pair<std::int32_t, StepId>> arrivals;  // distance of the nearest part that came, and the step
    for (std::int32_t s = 0; s < count; ++s) {
        const SkipStep& step = steps_[static_cast<std::size_t>(s)];
        const Blocks held = blocks_of(at(0, step.count, step.stride));
        const Blocks missing = blocks_of(at(step.skip, step.count, step.stride));
        std::vector<StepId> waits = ready;
        for (const auto& [distance, came] : arrivals)
            if (distance <= (step.count - 1) * step.stride) waits.push_back(came);
        if (!missing.empty()) {
            // Partial results must have been sent before the complete ones are received in their place.
            std::vector<StepId> left;
            if (const auto given = given_[static_cast<std::size_t>(s)]) left = {*given};
            arrivals.emplace_back(step.skip, context_.recv(peer(step.skip), count + s, context_.result, missing, left));
        }
        if (!held.empty()) context_.send(peer(-step.skip), count + s, context_.result, held, waits);
    }
    for (const auto& [distance, came] : arrivals) ready.push_back(came);
    return ready;
}

}  // namespace palmette::collectives
