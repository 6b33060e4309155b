#include "palmette/runtime/state/repeated_counts.hpp"

#include <algorithm>

#include "palmette/runtime/state/work.hpp"
#include "palmette/runtime/transport/agreement.hpp"

namespace palmette::runtime {
namespace {

/// Blocks may differ by so much for a choice by the longest.
constexpr std::int64_t most_uneven = 2;
/// Before an agreement the counts must have been the same for so many calls.
constexpr std::int64_t least_unchanged = 2;
constexpr std::int64_t longest_pause = 1024;

std::vector<std::int64_t> lengths_of(const CallerBuffer& buffer, int ranks) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) out[static_cast<std::size_t>(r)] = buffer.bytes(r);
    return out;
}

}  // namespace

std::int64_t RepeatedCounts::agreed_block(const Work& work) {
    const int ranks = work.state->size();
    last_.resize(2 * static_cast<std::size_t>(ranks), -1);
    bool same = true;
    std::int64_t shortest = INT64_MAX;
    std::int64_t longest = 0;
    for (int r = 0; r < ranks; ++r)
        for (const bool sends : {true, false}) {
            const std::int64_t bytes = (sends ? work.send : work.recv).bytes(r);
            std::int64_t& last = last_[2 * static_cast<std::size_t>(r) + (sends ? 0 : 1)];
            same = same && last == bytes;
            last = bytes;
            shortest = std::min(shortest, bytes);
            longest = std::max(longest, bytes);
        }
    unchanged_ = same ? unchanged_ + 1 : 0;
    if (++calls_ != next_agreement_) return agreed_block_;
    next_agreement_ *= 4;
    const auto all = agree_on_blocks(work.state->shadow_comm(), {unchanged_ >= least_unchanged, shortest, longest});
    agreed_block_ =
        all && all->repeat && all->shortest > 0 && all->longest / most_uneven <= all->shortest ? all->longest : -1;
    return agreed_block_;
}

bool RememberedLengths::are_those_of(const Work& work) const {
    for (std::size_t r = 0; r < send_.size(); ++r)
        if (work.send.bytes(static_cast<int>(r)) != send_[r] || work.recv.bytes(static_cast<int>(r)) != recv_[r])
            return false;
    return true;
}

void RememberedLengths::exchanged(const Work& work, const RelayedCounts& relayed, const BoundProgram& bound) {
    if (pause_ > 0) {
        --pause_;
        return;
    }
    send_ = lengths_of(work.send, work.state->size());
    recv_ = lengths_of(work.recv, work.state->size());
    relayed_ = relayed;
    const bool none_empty = std::ranges::none_of(send_, [](std::int64_t bytes) { return bytes == 0; }) &&
                            std::ranges::none_of(recv_, [](std::int64_t bytes) { return bytes == 0; });
    const bool in_messages = std::ranges::all_of(bound.steps, [](const BoundStep& step) {
        return !plan::is_remote(step.kind) ||
               (plan::is_message(step.kind) && step.transport != MpiExecutor::node_index && step.bytes > 0 &&
                step.bytes <= most_message_bytes);
    });
    armed_ = all_true(work.state->shadow_comm(), none_empty && in_messages).value_or(false);
    if (!armed_) changed();
}

void RememberedLengths::changed() {
    armed_ = false;
    pause_ = next_pause_;
    next_pause_ = std::min(2 * next_pause_, longest_pause);
}

}  // namespace palmette::runtime
