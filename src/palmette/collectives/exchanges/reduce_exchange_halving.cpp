// Recursive halving, and doubling back.
//
//   p = 4, parts A B C D of the vector; who holds which partial result:
//       0: ABCD ─┐ AB  ─┐ A          0 and 1 exchange halves, then 0 and 2, 1 and 3 quarters; the allgather takes
//       1: ABCD ─┘ CD  ─│┐C          the same way back
//       2: ABCD ─┐ AB  ─┘│B
//       3: ABCD ─┘ CD  ──┘D
#include "palmette/collectives/exchanges/reduce_exchange.hpp"

namespace palmette::collectives {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::StepId;

std::int32_t power_of_two_in(std::int32_t n) {
    std::int32_t power = 1;
    while (power <= n / 2) power *= 2;
    return power;
}

Halving::Halving(const ReduceContext& context)
    : context_(context), fold_{context.n, power_of_two_in(context.n)}, self_(fold_.core_index(context.me)) {
    while (1 << stages_ < fold_.core) ++stages_;
}

Interval Halving::kept(int stage) const {
    Interval slots{0, fold_.core >> stage};
    for (int s = 0; s < stage; ++s)
        if (self_ >> s & 1) slots.first += fold_.core >> (s + 1);
    return slots;
}

Blocks Halving::blocks_of_slots(Interval slots) const {
    if (!scatter_)
        return context_.blocks_of(static_cast<std::int32_t>(slots.first), static_cast<std::int32_t>(slots.count));
    // The owner of slot x is x with its bits reversed: the owners of a range of slots share their low bits.
    std::int32_t index = 0;
    std::int32_t step = fold_.core;
    for (int s = 0; s < stages_ && (fold_.core >> (s + 1)) >= slots.count; ++s)
        if (slots.first & fold_.core >> (s + 1)) index |= 1 << s;
    for (std::int64_t count = slots.count; count > 1; count /= 2) step /= 2;
    Blocks out;
    for (; index < fold_.core; index += step) {
        const std::int32_t participant = fold_.participant(index);
        out.unite(context_.blocks_of(participant, fold_.takes(participant) ? 2 : 1));
    }
    return out;
}

HeldBlocks Halving::fold_in() {
    HeldBlocks held{context_.input, context_.ready};
    if (!fold_.takes(context_.me)) return held;
    const Blocks all = blocks_of_slots({0, fold_.core});
    const StepId got = context_.recv(context_.me + 1, 0, context_.layer(0), all, {});
    held.ready.push_back(got);
    return {context_.work, {context_.reduce(held.buffer, context_.layer(0), context_.work, all, held.ready)}};
}

HeldBlocks Halving::halve(HeldBlocks held) {
    std::vector<StepId> used[2];
    if (fold_.takes(context_.me)) used[0] = held.ready;
    for (int stage = 0; stage < stages_; ++stage) {
        const std::int32_t peer = self_ ^ 1 << stage;
        const std::int32_t other = fold_.participant(peer);
        const Interval before = kept(stage);
        const Interval keep = kept(stage + 1);
        const Interval give{keep.first == before.first ? keep.end() : before.first, keep.count};
        const Blocks mine = blocks_of_slots(keep);
        const Buffer landing = context_.layer(static_cast<std::size_t>(stage % 2));
        const StepId got = context_.recv(other, 1 + stage, landing, mine, used[stage % 2]);
        given_.push_back(context_.send(other, 1 + stage, held.buffer, blocks_of_slots(give), held.ready));
        held.ready.push_back(got);
        const bool left = self_ < peer;
        const StepId reduced = context_.reduce(left ? held.buffer : landing, left ? landing : held.buffer,
                                               context_.work, mine, held.ready);
        used[stage % 2] = {reduced};
        held = {context_.work, {reduced}};
    }
    return held;
}

HeldBlocks Halving::reduce_parts() {
    if (!fold_.gives(context_.me)) return halve(fold_in());
    given_ = {context_.send(context_.me - 1, 0, context_.input, context_.blocks_of(0, fold_.core), context_.ready)};
    return {context_.input, {}};
}

std::vector<StepId> Halving::collect_parts(std::vector<StepId> ready) {
    const std::int32_t last_tag = 1 + 2 * stages_;
    const Blocks all = blocks_of_slots({0, fold_.core});
    if (fold_.gives(context_.me)) return {context_.recv(context_.me - 1, last_tag, context_.result, all, given_)};
    for (int stage = stages_ - 1; stage >= 0; --stage) {
        const std::int32_t other = fold_.participant(self_ ^ 1 << stage);
        const Interval before = kept(stage);
        const Interval have = kept(stage + 1);
        const Interval lack{have.first == before.first ? have.end() : before.first, have.count};
        // The half must have been sent before its result is received in its place.
        std::vector<StepId> left;
        if (!given_.empty()) left = {given_[static_cast<std::size_t>(stage)]};
        const Blocks missing = blocks_of_slots(lack), held = blocks_of_slots(have);
        std::optional<StepId> got;
        if (!missing.empty()) got = context_.recv(other, 1 + stages_ + stage, context_.result, missing, left);
        if (!held.empty()) context_.send(other, 1 + stages_ + stage, context_.result, held, ready);
        if (got) ready.push_back(*got);
    }
    if (fold_.takes(context_.me)) context_.send(context_.me + 1, last_tag, context_.result, all, ready);
    return ready;
}

std::int32_t Halving::owner(std::int32_t part, std::int32_t n) {
    const Fold fold{n, power_of_two_in(n)};
    // The first exchange splits the halves: the lowest bit of the participant is the highest bit of the part.
    std::int32_t index = 0;
    for (std::int32_t half = fold.core / 2, bit = 1; half > 0; half /= 2, bit *= 2)
        if (part & half) index |= bit;
    return fold.participant(index);
}

void Halving::reduce_scatter() {
    scatter_ = true;
    const std::int32_t last_tag = 1 + 2 * stages_;
    const Blocks own = context_.blocks_of(context_.me, 1);
    if (fold_.gives(context_.me)) {
        context_.send(context_.me - 1, 0, context_.input, context_.blocks_of(0, context_.n), context_.ready);
        context_.recv(context_.me - 1, last_tag, context_.result, own, {});
        return;
    }
    const HeldBlocks held = halve(fold_in());
    if (fold_.takes(context_.me))
        context_.send(context_.me + 1, last_tag, held.buffer, context_.blocks_of(context_.me + 1, 1), held.ready);
    context_.builder.copy(held.buffer, context_.result, own, held.ready, context_.slice);
}

}  // namespace palmette::collectives
