// Multiway halving (reduce-scatter in groups), and back (allgather).
//
//   n = 6 = 3 x 2, parts A to F; what participant 1 holds:    ABCDEF   1 ⇄ 3, 5 (thirds)   AB   1 ⇄ 0 (halves)   B
#include "palmette/collectives/exchanges/reduce_exchange.hpp"

namespace palmette::collectives {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

MultiwayHalving::MultiwayHalving(const ReduceContext& context, std::int32_t radix) : context_(context) {
    std::int32_t first = 0, count = context.n;
    for (const std::int32_t members : divide(context.n, radix)) {
        const std::int32_t share = count / members;
        const std::int32_t me = (context.me - first) / share;
        stages_.push_back({first, members, share, me});
        first += me * share;
        count = share;
    }
}

HeldBlocks MultiwayHalving::reduce_parts() {
    HeldBlocks held{context_.input, context_.ready};
    const std::size_t landings = stages_.empty() ? 0 : static_cast<std::size_t>(stages_.front().members) - 1;
    std::vector<std::optional<StepId>> used(2 * landings);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
        const Stage& stage = stages_[s];
        const auto tag = static_cast<std::int32_t>(s);
        const Blocks mine = share_of(stage, stage.me);
        auto& sent = given_.emplace_back(stage.members);
        HeldBlocks sum = held;
        for (std::int32_t turn = 1; turn < stage.members; ++turn) {
            const std::int32_t to = (stage.me + turn) % stage.members;
            sent[static_cast<std::size_t>(to)] =
                context_.send(participant(stage, to), tag, held.buffer, share_of(stage, to), held.ready);
        }
        for (std::int32_t turn = 1; turn < stage.members; ++turn) {
            const std::int32_t from = (stage.me + stage.members - turn) % stage.members;
            const std::size_t place = s % 2 * landings + static_cast<std::size_t>(turn) - 1;
            const Buffer landing = context_.layer(place);
            sum.ready.push_back(context_.recv(participant(stage, from), tag, landing, mine,
                                              used[place] ? std::vector{*used[place]} : std::vector<StepId>{}));
            used[place] = context_.reduce(sum.buffer, landing, context_.work, mine, sum.ready);
            sum = {context_.work, {*used[place]}};
        }
        held = sum;
    }
    return held;
}

std::vector<StepId> MultiwayHalving::collect_parts(std::vector<StepId> ready) {
    for (std::size_t s = stages_.size(); s-- > 0;) {
        const Stage& stage = stages_[s];
        const auto tag = static_cast<std::int32_t>(stages_.size() + s);
        const Blocks held = share_of(stage, stage.me);
        std::vector<StepId> came = ready;
        for (std::int32_t turn = 1; turn < stage.members; ++turn) {
            const std::int32_t to = (stage.me + turn) % stage.members;
            if (!held.empty()) context_.send(participant(stage, to), tag, context_.result, held, ready);
            const std::int32_t from = (stage.me + stage.members - turn) % stage.members;
            const Blocks missing = share_of(stage, from);
            if (missing.empty()) continue;
            // The share must have been sent before its result is received in its place.
            std::vector<StepId> left;
            if (!given_.empty()) left = {*given_[s][static_cast<std::size_t>(from)]};
            came.push_back(context_.recv(participant(stage, from), tag, context_.result, missing, left));
        }
        ready = std::move(came);
    }
    return ready;
}

std::vector<StepId> MultiwayHalving::given() const {
    std::vector<StepId> out;
    for (const auto& stage : given_)
        for (const auto& step : stage)
            if (step) out.push_back(*step);
    return out;
}

}  // namespace palmette::collectives
