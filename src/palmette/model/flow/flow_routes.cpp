#include "palmette/model/flow/flow_routes.hpp"

#include <algorithm>

namespace palmette::model {
namespace {

constexpr LinkId no_link = 0xffffffff;
/// Lower bound on the available share of an edge that other traffic saturates.
constexpr double least_share = 1e-3;

}  // namespace

FlowRoutes::FlowRoutes(const topology::Job& job, FairSharing& sharing)
    : job_(job), sharing_(sharing), node_level_(*job.find_level("node")) {
    for (std::size_t l = 0; l < job.levels().size(); ++l) {
        const topology::JobLevel& level = job.levels()[l];
        std::vector<LinkId> out(static_cast<std::size_t>(level.groups.count()), no_link);
        for (std::int32_t g = 0; g < level.groups.count(); ++g) {
            const double capacity = level.up_bytes_per_s[g];
            if (capacity <= 0) continue;
            const double left = std::max(level.free_bytes_per_s(g), least_share * capacity);
            out[static_cast<std::size_t>(g)] = sharing.add_link(left);
            sharing.add_link(left);
            places_.push_back({static_cast<std::int32_t>(l), g, true});
            places_.push_back({static_cast<std::int32_t>(l), g, false});
            innermost_ = l + 1;
        }
        out_.push_back(std::move(out));
    }
    const auto level = static_cast<std::int32_t>(job.levels().size());
    for (const topology::JobAggregator& one : job.aggregators()) {
        const auto group = static_cast<std::int32_t>(out_of_aggregator_.size());
        out_of_aggregator_.push_back(no_link);
        if (one.up_bytes_per_s <= 0) continue;
        out_of_aggregator_.back() = sharing.add_link(one.up_bytes_per_s);
        sharing.add_link(one.up_bytes_per_s);
        places_.push_back({level, group, true});
        places_.push_back({level, group, false});
    }
    double memory = 0;
    for (std::size_t l = 0; l <= job.levels().size(); ++l) memory = std::max(memory, costs(l).together_bytes_per_s);
    for (std::int32_t node = 0; memory > 0 && node < job.nodes().groups.count(); ++node)
        memories_.push_back(sharing.add_link(memory));
}

std::uint64_t FlowRoutes::place(std::int32_t position) const {
    const std::int32_t service = position - job_.size();
    if (innermost_ == 0) return static_cast<std::uint64_t>(std::max(service, -1) + 1);
    const topology::Partition& groups = job_.levels()[innermost_ - 1].groups;
    return static_cast<std::uint64_t>(service < 0 ? groups.group_of(position) : groups.count() + service);
}

LinkId FlowRoutes::leaving(std::size_t level, std::int32_t position) const {
    const std::int32_t group = job_.group_at(level, {position});
    return group < 0 ? no_link : out_[level][static_cast<std::size_t>(group)];
}

LinkId FlowRoutes::leaving_aggregator(std::int32_t position) const {
    return position < job_.size() ? no_link : out_of_aggregator_[static_cast<std::size_t>(position - job_.size())];
}

Route FlowRoutes::find(std::int32_t from, std::int32_t to, std::uint64_t kind, double cap) {
    const std::size_t part = job_.parting_level({from}, {to});
    const double stream = costs(part).stream_bytes_per_s;
    Route out;
    out.cap = std::min(cap, stream > 0 ? stream : FairSharing::unlimited);
    const bool crosses = part < innermost_ || from >= job_.size() || to >= job_.size();
    const bool is_copied = kind == 0 && !memories_.empty() && part > node_level_;
    if (!crosses && !is_copied) return out;
    // Groups of the innermost level with links, or the service positions, determine the whole route; without links
    // node and level do. All are below 2^31.
    const auto node = static_cast<std::uint64_t>(is_copied ? job_.nodes().groups.group_of(from) : 0);
    const std::uint64_t key = crosses ? place(from) << 31 | place(to) : std::uint64_t{2} << 62 | node << 31 | part;
    const auto [found, is_new] = bundles_.try_emplace(kind << 62 | key, 0);
    if (is_new) {
        std::vector<LinkId> links;
        const auto cross = [&](LinkId out_of, LinkId into) {
            if (out_of != no_link) links.push_back(out_of);
            if (into != no_link) links.push_back(into + 1);
        };
        for (std::size_t l = part; l < innermost_; ++l) cross(leaving(l, from), leaving(l, to));
        cross(leaving_aggregator(from), leaving_aggregator(to));
        if (is_copied) links.push_back(memories_[node]);
        if (links.empty()) {
            bundles_.erase(found);
            return out;
        }
        found->second = sharing_.add_bundle(links, out.cap);
        links_of_.push_back(std::move(links));
    }
    out.shares = true;
    out.bundle = found->second;
    return out;
}

}  // namespace palmette::model
