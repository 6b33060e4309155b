#include "palmette/collectives/trees/rooted_vector.hpp"

#include <algorithm>
#include <array>

#include "palmette/base/error.hpp"
#include "palmette/collectives/trees/bine.hpp"
#include "palmette/collectives/trees/earliest_arrival_tree.hpp"
#include "palmette/collectives/trees/laned_tree.hpp"
#include "palmette/collectives/trees/send_window.hpp"
#include "palmette/collectives/trees/tree_formulas.hpp"

namespace palmette::collectives {
namespace {

constexpr std::int64_t large_vector = 32 << 10;
constexpr std::int32_t largest_star = 8;
constexpr std::int32_t longest_chain = 16;

EarliestForm earliest_form(const Spec& spec) {
    EarliestForm form;
    form.helpers = spec.integer("helpers", form.helpers, 0);
    form.groups_first = spec.word("first", {"nodes", "groups"}) == "groups";
    return form;
}

/// Upper bound, so that the slices of all lanes have tags.
constexpr std::int32_t most_lanes = 16;
static_assert(most_slices % most_lanes == 0);

std::int32_t lanes_of(const Spec& spec) {
    const std::int32_t lanes = spec.integer("lanes", 1, 1);
    if (lanes > most_lanes || (lanes & (lanes - 1)) != 0)
        base::fail("lanes=", lanes, " is not 1, 2, 4, 8 or ", most_lanes);
    return lanes;
}

bool in_order_of_ranks(const Request& request, const Spec& spec) {
    if (request.ordered && !spec.find("order")) return true;
    return spec.word("order", {"topology", "rank"}) == "rank";
}

std::uint16_t default_slices(const Request& request) {
    const std::int64_t segment = std::clamp<std::int64_t>(request.block_bytes / 16, 4 << 10, 64 << 10);
    const std::int64_t slices = (request.block_bytes + segment - 1) / segment;
    return static_cast<std::uint16_t>(std::clamp<std::int64_t>(slices, 1, most_slices));
}

/// Trees with bounded fan-out are pipelined by default.
std::uint16_t flat_slices(const Request& request, const Spec& spec) {
    const bool pipelined = spec.name == "chain" || spec.name == "k_ary";
    return pipelined && !spec.find("segment") ? default_slices(request) : slices_of(request, spec);
}

TreeShape flat_shape(const Spec& spec) {
    if (spec.name == "chain") return TreeShape::chain();
    if (spec.name == "k_ary") return TreeShape::k_ary(spec.integer("radix", 2, 1));
    return {spec.name == "linear" ? 0 : spec.integer("radix", 2, 2)};
}

TreeShape shape_for(std::int32_t members, bool large) {
    if (large) return members <= largest_star ? TreeShape::chain() : TreeShape::k_ary(2);
    return small_shape(members);
}

RootedTree without_topology(const Job& job, const Request& request, const Spec& spec, Rank rank) {
    RootedTree tree;
    tree.parts = flat_slices(request, spec);
    if (in_order_of_ranks(request, spec)) {
        tree.ranks = job.in_rank_order();
        tree.order = plan::BlockOrder::rank;
        tree.self = {rank.value};
    } else {
        tree.self = job.position_of(rank);
    }
    return tree;
}

/// Whether the value of a key of by_topology is the shape inside of groups of a level, and may be `shared`.
bool names_a_shape(std::string_view key) {
    constexpr std::array<std::string_view, 6> others = {"top", "segment", "relays", "single", "lanes", "window"};
    return std::find(others.begin(), others.end(), key) == others.end();
}

/// Checks keys, of which bcast has one more than reduce.
void check_tree_keys(const Request& request, const Spec& spec, std::vector<std::string_view> known,
                     const Job* levels = nullptr) {
    if (request.collective == plan::Collective::bcast) known.emplace_back("window");
    check_keys(spec, known, levels);
    SendWindow{spec};
}

std::optional<std::string> refuse_order(const Job& job, const Request& request, const Spec& spec) {
    if (!request.ordered || in_order_of_ranks(request, spec) || in_rank_order(job)) return std::nullopt;
    return "the operation isn't commutative and topology order isn't rank order here: use order=rank";
}

}  // namespace

std::int32_t members_of(const Job& job, std::size_t level) {
    const std::int32_t groups = job.levels()[level].groups.count();
    const std::int32_t inner = level + 1 < job.levels().size() ? job.levels()[level + 1].groups.count() : job.size();
    return (inner + groups - 1) / groups;
}

TreeShape small_shape(std::int32_t members) { return members <= largest_star ? TreeShape{0} : TreeShape{2}; }

bool in_rank_order(const Job& job) {
    for (std::int32_t r = 0; r < job.size(); ++r)
        if (job.position_of(Rank{r}).value != r) return false;
    return true;
}

TopologyForm topology_form(const Job& job, const Request& request, const Spec& spec) {
    TopologyForm form;
    const std::size_t node = *job.find_level("node");
    const bool any = std::any_of(spec.options.begin(), spec.options.end(), [](const auto& option) {
        return names_a_shape(option.first) && option.first != "inside";
    });
    const bool large = !any && request.block_bytes >= large_vector;
    const bool one_chain = large && job.levels()[node].groups.count() <= longest_chain;
    for (std::size_t level = 0; level < job.levels().size(); ++level) {
        const bool inside = level >= node;
        std::optional<TreeShape> shape;
        if (const auto text = spec.find(job.levels()[level].name))
            shape = TreeShape::parse(*text, inside);
        else if (const auto within = spec.find("inside"); within && inside)
            shape = TreeShape::parse(*within, true);
        else if (!any && inside && request.shared_memory)
            shape = TreeShape{0, TreeShape::Kind::nomial, true};
        else if (!any && (inside || !one_chain))
            shape = shape_for(members_of(job, level), large);
        if (!shape) continue;
        shape->shared = shape->shared && request.shared_memory;
        form.levels.push_back({level, *shape});
    }
    const std::int32_t leaders =
        form.levels.empty() ? job.size() : job.levels()[form.levels.front().level].groups.count();
    const auto top = spec.find("top");
    form.top = top ? TreeShape::parse(*top) : one_chain ? TreeShape::chain() : shape_for(leaders, large);
    form.parts = large && !spec.find("segment") ? default_slices(request) : slices_of(request, spec);
    return form;
}

void check_topology_form(const Job& job, const Request& request, const Spec& spec) {
    for (const auto& [key, value] : spec.options)
        if (names_a_shape(key) && !job.find_level(key)) TreeShape::parse(value, true);
    topology_form(job, request, spec);
}

RootedTree flat_vector_tree(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    RootedTree tree = without_topology(job, request, spec, rank);
    tree.keeps_order = request.ordered;
    const Numbering numbering = tree.keeps_order ? Numbering::sides : Numbering::nested;
    const bool ranks = tree.order == plan::BlockOrder::rank;
    const Job& of = ranks ? tree.ranks : job;
    const Position root = ranks ? Position{request.root.value} : job.position_of(request.root);
    tree.neighbours = TopologyTree(of, {0, job.size()}, root, {}, flat_shape(spec), numbering).of(tree.self);
    return tree;
}

RootedTree topology_vector_tree(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    TopologyForm form = topology_form(job, request, spec);
    RootedTree tree;
    tree.self = job.position_of(rank);
    tree.parts = form.parts;
    tree.keeps_order = request.ordered;
    if (relays_of(spec) > 1) {
        tree.neighbours = relayed_links(job, tree.self, job.position_of(request.root), std::move(form.levels), form.top,
                                        relays_of(spec));
        return tree;
    }
    const Position root = job.position_of(request.root);
    const TopologyTree whole(job, {0, job.size()}, root, std::move(form.levels), form.top,
                             tree.keeps_order ? Numbering::sides : Numbering::nested);
    tree.neighbours = whole.of(tree.self);
    const std::int32_t lanes = lanes_of(spec);
    for (std::int32_t lane = 1; lane < lanes; ++lane)
        tree.lanes.push_back(lane_links(job, whole, root, lane, tree.self));
    tree.parts = whole_rounds(tree.parts, lanes);
    return tree;
}

RootedTree bine_vector_tree(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    RootedTree tree = without_topology(job, request, spec, rank);
    const std::int32_t p = job.size();
    const std::int32_t root =
        tree.order == plan::BlockOrder::rank ? request.root.value : job.position_of(request.root).value;
    const BineNeighbours near = bine_tree(p, (tree.self.value - root + p) % p);
    const auto link = [&](std::int32_t member) {
        return TreeLink{{static_cast<std::int32_t>((std::int64_t{member} + root) % p)}, {}, "top"};
    };
    if (near.parent) tree.neighbours.parent = link(*near.parent);
    for (const std::int32_t child : near.children) tree.neighbours.children.push_back(link(child));
    return tree;
}

RootedTree earliest_vector_tree(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    RootedTree tree;
    tree.self = job.position_of(rank);
    tree.parts = slices_of(request, spec);
    EarliestForm form = earliest_form(spec);
    form.to_root = request.collective == plan::Collective::reduce;
    form.bytes = request.block_bytes / tree.parts;
    tree.neighbours = EarliestArrivalTree(job, job.position_of(request.root), form).of(tree.self);
    return tree;
}

std::optional<double> flat_vector_formula(const FormulaInput& input) {
    return vector_along_s(input, flat_phases(input, flat_shape(input.spec)));
}

std::optional<double> topology_vector_formula(const FormulaInput& input) {
    return vector_along_s(input, topology_phases(input));
}

std::optional<std::string> refuse_flat_vector(const Job& job, const Request& request, const Spec& spec) {
    if (spec.name == "linear" || spec.name == "chain")
        check_tree_keys(request, spec, {"order", "segment"});
    else
        check_tree_keys(request, spec, {"radix", "order", "segment"});
    flat_shape(spec);
    spec.word("order", {"topology", "rank"});
    spec.size("segment", 0);
    return refuse_order(job, request, spec);
}

std::optional<std::string> refuse_topology_vector(const Job& job, const Request& request, const Spec& spec) {
    std::vector<std::string_view> keys = {"top", "inside", "segment", "relays", "single"};
    if (request.collective == plan::Collective::bcast) keys.emplace_back("lanes");
    check_tree_keys(request, spec, keys, &job);
    check_single_copy(spec);
    if (lanes_of(spec) > 1 && relays_of(spec) > 1) return "lanes and relays both choose the senders: give one of them";
    check_topology_form(job, request, spec);
    if (const auto reason = refuse_relays(job, spec, topology_form(job, request, spec).levels)) return reason;
    if (request.ordered && relays_of(spec) > 1)
        return "the operation isn't commutative, and relays receive from nodes that aren't adjacent to theirs: leave "
               "out relays";
    if (request.ordered && !in_rank_order(job))
        return "the operation isn't commutative and topology order isn't rank order here: use an algorithm with "
               "order=rank";
    return std::nullopt;
}

std::optional<std::string> refuse_bine_vector(const Job&, const Request& request, const Spec& spec) {
    check_tree_keys(request, spec, {"order", "segment"});
    spec.word("order", {"topology", "rank"});
    spec.size("segment", 0);
    if (request.ordered) return "a Bine tree doesn't combine in the order of ranks: its distances alternate in sign";
    return std::nullopt;
}

std::optional<std::string> refuse_earliest_vector(const Job& job, const Request& request, const Spec& spec) {
    check_tree_keys(request, spec, {"helpers", "first", "segment"});
    spec.size("segment", 0);
    earliest_form(spec);
    if (request.ordered) return "an earliest-arrival tree doesn't combine in the order of ranks";
    return EarliestArrivalTree::refuse(job);
}

std::uint16_t whole_rounds(std::int64_t slices, std::int64_t trees) {
    const std::int64_t rounds = (slices + trees - 1) / trees;
    return static_cast<std::uint16_t>(trees * std::min(rounds, most_slices / trees));
}

std::int64_t one_tag_a_slice(const Job&, const Request&, const Spec&) { return most_slices; }

Program bcast_along(const Job& job, Rank rank, const Spec& spec, const RootedTree& tree) {
    using plan::Buffer;
    plan::ProgramBuilder builder(rank, tree.order);
    const plan::Blocks all(0, 1);
    const Buffer here = tree.neighbours.parent ? Buffer::recv : Buffer::send;
    SendWindow window(spec);
    for (std::uint16_t part = 0; part < tree.parts; ++part) {
        const TreeNeighbours& near = tree.of_slice(part);
        const auto readers = std::count_if(near.children.begin(), near.children.end(),
                                           [](const TreeLink& child) { return child.shared; });
        const plan::Slice slice{part, tree.parts};
        std::vector<plan::StepId> arrived;
        if (near.parent) {
            builder.stage("broadcast from " + near.parent->stage + " leader");
            const Rank parent = tree.rank_at(job, near.parent->peer);
            arrived.push_back(near.parent->shared ? builder.pull(parent, part, {0, 1}, here, all, {}, slice)
                                                  : builder.recv(parent, part, here, all, {}, slice));
        }
        for (const TreeLink& child : near.children) {
            if (child.shared) continue;
            builder.stage("broadcast from " + child.stage + " leader");
            window.add(builder.send(tree.rank_at(job, child.peer), part, here, all, window.after(arrived), slice));
        }
        if (readers == 0) continue;
        builder.stage("broadcast inside of the node");
        builder.expose(part, here, {0, 1}, static_cast<std::size_t>(readers), arrived, slice);
    }
    return builder.finish();
}

namespace {

/// Children in the order in which they are combined: smallest subtrees first.
std::vector<const TreeLink*> combining_order(const RootedTree& tree) {
    std::vector<const TreeLink*> out;
    for (auto child = tree.neighbours.children.rbegin(); child != tree.neighbours.children.rend(); ++child)
        out.push_back(&*child);
    // On each side the nearest neighbours first, so that the partial result always covers an interval of positions.
    if (tree.keeps_order)
        std::stable_sort(out.begin(), out.end(), [&](const TreeLink* a, const TreeLink* b) {
            return std::abs(a->peer.value - tree.self.value) < std::abs(b->peer.value - tree.self.value);
        });
    return out;
}

/// Receive buffers for children's vectors. Layer 0 of a rank other than the root also accumulates the partial result.
class Landing {
  public:
    Landing(plan::ProgramBuilder& builder, const Request& request, const std::vector<const TreeLink*>& children,
            bool root) {
        // Large vectors are double-buffered: further ones wait at their senders; small ones are all received at once.
        const std::int64_t window =
            std::clamp<std::int64_t>((256 << 10) / std::max<std::int64_t>(request.block_bytes, 1), 2, 64);
        const std::size_t base = root ? 0 : 1;
        std::size_t used = 0;
        for (const TreeLink* child : children)
            layers_.push_back(child->shared              ? 0
                              : !root && layers_.empty() ? 0
                                                         : base + used++ % static_cast<std::size_t>(window));
        if (children.empty()) return;
        const std::size_t count = base + std::min(used, static_cast<std::size_t>(window));
        for (std::size_t layer = 0; layer < count; ++layer)
            builder.reserve_scratch(plan::Blocks(0, 1), plan::scratch_layer(layer));
        freed_.resize(count);
    }
    plan::Buffer buffer(std::size_t child) const { return plan::scratch_layer(layers_[child]); }
    /// Dependencies of a child's receive: the reader of the buffer's previous contents.
    std::vector<plan::StepId> waits(std::size_t child) const { return freed_[layers_[child]]; }
    void free(std::size_t child, plan::StepId reader) { freed_[layers_[child]] = {reader}; }
    void next_slice() { std::fill(freed_.begin(), freed_.end(), std::vector<plan::StepId>()); }

