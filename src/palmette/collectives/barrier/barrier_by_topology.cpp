// barrier, by_topology: gather up a tree, release down the same tree.
//
//   p = 8 on two leaves of two nodes of two ranks, stars:
//
//       1 → 0, 3 → 2, 5 → 4, 7 → 6;  2 → 0, 6 → 4;  4 → 0      all have entered
//       0 → 4;  0 → 2, 4 → 6;  0 → 1, 2 → 3, 4 → 5, 6 → 7      release
#include "palmette/collectives/barrier/barrier_parts.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted_vector.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_barrier_tree(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"top", "inside"}, &job);
    check_topology_form(job, request, spec);
    return std::nullopt;
}

Program make_barrier_tree(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const TopologyForm form = topology_form(job, request, spec);
    const TreeNeighbours near =
        TopologyTree(job, {0, job.size()}, {0}, form.levels, form.top).of(job.position_of(rank));
    BarrierParts parts(job, rank);
    parts.release(near, parts.gather(near));
    return parts.finish();
}

}  // namespace

const Algorithm barrier_by_topology{
    .collective = Collective::barrier,
    .name = "by_topology",
    .sentence =
        "Up a tree with leaders per node, chassis, leaf and tier, and down again: 2 (p - 1) messages, few between "
        "leaves.",
    .source = "Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010 (the tree); folklore (gather and release)",
    .keys =
        "LEVEL=linear|binomial|k_nomial.K|postal.K|k_ary.K|chain, inside of the node also shared, for each level with "
        "leaders (stars, binomial from 9 members on), inside=... for all levels inside of the node, top=...",
    .preconditions = "shared only for the level of nodes and those inside",
    .refuse = refuse_barrier_tree,
    .make = make_barrier_tree,
    .node_memory = NodeMemory::where_asked,
    .samples =
        "by_topology by_topology:node=shared,socket=shared,leaf=binomial,top=chain "
        "by_topology:inside=binomial,top=k_ary.3",
};

}  // namespace palmette::collectives
