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
#include "palmette/collectives/alltoall/alltoall_combined.hpp"
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
    .candidates = "node_aware:inside=linear node_aware:inside=shared",
    .samples =
        "node_aware node_aware:level=leaf,segment=20 node_aware:inside=shared node_aware:inside=shared,single=64 "
        "node_aware:rounds=2 node_aware:rounds=7 node_aware:rounds=3,segment=20,inside=shared",
};

}  // namespace palmette::collectives
