// barrier, leaders: gather to one leader per leaf (or other level), exchange between leaders, release.
//
//   p = 8 on two leaves of two nodes of two ranks, between=all:
//
//       1 → 0, 3 → 2, 5 → 4, 7 → 6;  2 → 0, 6 → 4      every leaf has entered
//       0 ↔ 4                                         one latency through the spine, whatever the number of leaves
//       0 → 2, 4 → 6;  0 → 1, 2 → 3, 4 → 5, 6 → 7
#include <cmath>

#include "palmette/collectives/barrier/barrier_leaders.hpp"

#include "palmette/collectives/barrier/barrier_parts.hpp"
#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted_vector.hpp"

namespace palmette::collectives {
namespace {

constexpr std::int32_t most_for_all = 16;

/// The level of key level=, nodes where this job lacks it, by default the outermost.
std::size_t level_of(const Job& job, const Spec& spec) {
    const auto name = spec.find("level");
    if (!name) return 0;
    const auto level = job.find_level(*name);
    return level ? *level : *job.find_level("node");
}

Between between_of(const Job& job, const Spec& spec) {
    if (!spec.find("between"))
        return job.levels()[level_of(job, spec)].groups.count() <= most_for_all ? Between::all : Between::dissemination;
    return spec.word("between", {"all", "dissemination"}) == "all" ? Between::all : Between::dissemination;
}

TreeShape shape_at(const Job& job, const Request& request, const Spec& spec, std::size_t level) {
    const bool inside = level >= *job.find_level("node");
    TreeShape shape = small_shape(members_of(job, level));
    const auto within = spec.find("inside");
    if (const auto text = spec.find(job.levels()[level].name))
        shape = TreeShape::parse(*text, inside);
    else if (inside && within)
        shape = TreeShape::parse(*within, true);
    else if (inside && request.shared_memory)
        shape = TreeShape{0, TreeShape::Kind::nomial, true};
    shape.shared = shape.shared && request.shared_memory;
    return shape;
}

std::optional<std::string> refuse_leaders(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"between", "level", "radix", "inside"}, &job);
    between_of(job, spec);
    spec.integer("radix", 2, 2);
    if (const auto inside = spec.find("inside")) TreeShape::parse(*inside, true);
    for (std::size_t level = 0; level < job.levels().size(); ++level) shape_at(job, request, spec, level);
    return std::nullopt;
}

Program make_leaders(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return barrier_among_leaders(job, rank, request, spec, level_of(job, spec), between_of(job, spec));
}

std::optional<double> formula_leaders(const FormulaInput& input) {
    if (!input.spec.options.empty()) return std::nullopt;
    const Tiers& tiers = input.tiers;
    double total = 0;
    // Up to the leaders of the outermost level, across once, and down again.
    for (std::size_t t = 0; t < tiers.count(); ++t) {
        const double around = t == 0 ? tiers.ranks() : tiers[t - 1].ranks;
        const double own = t + 1 == tiers.count() ? 1 : tiers[t].ranks;
        const double members = std::ceil(around / own);
        if (members <= 1) continue;
        const double star = tiers[t].latency_s + (members - 2) * tiers[t].overhead_s;
        const double tree = std::ceil(std::log2(members)) * tiers[t].latency_s;
        if (t == 0)
            total += members <= 16 ? star + (members - 1) * tiers[t].overhead_s : tree;
        else
            total += 2 * (members < 9 ? star : tree);
    }
    return total;
}

}  // namespace

Program barrier_among_leaders(const Job& job, Rank rank, const Request& request, const Spec& spec, std::size_t level,
                              Between between) {
    const topology::Partition& groups = job.levels()[level].groups;
    const Position me = job.position_of(rank);
    const std::int32_t group = groups.group_of(me.value);
    std::vector<LevelShape> inner;
    for (std::size_t i = level + 1; i < job.levels().size(); ++i) inner.push_back({i, shape_at(job, request, spec, i)});
    const TreeNeighbours near = TopologyTree(job, {groups.first(group), groups.size_of(group)}, {groups.first(group)},
                                             std::move(inner), shape_at(job, request, spec, level))
                                    .of(me);
    BarrierParts parts(job, rank);
    BarrierParts::Steps ready = parts.gather(near);
    if (!near.parent) {
        const auto leader = [&](std::int32_t g) { return job.rank_at({groups.first(g)}); };
        ready = between == Between::all
                    ? parts.notify_all(groups.count(), group, leader, std::move(ready))
                    : parts.disseminate(groups.count(), group, spec.integer("radix", 2, 2), leader, std::move(ready));
    }
    parts.release(near, ready);
    return parts.finish();
}

const Algorithm barrier_leaders{
    .collective = Collective::barrier,
    .name = "leaders",
    .sentence =
        "One leader per leaf (or other level); leaders notify each other, with between=all directly: one latency "
        "across.",
    .source =
        "Hensgen, Finkel, Manber, IJPP 17(1), 1988 (dissemination); leaders as in Kandalla et al., IPDPS workshops "
        "2010",
    .keys =
        "between=all|dissemination (all up to 16), radix=K (2), level=LEVEL (the outermost), LEVEL=SHAPE and "
        "inside=SHAPE as in by_topology",
    .preconditions = "shared only for the level of nodes and those inside",
    .refuse = refuse_leaders,
    .make = make_leaders,
    .node_memory = NodeMemory::where_asked,
    .formula = formula_leaders,
    .candidates = "leaders",
    .samples =
        "leaders leaders:between=dissemination,level=node,inside=shared "
        "leaders:between=all,level=leaf,leaf=k_nomial.3,inside=linear",
};

}  // namespace palmette::collectives
