#include "palmette/model/bound.hpp"

#include <algorithm>

#include "palmette/model/crossing.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::model {
namespace {

using plan::Collective;
using plan::Request;
using topology::Job;
using topology::JobLevel;

void take_larger(Bound& best, Bound candidate) {
    if (candidate.seconds > best.seconds) best = std::move(candidate);
}

void bound_by_links(Bound& best, const JobLevel& level, Collective collective, const Crossing& crossing) {
    const std::int32_t groups = level.groups.count();
    double capacities = 0;
    bool all_known = true;
    for (std::int32_t g = 0; g < groups; ++g) {
        const double capacity = level.up_bytes_per_s[g];
        capacities += capacity;
        all_known = all_known && capacity > 0;
        if (capacity <= 0) continue;
        const Traffic traffic = crossing.of(level.groups.first(g), level.groups.end(g));
        const bool outwards = traffic.out > traffic.in;
        const std::int64_t bytes = std::max(traffic.out, traffic.in);
        const std::string name = level.names.empty() ? std::string() : level.names[static_cast<std::size_t>(g)];
        take_larger(best,
                    {static_cast<double>(bytes) / capacity, "link", level.name, g, name, outwards, bytes, capacity});
    }
    if (!all_known || groups < 2 || collective != Collective::allreduce) return;
    const std::int64_t bytes = 2 * (groups - 1) * crossing.total();
    take_larger(best, {static_cast<double>(bytes) / capacities, "links", level.name, -1, {}, true, bytes, capacities});
}

/// Whether somebody must hear of somebody else across this level: in some parent group (for rooted collectives, the root's) there are two
/// groups or more.
bool is_crossed(const Job& job, std::size_t index, const Request& request) {
    const topology::Partition& groups = job.levels()[index].groups;
    const std::int32_t parents = index == 0 ? 1 : job.levels()[index - 1].groups.count();
    if (!plan::is_rooted(request.collective)) return groups.count() > parents;
    const std::int32_t root = job.position_of(request.root).value;
    const std::int32_t parent_size =
        index == 0 ? job.size() : job.levels()[index - 1].groups.size_of(job.levels()[index - 1].groups.group_of(root));
    return groups.size_of(groups.group_of(root)) < parent_size;
}

void bound_by_latency(Bound& best, const Job& job, const Request& request) {
    for (std::size_t l = 0; l < job.levels().size(); ++l) {
        if (job.levels()[l].costs.latency_s <= 0 || !is_crossed(job, l, request)) continue;
        Bound candidate;
        candidate.seconds = job.levels()[l].costs.latency_s;
        candidate.kind = "latency";
        candidate.level = job.levels()[l].name;
        take_larger(best, std::move(candidate));
    }
}

}  // namespace

Bound bound(const Job& job, const Request& request, const std::vector<std::int64_t>& block_bytes) {
    const Crossing crossing(job, request, block_bytes);
    Bound best;
    for (const JobLevel& level : job.levels()) bound_by_links(best, level, request.collective, crossing);
    bound_by_latency(best, job, request);
    return best;
}

}  // namespace palmette::model
