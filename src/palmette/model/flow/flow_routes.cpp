#include "palmette/model/flow/flow_routes.hpp"

#include <algorithm>

namespace palmette::model {
namespace {

constexpr LinkId no_link = 0xffffffff;
/// Lower bound on the available share of an edge that other traffic saturates.
constexpr double least_share = 1e-3;

}  // namespace

FlowRoutes::FlowRoutes(const topology::Job& job, FairSharing& sharing) : job_(job), sharing_(sharing) {
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
}

std::size_t FlowRoutes::parting(std::int32_t from, std::int32_t to) const {
    std::size_t l = 0;
    while (l < job_.levels().size() && job_.levels()[l].groups.group_of(from) == job_.levels()[l].groups.group_of(to))
        ++l;
    return l;
}

const topology::LevelCosts& FlowRoutes::costs(std::int32_t from, std::int32_t to) const {
    const std::size_t l = parting(from, to);
    return l < job_.levels().size() ? job_.levels()[l].costs : job_.inside();
}

Route FlowRoutes::find(std::int32_t from, std::int32_t to, std::uint64_t kind, double cap) {
    const std::size_t part = parting(from, to);
    const topology::LevelCosts& costs = part < job_.levels().size() ? job_.levels()[part].costs : job_.inside();
    Route out;
    out.overhead_s = costs.overhead_s;
    out.wire_s = std::max(0.0, costs.latency_s - 2 * costs.overhead_s);
    out.cap = std::min(cap, costs.stream_bytes_per_s > 0 ? costs.stream_bytes_per_s : FairSharing::unlimited);
    if (part >= innermost_) return out;
    const topology::Partition& groups = job_.levels()[innermost_ - 1].groups;
    const auto a = static_cast<std::uint64_t>(groups.group_of(from)),
               b = static_cast<std::uint64_t>(groups.group_of(to));
    // Groups of the innermost level with links determine the whole route; both are below 2^31.
    const auto [found, is_new] = bundles_.try_emplace(kind << 62 | a << 31 | b, 0);
    if (is_new) {
        std::vector<LinkId> links;
        for (std::size_t l = part; l < innermost_; ++l) {
            const topology::Partition& of_level = job_.levels()[l].groups;
            const LinkId leaving = out_[l][static_cast<std::size_t>(of_level.group_of(from))];
            const LinkId entering = out_[l][static_cast<std::size_t>(of_level.group_of(to))];
            if (leaving != no_link) links.push_back(leaving);
            if (entering != no_link) links.push_back(entering + 1);
        }
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
