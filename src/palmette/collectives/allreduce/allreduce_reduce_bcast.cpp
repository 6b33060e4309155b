// allreduce, reduce_bcast: reduce up a tree with one leader per group and level, broadcast down the same tree.
//
//   p = 8 on two leaves of two nodes:
//
//       leaf 0 ............ leaf 1
//       0 ── 2 ──────────── 4 ── 6      up: leaders of nodes to the leader of their leaf, 4 to 0 across the top; down
//       │    │              │    │
//       1    3              5    7      up: ranks to the leader of their node
#include <algorithm>

#include "palmette/collectives/exchanges/vector_tree.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;

std::optional<std::string> refuse_reduce_bcast(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"top", "segment"}, &job);
    for (const auto& [key, value] : spec.options)
        if (key != "segment") TreeShape::parse(value);
    spec.size("segment", 0);
    return refuse_scattered(job, request);
}

std::int64_t tags_reduce_bcast(const Job&, const Request& request, const Spec& spec) {
    return slices_of(request, spec);
}

Program make_reduce_bcast(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    plan::ProgramBuilder builder(rank);
    const Position self = job.position_of(rank);
    const auto top = spec.find("top");
    // Rooted at the first position, so that every subtree is an interval of positions that begins with its root.
    const TreeNeighbours near = TopologyTree(job, {0, job.size()}, {0}, level_shapes(job, spec, {2}),
                                             top ? TreeShape::parse(*top) : TreeShape{2})
                                    .of(self);
    TreePlace place;
    if (near.parent) place.parent = near.parent->peer;
    for (const TreeLink& child : near.children) place.children.push_back(child.peer);
    std::sort(place.children.begin(), place.children.end(), [](Position a, Position b) { return a.value < b.value; });
    ScratchBuffer scratch;
    const std::uint16_t of = slices_of(request, spec);
    for (std::uint16_t i = 0; i < of; ++i) {
        VectorTree tree(job, self, builder, scratch, place, {0, 1}, {i, of});
        builder.stage("reduce");
        const HeldBlocks whole = tree.up({Buffer::send, {}}, Buffer::recv, i);
        builder.stage("broadcast");
        if (job.size() == 1) builder.copy(Buffer::send, Buffer::recv, tree.blocks(), {}, {i, of});
        tree.down(whole, Buffer::recv, i);
    }
    scratch.reserve(builder);
    return builder.finish();
}

}  // namespace

const Algorithm allreduce_reduce_bcast{
    .collective = Collective::allreduce,
    .name = "reduce_bcast",
    .sentence =
        "Up a tree with a leader per node, leaf and tier, and down again; segments are pipelined through the levels.",
    .source = "Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan, IPDPS 2000 (trees by level)",
    .keys = "LEVEL=linear|binomial|k_nomial.K for each level with leaders (all, binomial), top=..., segment=SIZE",
    .preconditions = "an operation that isn't commutative needs ranks in topology order",
    .relays = true,
    .refuse = refuse_reduce_bcast,
    .make = make_reduce_bcast,
    .tags = tags_reduce_bcast,
    .samples = "reduce_bcast reduce_bcast:node=linear,leaf=k_nomial.3,top=linear,segment=20",
};

}  // namespace palmette::collectives
