#include "palmette/model/bound/spread_of_job.hpp"

#include <algorithm>
#include <limits>

#include "palmette/model/bound/spread.hpp"

namespace palmette::model {
namespace {

using topology::Job;
using topology::Partition;

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// The smallest latency of levels begin..end-1 that tell members apart; infinite where none does, 0 where one is
/// unknown.
double smallest_latency_s(const Job& job, std::size_t begin, std::size_t end) {
    double least = unlimited;
    for (std::size_t l = begin; l < end; ++l) {
        const std::int32_t parents = l == 0 ? 1 : job.levels()[l - 1].groups.count();
        if (job.levels()[l].groups.count() > parents) least = std::min(least, job.levels()[l].costs.latency_s);
    }
    return least;
}

/// Sizes of groups and nodes as seen from the root.
SpreadShape shape_of(const Partition& groups, const Partition& nodes, std::int32_t root) {
    SpreadShape out{.all_ranks = nodes.size(), .all_nodes = nodes.count(), .groups = groups.count()};
    const std::int32_t home = groups.group_of(root);
    out.root_ranks = nodes.size_of(nodes.group_of(root));
    for (std::int32_t g = 0; g < groups.count(); ++g) {
        const std::int32_t first = nodes.group_of(groups.first(g));
        const std::int32_t count = nodes.group_of(groups.end(g) - 1) - first + 1;
        std::int32_t& most_nodes = g == home ? out.root_nodes : out.nodes;
        most_nodes = std::max(most_nodes, count);
        std::int32_t& most_ranks = g == home ? out.sibling_ranks : out.ranks;
        for (std::int32_t node = first; node < first + count; ++node)
            // The root's own node counts, too: it can be entered again.
            most_ranks = std::max(most_ranks, nodes.size_of(node));
    }
    return out;
}

std::int64_t states(const SpreadShape& shape) {
    return std::max(std::int64_t{shape.sibling_ranks} * shape.root_nodes, std::int64_t{shape.ranks} * shape.nodes);
}

}  // namespace

double spread_s(const Job& job, base::Position root, const Gaps& gaps) {
    const std::size_t node_level = *job.find_level("node");
    const Partition& nodes = job.levels()[node_level].groups;
    // Groups of nodes: the innermost level above them that has several; else the nodes themselves.
    std::size_t level = node_level;
    for (std::size_t l = node_level; l-- > 0 && level == node_level;)
        if (job.levels()[l].groups.count() > 1 &&
            states(shape_of(job.levels()[l].groups, nodes, root.value)) <= most_spread_states)
            level = l;
    const SpreadShape shape = shape_of(job.levels()[level].groups, nodes, root.value);
    if (states(shape) > most_spread_states || job.size() < 2) return 0;

    double inside_s = smallest_latency_s(job, node_level + 1, job.levels().size());
    if (!job.levels().back().groups.all_single()) inside_s = std::min(inside_s, job.inside().latency_s);
    const double between_nodes_s = smallest_latency_s(job, level + 1, node_level + 1);
    const double between_groups_s = smallest_latency_s(job, 0, level + 1);
    const auto known = [](double latency_s) { return latency_s < unlimited ? latency_s : 0; };
    for (const double latency_s : {inside_s, between_nodes_s, between_groups_s})
        if (!(latency_s > 0)) return 0;
    return least_spread_s(shape, {{gaps.inside_s, known(inside_s)},
                                  {gaps.between_s, known(between_nodes_s)},
                                  {gaps.between_s, known(between_groups_s)}});
}

}  // namespace palmette::model