  private:
    std::vector<std::size_t> layers_;  ///< by child
    std::vector<std::vector<plan::StepId>> freed_;
};

}  // namespace

Program reduce_along(const Job& job, Rank rank, const Request& request, const RootedTree& tree) {
    using plan::Buffer;
    plan::ProgramBuilder builder(rank, tree.order);
    const TreeNeighbours& near = tree.neighbours;
    const plan::Blocks all(0, 1);
    const bool root = !near.parent;
    const std::vector<const TreeLink*> children = combining_order(tree);
    Landing landing(builder, request, children, root);
    const Buffer total = root ? Buffer::recv : Buffer::scratch;
    for (std::uint16_t part = 0; part < tree.parts; ++part) {
        const plan::Slice slice{part, tree.parts};
        std::vector<plan::StepId> combined;
        landing.next_slice();
        for (std::size_t i = 0; i < children.size(); ++i) {
            const TreeLink& child = *children[i];
            const Rank peer = tree.rank_at(job, child.peer);
            const bool left = tree.keeps_order && child.peer < tree.self;
            const Buffer own = i == 0 ? Buffer::send : total;
            builder.stage("reduce to " + child.stage + " leader");
            if (child.shared) {
                combined = {builder.pull_reduce(peer, part, {0, 1}, left, own, total, all, combined, slice)};
                continue;
            }
            const Buffer landed = landing.buffer(i);
            combined.push_back(builder.recv(peer, part, landed, all, landing.waits(i), slice));
            combined = {left ? builder.reduce(landed, own, total, all, combined, slice)
                             : builder.reduce(own, landed, total, all, combined, slice)};
            landing.free(i, combined.front());
        }
        const Buffer here = children.empty() ? Buffer::send : total;
        if (root) {
            if (children.empty())
                builder.stage("copy own block"), builder.copy(Buffer::send, Buffer::recv, all, {}, slice);
            continue;
        }
        builder.stage("reduce to " + near.parent->stage + " leader");
        if (near.parent->shared)
            builder.expose(part, here, {0, 1}, 1, combined, slice);
        else
            builder.send(tree.rank_at(job, near.parent->peer), part, here, all, combined, slice);
    }
    return builder.finish();
}

}  // namespace palmette::collectives
