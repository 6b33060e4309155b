// Reduce-scatter and allgather around a ring, and by direct exchange with the owner of each part.
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
    : context_(context), routes_{{context.me, {}, {}}} {
    // The schedule is ordered by distance from the source: first the arrival, then the sends that forward it.
    for (const Exchange& exchange : nested_ring(context.n, context.me, nested)) {
        if (!exchange.send) routes_.push_back({exchange.range.first, {exchange.peer, exchange.tag}, {}});
        if (exchange.send) routes_.back().to.push_back({exchange.peer, exchange.tag});
    }
    done_.resize(routes_.size());
}

void ReduceRing::reduce_scatter() {
    // Reversed in time: partial results are received from the part's targets, and sent to its source.
    for (std::size_t i = routes_.size(); i-- > 0;) {
        const PartRoute& route = routes_[i];
        const Blocks blocks = context_.blocks_of(route.part, 1);
        HeldBlocks held{context_.input, context_.ready};
        for (std::size_t child = 0; child < route.to.size(); ++child) {
            const Hop& hop = route.to[child];
            held.ready.push_back(context_.recv(hop.peer, hop.tag, context_.layer(child), blocks, {}));
            const Buffer target = i == 0 ? context_.result : context_.work;
            const StepId reduced = context_.reduce(held.buffer, context_.layer(child), target, blocks, held.ready);
            held = {target, {reduced}};
        }
        done_[i] = i == 0 ? held.ready.front()
                          : context_.send(route.from.peer, route.from.tag, held.buffer, blocks, held.ready);
    }
}

std::vector<StepId> ReduceRing::allgather(const std::vector<StepId>& own) {
    std::vector<StepId> complete;
    for (std::size_t i = 0; i < routes_.size(); ++i) {
        const PartRoute& route = routes_[i];
        const Blocks blocks = context_.blocks_of(route.part, 1);
        // The partial result must have been sent before the complete one is received in its place.
        std::vector<StepId> here{done_[0]};
        if (i == 0 && !own.empty()) here = own;
        if (i > 0)
            here = {context_.recv(route.from.peer, context_.n + route.from.tag, context_.result, blocks, {done_[i]})};
        for (const Hop& hop : route.to) context_.send(hop.peer, context_.n + hop.tag, context_.result, blocks, here);
        complete.insert(complete.end(), here.begin(), here.end());
    }
    return complete;
}

std::vector<StepId> DirectExchange::reduce_scatter() {
    const std::int32_t n = context_.n;
    const auto others = static_cast<std::size_t>(n - 1);
    // Each layer holds one part only, a p-th of the vector.
    constexpr std::size_t most_layers = 32;
    const std::size_t layers = std::min(at_once_ > 0 ? at_once_ : most_layers, others);
    const Blocks own = context_.blocks_of(context_.me, 1);
    const Buffer right_side = context_.layer(layers);
    HeldBlocks sum{context_.input, context_.ready};
    const bool owns = !own.intervals().empty();
    std::optional<HeldBlocks> right;
    std::vector<std::vector<StepId>> used(layers);
    for (std::size_t k = 1; k <= others; ++k) {
        const auto distance = static_cast<std::int32_t>(k);
        const std::int32_t from = (context_.me - distance + n) % n;
        // Neighbours first: those left of the own contribution are combined with it one by one. Those on its right
        // arrive from the far end inwards, so where order matters they are accumulated in a separate sum.
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
            right = HeldBlocks{right_side, {got}};
            continue;
        }
        HeldBlocks& into = apart ? *right : sum;
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
        // The own contribution to that part must have been sent before the result is received.
        if (const auto left = sent_to(from))
            complete.push_back(context_.recv(from, 1, context_.result, context_.blocks_of(from, 1), {*left}));
        if (!own.intervals().empty()) context_.send((context_.me + distance) % n, 1, context_.result, own, ready);
    }
    return complete;
}

}  // namespace palmette::collectives
