// Reduce-scatter and allgather around a ring, and straight to the owner of each part.
//
//   ring, p = 4, part A is 0's:   A: 1 ← 2 ← 3 and 0 ← 1, each adding its own; then 0 → 1 → 2 → 3
//   direct, p = 4:                A: 1, 2 and 3 send to 0; then 0 sends to 1, 2 and 3
#include <algorithm>

#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/exchanges/reduce_exchange.hpp"

namespace palmette::collectives {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

ReduceRing::ReduceRing(const ReduceContext& context, const std::vector<topology::Partition>& nested)
    : context_(context), passages_{{context.me, {}, {}}} {
    // The schedule comes by distance from the source: first the arrival, then where it goes on to.
    for (const Exchange& exchange : nested_ring(context.n, context.me, nested)) {
        if (!exchange.send) passages_.push_back({exchange.range.first, {exchange.peer, exchange.tag}, {}});
        if (exchange.send) passages_.back().to.push_back({exchange.peer, exchange.tag});
    }
    done_.resize(passages_.size());
}

void ReduceRing::reduce_scatter() {
    // Backwards in time: partial results come from where the part would go to, and leave to where it would come from.
    for (std::size_t i = passages_.size(); i-- > 0;) {
        const Passage& passage = passages_[i];
        const Blocks blocks = context_.blocks_of(passage.part, 1);
        Held held{context_.input, context_.ready};
        for (std::size_t child = 0; child < passage.to.size(); ++child) {
            const Hop& hop = passage.to[child];
            held.ready.push_back(context_.recv(hop.peer, hop.tag, context_.layer(child), blocks, {}));
            const Buffer target = i == 0 ? context_.result : context_.work;
            const StepId reduced = context_.reduce(held.buffer, context_.layer(child), target, blocks, held.ready);
            held = {target, {reduced}};
        }
        done_[i] = i == 0 ? held.ready.front()
                          : context_.send(passage.from.peer, passage.from.tag, held.buffer, blocks, held.ready);
    }
}

std::vector<StepId> ReduceRing::allgather() {
    std::vector<StepId> complete;
    for (std::size_t i = 0; i < passages_.size(); ++i) {
        const Passage& passage = passages_[i];
        const Blocks blocks = context_.blocks_of(passage.part, 1);
        // The partial result must have left before the whole one comes in at its place.
        const StepId here = i == 0 ? done_[0]
                                   : context_.recv(passage.from.peer, context_.n + passage.from.tag, context_.result,
                                                   blocks, {done_[i]});
        for (const Hop& hop : passage.to)
            context_.send(hop.peer, context_.n + hop.tag, context_.result, blocks, {here});
        complete.push_back(here);
    }
    return complete;
}

std::vector<StepId> DirectExchange::reduce_scatter() {
    const std::int32_t n = context_.n;
    const auto others = static_cast<std::size_t>(n - 1);
    // Each holds one part only, a p-th of the vector.
    constexpr std::size_t most_layers = 32;
    const std::size_t layers = std::min(at_once_ > 0 ? at_once_ : most_layers, others);
    const Blocks own = context_.blocks_of(context_.me, 1);
    const Buffer right_side = context_.layer(layers);
    Held sum{context_.input, context_.ready};
    const bool owns = !own.intervals().empty();
    std::optional<Held> right;
    std::vector<std::vector<StepId>> used(layers);
    for (std::size_t k = 1; k <= others; ++k) {
        const auto distance = static_cast<std::int32_t>(k);
        const std::int32_t from = (context_.me - distance + n) % n;
        // Neighbours first: to the left of the own contribution they join it one by one. Those at its right come from
        // the far end inwards, so where order matters they make up a sum of their own.
        const bool apart = context_.ordered && from > context_.me;
        const std::size_t place = (k - 1) % layers;
        const bool begins = apart && !right;
        const Buffer landing = begins ? right_side : context_.layer(place);
        StepId got = 0;
        if (owns) got = context_.recv(from, 0, landing, own, begins ? std::vector<StepId>() : used[place]);

        const std::int32_t to = (context_.me + distance) % n;
        std::vector<StepId> waits = context_.ready;
        if (at_once_ > 0 && k > at_once_ && sent_[k - 1 - at_once_]) waits.push_back(*sent_[k - 1 - at_once_]);
        const Blocks theirs = context_.blocks_of(to, 1);
        sent_.emplace_back();
        if (!theirs.intervals().empty()) sent_.back() = context_.send(to, 0, context_.input, theirs, waits);

        if (!owns) continue;
        if (begins) {
            right = Held{right_side, {got}};
            continue;
        }
        Held& into = apart ? *right : sum;
        into.ready.push_back(got);
        const bool left = apart || from < context_.me;
        const Buffer target = apart ? right_side : context_.result;
        const StepId reduced =
            context_.reduce(left ? landing : into.buffer, left ? into.buffer : landing, target, own, into.ready);
        into = {target, {reduced}};
        used[place] = {reduced};
    }
    if (right) {
        sum.ready.insert(sum.ready.end(), right->ready.begin(), right->ready.end());
        sum = {context_.result, {context_.reduce(sum.buffer, right->buffer, context_.result, own, sum.ready)}};
    }
    return sum.ready;
}

std::vector<StepId> DirectExchange::allgather(const std::vector<StepId>& ready) {
    std::vector<StepId> complete = ready;
    const std::int32_t n = context_.n;
    const Blocks own = context_.blocks_of(context_.me, 1);
    for (std::int32_t distance = 1; distance < n; ++distance) {
        const std::int32_t from = (context_.me - distance + n) % n;
        // The own contribution to that part must have left before the result comes in.
        if (const auto left = sent_to(from))
            complete.push_back(context_.recv(from, 1, context_.result, context_.blocks_of(from, 1), {*left}));
        if (!own.intervals().empty()) context_.send((context_.me + distance) % n, 1, context_.result, own, ready);
    }
    return complete;
}

}  // namespace palmette::collectives
