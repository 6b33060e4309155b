#include "palmette/model/own_messages.hpp"

#include <algorithm>

namespace palmette::model {
namespace {

using topology::Job;
using Lengths = std::function<std::int64_t(std::int32_t)>;

/// Of positions first to end - 1.
Traffic between(const Job& job, std::int32_t first, std::int32_t end, const Lengths& sent, const Lengths& received) {
    Traffic out;
    for (std::int32_t position = first; position < end; ++position) {
        const std::int32_t other = job.rank_at({position}).value;
        out.out += sent(other);
        out.in += received(other);
    }
    return out;
}

bool any(const Traffic& traffic) { return traffic.out > 0 || traffic.in > 0; }

}  // namespace

OwnMessages own_messages(const Job& job, topology::Rank rank, const Lengths& sent, const Lengths& received) {
    OwnMessages out;
    const std::int32_t position = job.position_of(rank).value;
    const Traffic all = between(job, 0, job.size(), sent, received);
    Traffic parent = all;  // with ranks of the group above
    for (const topology::JobLevel& level : job.levels()) {
        const std::int32_t group = level.groups.group_of(position);
        const Traffic own = between(job, level.groups.first(group), level.groups.end(group), sent, received);
        out.levels.push_back({all.out - own.out, all.in - own.in});
        if (any({parent.out - own.out, parent.in - own.in}))
            out.latency_s = std::max(out.latency_s, level.costs.latency_s);
        parent = own;
    }
    const std::int64_t to_itself = sent(rank.value);
    if (any({parent.out - to_itself, parent.in - to_itself}))
        out.latency_s = std::max(out.latency_s, job.inside().latency_s);
    if (job.memory().copy_bytes_per_s > 0) out.copy_s = static_cast<double>(to_itself) / job.memory().copy_bytes_per_s;
    return out;
}

}  // namespace palmette::model
