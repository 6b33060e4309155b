#include "palmette/runtime/lengths/repeated_counts.hpp"

#include <algorithm>

#include "palmette/runtime/state/work.hpp"
#include "palmette/runtime/transport/agreement.hpp"

namespace palmette::runtime {
namespace {

/// Blocks may differ by so much for a choice by the longest.
constexpr std::int64_t most_uneven = 2;
constexpr std::int64_t longest_interval = 1024;
constexpr std::int64_t longest_pause = 4096;

/// Whether messages can tell by their length that counts have changed: none is empty, split, or the node transport's.
bool has_only_plain_messages(const execute::BoundProgram& bound) {
    return std::ranges::all_of(bound.steps, [](const execute::BoundStep& step) {
        if (!plan::is_remote(step.kind)) return true;
        return plan::is_message(step.kind) && step.transport != MpiExecutor::node_index && step.bytes > 0 &&
               step.bytes <= execute::most_message_bytes;
    });
}

}  // namespace

bool RememberedLengths::arm(Work& work, execute::Layout layout, RelayedCounts relayed, bool expected) {
    const auto keep = [&](Blocks& blocks, const CallerBuffer& buffer) {
        blocks = {};
        std::int64_t end = 0;
        for (int r = 0; r < work.state->size(); ++r) {
            blocks.lengths.push_back(buffer.bytes(r));
            blocks.offsets.push_back(end);
            end += buffer.bytes(r);
        }
        return end;
    };
    discarded_bytes_ = keep(send_, work.send);
    discarded_bytes_ = std::max(discarded_bytes_, keep(recv_, work.recv));
    relayed_ = std::move(relayed);
    bound_ = {};
    const execute::BoundProgram& bound = bound_for(work, layout);
    const bool none_empty = std::ranges::none_of(send_.lengths, [](std::int64_t bytes) { return bytes == 0; }) &&
                            std::ranges::none_of(recv_.lengths, [](std::int64_t bytes) { return bytes == 0; });
    armed_ =
        all_true(work.state->shadow_comm(), expected && none_empty && has_only_plain_messages(bound)).value_or(false);
    return armed_;
}

bool RememberedLengths::are_those_of(const Work& work) const {
    for (std::size_t r = 0; r < send_.lengths.size(); ++r)
        if (work.send.bytes(static_cast<int>(r)) != send_.lengths[r] ||
            work.recv.bytes(static_cast<int>(r)) != recv_.lengths[r])
            return false;
    return true;
}

const execute::BoundProgram& RememberedLengths::bound_for(const Work& work, execute::Layout layout) {
    // The relayed lengths are the same until `arm`: they needn't be compared.
    if (!bound_.holds(layout, work.state->size())) {
        layout.relayed_counts = &relayed_.sorted();
        bound_.program = execute::bind(work.plan->collective(), work.plan->program, *work.plan->route.job, layout);
        bound_.keep();
    }
    return bound_.program;
}

execute::BoundProgram RememberedLengths::bound_to_discard(const Work& work, execute::Layout layout) const {
    layout.send = {send_.lengths.data(), send_.offsets.data()};
    layout.recv = {recv_.lengths.data(), recv_.offsets.data()};
    layout.relayed_counts = &relayed_.sorted();
    return execute::bind(work.plan->collective(), work.plan->program, *work.plan->route.job, layout);
}

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
    return count(*work.state, same, shortest, longest);
}

void RepeatedCounts::count_erroneous(Communicator& state) { count(state, false, 0, 0); }

std::int64_t RepeatedCounts::count(Communicator& state, bool same, std::int64_t shortest, std::int64_t longest) {
    unchanged_ = same ? unchanged_ + 1 : 0;
    if (++calls_ != next_agreement_) return agreed_block_;
    next_agreement_ += std::min(3 * next_agreement_, longest_interval);
    remembered_.forget();
    const auto all = agree_on_blocks(state.shadow_comm(), {unchanged_ >= least_unchanged, shortest, longest});
    // After an error of the MPI ranks may know different things.
    if (!all) state.unusable = Refusal::no_state;
    const bool alike = all && all->repeat && all->shortest > 0 && all->longest <= most_uneven * all->shortest;
    agreed_block_ = alike ? all->longest : -1;
    return agreed_block_;
}

void RepeatedCounts::set_changed() {
    agreed_block_ = -1;
    served_ = false;
    remembered_.forget();
    next_agreement_ = calls_ + pause_;
    pause_ = std::min(2 * pause_, longest_pause);
}

namespace {

struct CountsOfAll : KeptState {
    std::array<RepeatedCounts, Communicator::AllLeftToMpi::irregular_count> of;
};

}  // namespace

RepeatedCounts* repeated_counts(Communicator& state, select::Function function) {
    const auto index = Communicator::AllLeftToMpi::irregular_index(function);
    if (!index || !state.left().repeats[*index]) return nullptr;
    return &state.kept().get<CountsOfAll>().of[*index];
}

Report::RefusedRow* refused_until_agreed(Communicator& state, select::Function function) {
    const auto index = Communicator::AllLeftToMpi::irregular_index(function);
    if (!index || !state.left().until_agreed[*index]) return nullptr;
    RepeatedCounts* const repeated = repeated_counts(state, function);
    return repeated && repeated->count_if_skipped() ? state.left().until_agreed[*index] : nullptr;
}

}  // namespace palmette::runtime
