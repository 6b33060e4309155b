#include "palmette/collectives/trees/rooted.hpp"

#include <algorithm>
#include <limits>

#include "palmette/base/error.hpp"
#include "palmette/collectives/trees/relayed_tree.hpp"

namespace palmette::collectives {

std::vector<LevelShape> level_shapes(const Job& job, const Spec& spec, TreeShape fallback) {
    std::vector<LevelShape> named;
    std::vector<LevelShape> all;
    bool any = false;
    for (std::size_t i = 0; i < job.levels().size(); ++i) {
        all.push_back({i, fallback});
        if (const auto shape = spec.find(job.levels()[i].name)) named.push_back({i, TreeShape::parse(*shape)});
    }
    for (const auto& [key, value] : spec.options)
        any = any || (key != "top" && key != "segment" && key != "direct" && key != "relays");
    return any ? named : all;
}

std::int32_t relays_of(const Spec& spec) {
    return spec.find("relays") == "all" ? std::numeric_limits<std::int32_t>::max() : spec.integer("relays", 1);
}

std::optional<std::string> refuse_relays(const Job& job, const Spec& spec, const std::vector<LevelShape>& levels) {
    if (relays_of(spec) == 1) return std::nullopt;
    const std::size_t node = *job.find_level("node");
    if (std::any_of(levels.begin(), levels.end(), [&](const LevelShape& one) { return one.level == node; }))
        return std::nullopt;
    return std::string("relays need leaders of nodes, and here nodes have none: add node=SHAPE");
}

TreeNeighbours relayed_links(const Job& job, Position position, Position root, std::vector<LevelShape> levels,
                             TreeShape top, std::int32_t relays) {
    const bool star = top.is_star() && levels.front().level == *job.find_level("node");
    const TopologyTree tree(job, {0, job.size()}, root, std::move(levels), top);
    return RelayedTree(job, tree, root, relays, star).of(position);
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
    check_keys(spec, {"top", "segment", "direct", "relays"}, &job);
    for (const auto& [key, value] : spec.options)
        if (key != "segment" && key != "direct" && key != "relays") TreeShape::parse(value);
    spec.size("segment", 0);
    spec.size("direct", 0);
    return refuse_relays(job, spec, level_shapes(job, spec, {2}));
}

RootedTree topology_tree(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    RootedTree tree;
    tree.self = job.position_of(rank);
    const std::int64_t direct = spec.size("direct", 0);
    const bool straight = direct > 0 && request.block_bytes >= direct;
    const auto top = spec.find("top");
    const TreeShape shape = straight ? TreeShape{} : top ? TreeShape::parse(*top) : TreeShape{2};
    tree.parts = straight ? std::uint16_t{1} : slices_of(request, spec);
    const Position root = job.position_of(request.root);
    std::vector<LevelShape> levels = straight ? std::vector<LevelShape>() : level_shapes(job, spec, {2});
    const std::int32_t relays = straight ? 1 : relays_of(spec);
    tree.neighbours = relays > 1 ? relayed_links(job, tree.self, root, std::move(levels), shape, relays)
                                 : TopologyTree(job, {0, job.size()}, root, std::move(levels), shape).of(tree.self);
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
