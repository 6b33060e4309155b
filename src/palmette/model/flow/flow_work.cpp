#include "palmette/model/flow/flow_work.hpp"

#include <algorithm>
#include <functional>

namespace palmette::model {

using plan::StepKind;

double busy_seconds(const GraphStep& step, const topology::MemoryCosts& memory, const topology::LevelCosts& costs) {
    const auto at = [&](double rate) { return rate > 0 ? step.bytes / rate : 0; };
    const auto or_stream = [&](double rate) { return rate > 0 ? rate : costs.stream_bytes_per_s; };
    switch (step.kind) {
        case StepKind::send:
        case StepKind::recv:
            return costs.overhead_s + (step.staged ? at(memory.copy_bytes_per_s) : 0);
        case StepKind::copy:
        case StepKind::expose:
            return at(memory.copy_bytes_per_s);
        case StepKind::reduce:
            return at(memory.reduce_bytes_per_s);
        case StepKind::pull:
            return at(or_stream(memory.copy_bytes_per_s));
        case StepKind::pull_reduce:
            return at(or_stream(memory.reduce_bytes_per_s));
    }
    return 0;
}

void FlowWork::add(std::uint32_t rank, double now, Id id) {
    auto& waiting = of(rank).waiting;
    waiting.emplace_back(now, id);
    std::push_heap(waiting.begin(), waiting.end(), std::greater<>());
}

std::optional<FlowWork::Id> FlowWork::take(std::uint32_t rank) {
    Rank& at = of(rank);
    if (at.busy || at.waiting.empty()) return std::nullopt;
    std::pop_heap(at.waiting.begin(), at.waiting.end(), std::greater<>());
    const Id id = at.waiting.back().second;
    at.waiting.pop_back();
    return id;
}

void FlowWork::begin(std::uint32_t rank, double seconds) {
    of(rank).busy = true;
    of(rank).busy_s += seconds;
}

std::pair<std::int32_t, double> FlowWork::busiest() const {
    std::pair<std::int32_t, double> found{0, 0};
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (ranks_[r].busy_s > found.second) found = {static_cast<std::int32_t>(r), ranks_[r].busy_s};
    return found;
}

}  // namespace palmette::model
