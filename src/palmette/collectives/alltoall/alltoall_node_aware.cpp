// alltoall, node_aware: each rank sends one message to each other node.
//
//   p = 8 on two nodes of four, from node 0 to node 1:
//
//       0 ── 0→4567 ──> 4
//       1 ── 1→4567 ──> 5      then each receiver forwards the blocks of all nodes to their targets in its node:
//       2 ── 2→4567 ──> 6      4 has 0→4567 and sends 0→5 to 5, 0→6 to 6, 0→7 to 7
//       3 ── 3→4567 ──> 7
//
//   With N nodes of g ranks, g (N-1) messages of g blocks leave a node, where the direct exchange has g^2 (N-1) of one
//   block; the bytes are the same.
#include <algorithm>

#include "palmette/collectives/alltoall/alltoall_combined.hpp"
#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_node_aware(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"level", "inside", "segment", "rounds", "single"});
    check_combined(spec);
    return std::nullopt;
}

Program make_node_aware(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const Parcels parcels(combined_groups(job, spec), job.size(), Parcels::Split::sources);
    return combined_alltoall(job, rank, request, spec, parcels);
}

std::optional<double> formula_node_aware(const FormulaInput& input) {
    if (input.has_any({"level", "segment"})) return std::nullopt;
    const Tiers& tiers = input.tiers;
    const double b = input.bytes, p = tiers.ranks(), group = tiers.node().ranks, nodes = tiers.nodes();
    const Tier& side = tiers.intra_node();
    double links = 0;
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t)
        if (!tiers[t].inside && tiers[t].edge > 0 && tiers[t].ranks < p)
            links = std::max(links, tiers[t].ranks * (p - tiers[t].ranks) * b / tiers[t].edge);
    const double work = (nodes - 1) * 2 * tiers.node().overhead_s;
    const bool shared = input.spec.find("inside") == "shared" && input.shares;
    const double pulls = (group - 1) * nodes;
    const double forwarded =
        group > 1 && shared ? 2 * side.latency_s + std::max(pulls * assumed::cache_miss_s + 2 * tiers.copy_s(b * p),
                                                            tiers.memory_s(2 * group * b * p))
        : group > 1         ? side.latency_s + std::max(2 * (group - 1) * (nodes * b / side.stream + side.overhead_s),
                                                        tiers.memory_s(group * (group - 1) * nodes * b))
                            : 0;
    const double packed = 2 * tiers.copy_s(b * p);
    return (nodes > 1 ? tiers[0].latency_s : 0) + std::max(links, work) + forwarded + packed;
}

}  // namespace

const Algorithm alltoall_node_aware{
    .collective = Collective::alltoall,
    .name = "node_aware",
    .sentence =
        "Each rank sends one message to each other node, to one rank of it (where nodes are of one size, that of the "
        "same index), which forwards the blocks inside.",
    .source = "Kinkead, Wesley, Schonbein, DeBonis, Dosanjh, Bienz, SC Workshops 2025 (node-aware all-to-all)",
    .keys =
        "level=LEVEL (node), inside=linear|shared (linear), segment=SIZE, rounds=R (1), single=SIZE (never), with "
        "inside=shared: exposures from there on are read by single copy",
    .preconditions = "inside=shared reads memory where a rank exposes at most 64 pieces, and sends messages otherwise",
    .relays = true,
    .refuse = refuse_node_aware,
    .make = make_node_aware,
    .tags = combined_tags,
    .node_memory = NodeMemory::where_asked,
    .formula = formula_node_aware,
    .candidates = "node_aware:inside=linear node_aware:inside=shared",
    .samples =
        "node_aware node_aware:level=leaf,segment=20 node_aware:inside=shared node_aware:inside=shared,single=64 "
        "node_aware:rounds=2 node_aware:rounds=7 node_aware:rounds=3,segment=20,inside=shared",
};

}  // namespace palmette::collectives
