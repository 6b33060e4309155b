// barrier, dissemination: in round i every rank notifies the rank k^i above it that it, and all ranks that it knows of,
// have entered.
//
//   p = 8, radix 2:   round 1   0 → 1 → 2 → ... → 7 → 0
//                     round 2   0 → 2, 1 → 3, ..., 7 → 1
//                     round 3   0 → 4, 1 → 5, ..., 7 → 3
//
//   with inside=shared only one rank of each node takes part, and the others notify it through shared memory.
#include <algorithm>

#include "palmette/collectives/barrier/barrier_leaders.hpp"
#include "palmette/collectives/barrier/barrier_parts.hpp"
#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_dissemination(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"radix", "inside"});
    spec.integer("radix", 2, 2);
    if (const auto inside = spec.find("inside")) TreeShape::parse(*inside, true);
    return std::nullopt;
}

Program make_dissemination(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    if (spec.find("inside"))
        return barrier_among_leaders(job, rank, request, spec, *job.find_level("node"), Between::dissemination);
    BarrierParts parts(job, rank);
    const auto rank_at = [&](std::int32_t position) { return job.rank_at({position}); };
    parts.disseminate(job.size(), job.position_of(rank).value, spec.integer("radix", 2, 2), rank_at, {});
    return parts.finish();
}

std::optional<double> formula_dissemination(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const auto inside = input.spec.find("inside");
    if (inside && (inside != "shared" || !input.shares)) return std::nullopt;
    double total = 0;
    if (inside && tiers.node().ranks > 1) total += 2 * tiers.intra_node().latency_s;
    const double radix = input.spec.integer("radix", 2, 2);
    // All ranks wait for the pair at the longest distance: across a group's boundary even where most partners are
    // inside of it.
    const double first = inside ? tiers.node().ranks : 1;
    for (double d = first; d < tiers.ranks(); d *= radix) {
        const Tier& tier = tiers[tiers.crossed(std::min(radix * d, tiers.ranks() - 1))];
        total += tier.latency_s + (radix - 2) * 2 * tier.overhead_s;
    }
    return total;
}

}  // namespace

const Algorithm barrier_dissemination{
    .collective = Collective::barrier,
    .name = "dissemination",
    .sentence = "ceil(log_k p) rounds in topology order, in each of which every rank notifies k - 1 others.",
    .source = "Hensgen, Finkel, Manber, IJPP 17(1), 1988; radix k: Hoefler, Mehlan, Mietke, Rehm, IPDPS workshops 2006",
    .keys =
        "radix=K (2), inside=linear|binomial|k_nomial.K|postal.K|k_ary.K|chain|shared (among nodes only, one rank of "
        "each)",
    .refuse = refuse_dissemination,
    .make = make_dissemination,
    .node_memory = NodeMemory::where_asked,
    .formula = formula_dissemination,
    .candidates = "dissemination:inside=shared dissemination",
    .samples = "dissemination dissemination:radix=4 dissemination:radix=3,inside=shared",
};

}  // namespace palmette::collectives
