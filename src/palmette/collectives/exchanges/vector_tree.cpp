#include "palmette/collectives/exchanges/vector_tree.hpp"

#include <algorithm>

namespace palmette::collectives {

using plan::Buffer;
using plan::StepId;

HeldBlocks VectorTree::up(HeldBlocks held, Buffer work, std::int32_t tag) {
    const auto right =
        std::find_if(place_.children.begin(), place_.children.end(), [&](Position p) { return p.value > self_.value; });
    std::vector<Position> turn(std::make_reverse_iterator(right), place_.children.rend());
    turn.insert(turn.end(), right, place_.children.end());
    std::vector<StepId> reduced(turn.size());
    for (std::size_t i = 0; i < turn.size(); ++i) {
        const Buffer landing = plan::scratch_layer(i % most_layers);
        scratch_.need(landing, blocks_);
        const auto free = i < most_layers ? std::vector<StepId>() : std::vector<StepId>{reduced[i - most_layers]};
        held.ready.push_back(builder_.recv(job_.rank_at(turn[i]), tag, landing, blocks_, free, slice_));
        const bool left = turn[i].value < self_.value;
        if (plan::is_scratch(work)) scratch_.need(work, blocks_);
        reduced[i] = builder_.reduce(left ? landing : held.buffer, left ? held.buffer : landing, work, blocks_,
                                     held.ready, slice_);
        held = {work, {reduced[i]}};
    }
    if (place_.parent)
        sent_ = {builder_.send(job_.rank_at(*place_.parent), tag, held.buffer, blocks_, held.ready, slice_)};
    return held;
}

std::vector<StepId> VectorTree::down(const HeldBlocks& whole, Buffer result, std::int32_t tag) {
    HeldBlocks held = whole;
    if (place_.parent)
        held = {result, {builder_.recv(job_.rank_at(*place_.parent), tag, result, blocks_, sent_, slice_)}};
    for (const Position child : place_.children)
        builder_.send(job_.rank_at(child), tag, held.buffer, blocks_, held.ready, slice_);
    return held.ready;
}

}  // namespace palmette::collectives
