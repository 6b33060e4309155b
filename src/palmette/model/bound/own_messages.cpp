#include "palmette/model/bound/own_messages.hpp"

#include <algorithm>

namespace palmette::model {
namespace {

using topology::Job;
using Lengths = std::function<std::int64_t(std::int32_t)>;

/// Sums of the bytes sent to and received from the ranks at positions first to end - 1.
Traffic between(const Job& job, std::int32_t first, std::int32_t end, const Lengths& sent, const Lengths& received) {
    Traffic out;
    for (std::int32_t position = first; position < end; ++position) {
        const std::int32_t other = job.rank_at({position}).value;
        out.out += sent(other);
        out.in += received(other);
    }
    return out;
}

}  // namespace

OwnMessages own_messages(const Job& job, topology::Rank rank, const Lengths& sent, const Lengths& received) {
    OwnMessages out;
    Traffic leaving;
    std::int32_t first = 0, end = job.size();  // the innermost group visited so far
    // Adds messages with peers in that group, but outside of the positions `from` to `to`.
    const auto leave = [&](std::int32_t from, std::int32_t to, double latency_s) {
        const Traffic before = between(job, first, from, sent, received), after = between(job, to, end, sent, received);
        const Traffic both{before.out + after.out, before.in + after.in};
        if (both.out > 0 || both.in > 0) out.latency_s = std::max(out.latency_s, latency_s);
        leaving = {leaving.out + both.out, leaving.in + both.in};
        first = from, end = to;
    };
    const std::int32_t position = job.position_of(rank).value;
    for (const topology::JobLevel& level : job.levels()) {
        const std::int32_t group = level.groups.group_of(position);
        leave(level.groups.first(group), level.groups.end(group), level.costs.latency_s);
        out.levels.push_back(leaving);
    }
    leave(position, position + 1, job.inside().latency_s);
    if (job.memory().copy_bytes_per_s > 0)
        out.copy_s = static_cast<double>(sent(rank.value)) / job.memory().copy_bytes_per_s;
    return out;
}

}  // namespace palmette::model
