#include "palmette/model/bound/crossed_edges.hpp"

#include <algorithm>

namespace palmette::model {

using base::Json;

void CrossedEdges::add(const OwnMessages& messages, const topology::Job& job, const topology::Job& world,
                       topology::Rank world_rank) {
    const std::int32_t position = world.position_of(world_rank).value;
    for (std::size_t l = 0; l < messages.levels.size(); ++l) {
        const auto level = world.find_level(job.levels()[l].name);
        if (!level) continue;
        const auto at = static_cast<std::int32_t>(*level);
        Traffic& group = groups_[{at, world.levels()[*level].groups.group_of(position)}];
        group.out += messages.levels[l].out;
        group.in += messages.levels[l].in;
    }
    latency_s_ += messages.latency_s;
    copy_s_ += messages.copy_s;
}

void CrossedEdges::absorb(const CrossedEdges& other) {
    for (const auto& [group, traffic] : other.groups_) {
        groups_[group].out += traffic.out;
        groups_[group].in += traffic.in;
    }
    latency_s_ = std::max(latency_s_, other.latency_s_);
    copy_s_ = std::max(copy_s_, other.copy_s_);
    least_s_ = std::max(least_s_, other.least_s_);
}

void CrossedEdges::settle(const RoundOrder& order, std::int32_t place, std::int32_t count) {
    least_s_ = std::max({least_s_, latency_s_, copy_s_});
    if (!order.world()) groups_.clear();  // no machine: bytes can't be assigned to groups
    for (auto at = groups_.begin(); at != groups_.end();) {
        const auto& [level, group] = at->first;
        const topology::JobLevel& edges = order.world()->levels()[static_cast<std::size_t>(level)];
        if (!order.covers(place, count, edges.groups, group)) {
            ++at;
            continue;
        }
        const auto bytes = static_cast<double>(std::max(at->second.out, at->second.in));
        if (edges.up_bytes_per_s[group] > 0) least_s_ = std::max(least_s_, bytes / edges.up_bytes_per_s[group]);
        at = groups_.erase(at);
    }
}

Json CrossedEdges::pack() const {
    Json groups = Json::array();
    for (const auto& [group, traffic] : groups_) {
        Json item = Json::array();
        item.push(group.first);
        item.push(group.second);
        item.push(traffic.out);
        item.push(traffic.in);
        groups.push(std::move(item));
    }
    Json out = Json::object();
    out.set("g", std::move(groups)).set("s", least_s_);
    return out;
}

CrossedEdges CrossedEdges::unpack(const Json& packed) {
    CrossedEdges out;
    for (const Json& item : packed.find("g")->items("g")) {
        const auto& numbers = item.items("g");
        const auto number = [&](std::size_t i) { return numbers.at(i).integer("g"); };
        out.groups_[{static_cast<std::int32_t>(number(0)), static_cast<std::int32_t>(number(1))}] = {number(2),
                                                                                                     number(3)};
    }
    out.least_s_ = packed.find("s")->number("s");
    return out;
}

}  // namespace palmette::model
