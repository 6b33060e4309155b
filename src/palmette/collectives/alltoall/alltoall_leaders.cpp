// alltoall, leaders: blocks between two groups are aggregated into one message, or one per leader.
//
//   p = 8 on two nodes of four, from node 0 to node 1:
//
//       one leader                     leaders=2,split=sources
//       1, 2, 3 → 0                    1 → 0, 3 → 2
//       0 ── 0123→4567 ──> 4           0 ── 01→4567 ──> 4,  2 ── 23→4567 ──> 6
//       4 forwards to 5, 6, 7          4 and 6 forward to all others of their node
//
//   With N nodes of g ranks, N-1 messages of g^2 blocks leave a node, or L (N-1) of g^2/L with L leaders and
//   split=sources. With split=destinations each leader serves a share of the other nodes, and it stays at N-1 messages
//   in all. The bytes are those of the direct exchange.
#include <algorithm>
#include <cmath>

#include "palmette/collectives/alltoall/alltoall_combined.hpp"
#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_leaders(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"leaders", "split", "level", "inside", "segment", "rounds", "single"});
    spec.integer("leaders", 1);
    spec.word("split", {"destinations", "sources"});
    check_combined(spec);
    return std::nullopt;
}

Program make_leaders(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const bool sources = spec.word("split", {"destinations", "sources"}) == "sources";
    const Parcels parcels(combined_groups(job, spec), spec.integer("leaders", 1),
                          sources ? Parcels::Split::sources : Parcels::Split::destinations);
    return combined_alltoall(job, rank, request, spec, parcels);
}

std::optional<double> formula_leaders(const FormulaInput& input) {
    if (input.has_any({"level", "segment", "split", "rounds", "inside"})) return std::nullopt;
    const Tiers& tiers = input.tiers;
    const double b = input.bytes, p = tiers.ranks(), group = tiers.node().ranks, nodes = tiers.nodes();
    if (nodes <= 1) return std::nullopt;
    const double many = std::min(group, static_cast<double>(input.spec.integer("leaders", 1)));
    const Tier& side = tiers.intra_node();
    const double share = b * group * nodes / many;  // sent by a member to one leader, or received from it
    const double ends = group > 1 ? side.latency_s + std::max((group - 1) * (side.overhead_s + share / side.stream),
                                                              tiers.memory_s(group * b * group * nodes))
                                  : 0;
    const double more = group > 1 ? (many - 1) * 2 * side.overhead_s : 0;
    double between = tiers.between_nodes((nodes - 1) / group, b * group * group);
    between += (std::ceil((nodes - 1) / many) - std::ceil((nodes - 1) / group)) * 2 * tiers[0].overhead_s;
    return 2 * (ends + more) + between + 2 * tiers.copy_s(b * p * group / many);
}

}  // namespace

const Algorithm alltoall_leaders{
    .collective = Collective::alltoall,
    .name = "leaders",
    .sentence =
        "Leaders collect their group's blocks, exchange one message per pair of groups, and distribute what they "
        "receive.",
    .source =
        "Kinkead, Wesley, Schonbein, DeBonis, Dosanjh, Bienz, SC Workshops 2025 (hierarchical and multi-leader "
        "all-to-all)",
    .keys =
        "leaders=L (1), split=destinations|sources (destinations), level=LEVEL (node), inside=linear|shared (linear), "
        "segment=SIZE, rounds=R (1), single=SIZE (never), with inside=shared: exposures from there on are read by "
        "single copy",
    .preconditions = "inside=shared reads memory where a rank exposes at most 64 pieces, and sends messages otherwise",
    .relays = true,
    .refuse = refuse_leaders,
    .make = make_leaders,
    .tags = combined_tags,
    .node_memory = NodeMemory::where_asked,
    .formula = formula_leaders,
    .candidates = "leaders:leaders=8",
    .samples =
        "leaders leaders:leaders=3,rounds=4 leaders:leaders=2,split=sources,level=leaf,rounds=5 "
        "leaders:leaders=4,split=sources,inside=shared,level=leaf,rounds=3 leaders:leaders=3,level=leaf "
        "leaders:leaders=2,split=sources,segment=32 leaders:leaders=2,inside=shared "
        "leaders:leaders=2,split=sources,inside=shared,level=leaf",
};

}  // namespace palmette::collectives
