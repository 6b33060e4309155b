#include "palmette/collectives/rooted.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"

namespace palmette::collectives {

std::vector<LevelShape> level_shapes(const Job& job, const Spec& spec, TreeShape fallback) {
    std::vector<LevelShape> named;
    std::vector<LevelShape> all;
    bool any = false;
    for (std::size_t i = 0; i < job.levels().size(); ++i) {
        all.push_back({i, fallback});
        if (const auto shape = spec.find(job.levels()[i].name)) named.push_back({i, TreeShape::parse(*shape)});
    }
    for (const auto& [key, value] : spec.options) any = any || (key != "top" && key != "segment" && key != "direct");
    return any ? named : all;
}

RootedTree flat_tree(const Job& job, Rank rank, const Request& request, const Spec& spec, TreeShape shape) {
    RootedTree tree;
    tree.parts = slices_of(request, spec);
    if (spec.word("order", {"topology", "rank"}) == "rank") {
        tree.ranks = job.in_rank_order();
        tree.order = plan::BlockOrder::rank;
        tree.self = {rank.value};
        tree.neighbours = TopologyTree(tree.ranks, {0, job.size()}, {request.root.value}, {}, shape).of(tree.self);
    } else {
        tree.self = job.position_of(rank);
        tree.neighbours = TopologyTree(job, {0, job.size()}, job.position_of(request.root), {}, shape).of(tree.self);
    }
    return tree;
}

std::optional<std::string> refuse_linear(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"order"});
    spec.word("order", {"topology", "rank"});
    return std::nullopt;
}

std::optional<std::string> refuse_k_nomial(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"radix", "order", "segment"});
    spec.integer("radix", 2, 2);
    spec.word("order", {"topology", "rank"});
    spec.size("segment", 0);
    return std::nullopt;
}

std::optional<std::string> refuse_by_topology(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"top", "segment", "direct"}, &job);
    for (const auto& [key, value] : spec.options)
        if (key != "segment" && key != "direct") TreeShape::parse(value);
    spec.size("segment", 0);
    spec.size("direct", 0);
    return std::nullopt;
}

RootedTree topology_tree(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    RootedTree tree;
    tree.self = job.position_of(rank);
    const std::int64_t direct = spec.size("direct", 0);
    const bool straight = direct > 0 && request.block_bytes >= direct;
    const auto top = spec.find("top");
    const TreeShape shape = straight ? TreeShape{} : top ? TreeShape::parse(*top) : TreeShape{2};
    tree.parts = straight ? std::uint16_t{1} : slices_of(request, spec);
    tree.neighbours = TopologyTree(job, {0, job.size()}, job.position_of(request.root),
                                   straight ? std::vector<LevelShape>() : level_shapes(job, spec, {2}), shape)
                          .of(tree.self);
    return tree;
}

Program gather_along(const Job& job, Rank rank, const RootedTree& tree) {
    using plan::Buffer;
    plan::ProgramBuilder builder(rank, tree.order);
    const TreeNeighbours& near = tree.neighbours;
    const plan::Blocks own(tree.self.value, 1);
    const bool root = !near.parent;
    const bool leaf = near.children.empty();
    const Buffer here = root ? Buffer::recv : leaf ? Buffer::send : Buffer::scratch;
    if (!root && !leaf) builder.reserve_scratch(near.parent->blocks);
    for (std::uint16_t part = 0; part < tree.parts; ++part) {
        const plan::Slice slice{part, tree.parts};
        std::vector<plan::StepId> arrived;
        for (const TreeLink& child : near.children) {
            builder.stage("gather to " + child.stage + " leader");
            arrived.push_back(builder.recv(tree.rank_at(job, child.peer), part, here, child.blocks, {}, slice));
        }
        if (here != Buffer::send) {
            builder.stage("copy own block");
            arrived.push_back(builder.copy(Buffer::send, here, own, {}, slice));
        }
        if (root) continue;
        builder.stage("gather to " + near.parent->stage + " leader");
        builder.send(tree.rank_at(job, near.parent->peer), part, here, near.parent->blocks, arrived, slice);
    }
    return builder.finish();
}

Program scatter_along(const Job& job, Rank rank, const RootedTree& tree) {
    using plan::Buffer;
    plan::ProgramBuilder builder(rank, tree.order);
    const TreeNeighbours& near = tree.neighbours;
    const plan::Blocks own(tree.self.value, 1);
    const bool root = !near.parent;
    const bool leaf = near.children.empty();
    const Buffer here = root ? Buffer::send : leaf ? Buffer::recv : Buffer::scratch;
    if (!root && !leaf) builder.reserve_scratch(near.parent->blocks);
    for (std::uint16_t part = 0; part < tree.parts; ++part) {
        const plan::Slice slice{part, tree.parts};
        std::vector<plan::StepId> arrived;
        if (!root) {
            builder.stage("scatter from " + near.parent->stage + " leader");
            arrived.push_back(
                builder.recv(tree.rank_at(job, near.parent->peer), part, here, near.parent->blocks, {}, slice));
        }
        for (const TreeLink& child : near.children) {
            builder.stage("scatter from " + child.stage + " leader");
            builder.send(tree.rank_at(job, child.peer), part, here, child.blocks, arrived, slice);
        }
        if (here != Buffer::recv) {
            builder.stage("copy own block");
            builder.copy(here, Buffer::recv, own, arrived, slice);
        }
    }
    return builder.finish();
}

}  // namespace palmette::collectives
