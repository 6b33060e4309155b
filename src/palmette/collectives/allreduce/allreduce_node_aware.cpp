// allreduce, node_aware: recursive multiplying between nodes, whose messages are distributed over the ranks of each
// node.
//
//   p = 8 on four nodes of two ranks, radix=all:
//
//       0─1   2─3   4─5   6─7        inside: every rank has its node's sum
//       0═4, 1═2, 3═6, 5═7, ...      between: rank i of a node exchanges with every second node, both together with all
//       0─1   2─3   4─5   6─7        inside: the partial sums are combined
//
//   With g ranks per node a step takes N/g messages per rank for N nodes, where single leaders take N, or lg N one
//   after the other. All nodes evaluate the same expression, so results are bitwise equal: lane t of every node adds
//   up nodes t, t + lanes, ... in ascending order.
#include <algorithm>

#include "palmette/base/error.hpp"
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/reduce_exchange.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Slice;
using plan::StepId;

constexpr std::int32_t most_landings = 32;

/// Parameters of the specification, resolved for one job.
struct Form {
    Form(const Job& job, const Spec& spec)
        : nodes(job.nodes().groups),
          inside(ReducePattern::parse(spec.find("inside").value_or("recursive_multiplying.4"))),
          rounds(factors_of(nodes.count(), spec.find("radix").value_or("all") == "all" ? std::max(nodes.count(), 2)
                                                                                       : spec.integer("radix", 2, 2))),
          lanes(nodes.smallest()),
          inside_tags(inside.tags(lanes)) {}
    /// Tags: of the node's inside, then two to fold, then per round those between nodes, inside, and of forwarding.
    std::int64_t tags() const {
        return inside_tags + 2 + static_cast<std::int64_t>(rounds.factors.size()) * (inside_tags + 2);
    }

    const topology::Partition& nodes;
    ReducePattern inside;
    Factors rounds;
    std::int32_t lanes;  ///< ranks of each node that communicate with other nodes
    std::int32_t inside_tags;

    // Layers of scratch: the sum, arrivals from other nodes, then one block for each exchange inside, and one to fold.
    std::int32_t arrivals(std::int32_t n) const {
        const std::int32_t used = std::min(lanes, n);
        return std::min(most_landings, (n + used - 1) / used);
    }
    std::size_t layers_between() const {
        std::int32_t most = 0;
        for (const std::int32_t factor : rounds.factors) most = std::max(most, arrivals(factor));
        return static_cast<std::size_t>(most) + 1;
    }
    std::size_t layers_inside(std::int32_t n) const { return recursive_multiplying_layers(n, inside.radix); }
    /// Number of layers on a node of n ranks.
    std::size_t layers(std::int32_t n) const {
        return layers_between() + layers_inside(n) + rounds.factors.size() * layers_inside(lanes) + 1;
    }
};

class NodeAwareMaker {
  public:
    NodeAwareMaker(const Job& job, Rank rank, const Request& request, const Spec& spec)
        : job_(job),
          form_(job, spec),
          builder_(rank, plan::BlockOrder::topology),
          slices_(slices_of(request, spec)),
          node_(form_.nodes.group_of(job.position_of(rank).value)),
          index_(job.position_of(rank).value - form_.nodes.first(node_)),
          size_(form_.nodes.size_of(node_)) {}

    Program make() {
        for (std::uint16_t i = 0; i < slices_; ++i) make_slice({i, slices_});
        scratch_.reserve(builder_);
        return builder_.finish();
    }

  private:
    void make_slice(Slice slice) {
        slice_ = slice;
        tag_ = static_cast<std::int32_t>(slice.index * form_.tags());
        builder_.stage("reduce inside");
        readers_.clear();
        held_ = combine_inside({Buffer::send, {}}, size_, form_.layers_between());
        const Fold& fold = form_.rounds.fold;
        const std::int32_t fold_tag = tag_;
        tag_ += 2;
        builder_.stage("between nodes");
        if (fold.gives(node_)) {
            send_and_await_result(fold_tag);
            return;
        }
        if (fold.takes(node_)) take(fold_tag);
        std::int32_t stride = 1;
        round_ = 0;
        const std::int32_t self = fold.core_index(node_);
        for (const std::int32_t factor : form_.rounds.factors) {
            const std::int32_t digit = self / stride % factor;
            std::vector<std::int32_t> peers;
            for (std::int32_t j = 0; j < factor; ++j) peers.push_back(fold.participant(self + (j - digit) * stride));
            round(peers, digit);
            stride *= factor;
            ++round_;
        }
        if (fold.takes(node_)) return_result(fold_tag);
    }

    Rank rank_of(std::int32_t node, std::int32_t index) const {
        return job_.rank_at({form_.nodes.first(node) + index});
    }

    /// Allreduce among the first n ranks of the node. Uses the tags of one exchange inside.
    HeldBlocks combine_inside(const HeldBlocks& held, std::int32_t n, std::size_t first_layer) {
        const ReduceContext context{
            .builder = builder_,
            .scratch = scratch_,
            .n = n,
            .me = index_,
            .rank_of = [&](std::int32_t i) { return rank_of(node_, i); },
            .blocks_of = [](std::int32_t first, std::int32_t count) { return Blocks(first, count); },
            .input = held.buffer,
            .work = Buffer::recv,
            .result = Buffer::recv,
            .first_layer = first_layer,
            .ready = held.ready,
            .first_tag = tag_,
            .slice = slice_,
            .ordered = false,
            .readers = &readers_,
        };
        tag_ += form_.inside_tags;
        return {Buffer::recv, form_.inside.allreduce(context, {})};
    }

    /// One exchange among the nodes `peers`, of which this is number `digit`.
    void round(const std::vector<std::int32_t>& peers, std::int32_t digit) {
        const auto n = static_cast<std::int32_t>(peers.size());
        const std::int32_t lanes = std::min(form_.lanes, n);
        const std::int32_t between = tag_, handed = tag_ + 1;
        tag_ += 2;
        if (index_ >= lanes) {
            tag_ += form_.inside_tags;
            builder_.stage("forward inside");
            held_ = {Buffer::recv,
                     {builder_.recv(rank_of(node_, index_ % lanes), handed, Buffer::recv, Blocks(0, 1), free_to_write(),
                                    slice_)}};
            return;
        }
        builder_.stage("between nodes");
        for (std::int32_t turn = 1; turn < n; ++turn) {
            const std::int32_t to = (digit + turn) % n;
            if (to % lanes == index_)
                readers_.push_back(builder_.send(rank_of(peers[static_cast<std::size_t>(to)], digit % lanes), between,
                                                 Buffer::recv, Blocks(0, 1), held_.ready, slice_));
        }
        HeldBlocks sum = add_up(peers, digit, lanes, between);
        add_steps(sum.ready, free_to_write());
        builder_.stage("combine inside");
        held_ = combine_inside(sum, lanes,
                               form_.layers_between() + form_.layers_inside(size_) +
                                   static_cast<std::size_t>(round_) * form_.layers_inside(form_.lanes));
        builder_.stage("forward inside");
        for (std::int32_t i = index_ + lanes; i < size_; i += lanes)
            readers_.push_back(
                builder_.send(rank_of(node_, i), handed, Buffer::recv, Blocks(0, 1), held_.ready, slice_));
    }

    /// Sum over the nodes of the own lane, in ascending order.
    HeldBlocks add_up(const std::vector<std::int32_t>& peers, std::int32_t digit, std::int32_t lanes,
                      std::int32_t tag) {
        const auto n = static_cast<std::int32_t>(peers.size());
        const Blocks all(0, 1);
        const auto layers = static_cast<std::size_t>(form_.arrivals(n));
        // In later rounds the layers are reused.
        std::vector<std::vector<StepId>> free(layers, round_ > 0 ? held_.ready : std::vector<StepId>());
        // The message of the lane's k-th node.
        const auto land = [&](std::int32_t from, std::size_t k) {
            const std::size_t layer = k % layers;
            const Buffer buffer = plan::scratch_layer(1 + layer);
            scratch_.need(buffer, all);
            const Rank peer = rank_of(peers[static_cast<std::size_t>(from)], digit % lanes);
            return HeldBlocks{buffer, {builder_.recv(peer, tag, buffer, all, free[layer], slice_)}};
        };
        HeldBlocks sum{};
        std::size_t sum_layer = layers;
        for (std::int32_t from = index_, k = 0; from < n; from += lanes, ++k) {
            const std::size_t layer = static_cast<std::size_t>(k) % layers;
            HeldBlocks next = from == digit ? held_ : land(from, static_cast<std::size_t>(k));
            if (k == 0) {
                sum = std::move(next);
                sum_layer = from == digit ? layers : layer;
                continue;
            }
            const Buffer target = plan::scratch_layer(0);
            scratch_.need(target, all);
            add_steps(next.ready, sum.ready);
            const StepId reduced = builder_.reduce(sum.buffer, next.buffer, target, all, next.ready, slice_);
            if (from != digit) free[layer] = {reduced};
            if (sum_layer < layers) free[sum_layer] = {reduced};
            sum_layer = layers;
            sum = {target, {reduced}};
        }
        return sum;
    }

    /// The steps after which the partial sum isn't needed any more: the next one overwrites it.
    std::vector<StepId> free_to_write() {
        std::vector<StepId> out = std::move(readers_);
        readers_.clear();
        add_steps(out, held_.ready);
        return out;
    }

    // --- folding, for numbers of nodes without suitable factors: rank i of a pair's second node sends to rank i of the
    // first ---

    void send_and_await_result(std::int32_t tag) {
        const std::int32_t to = node_ - 1;
        const std::int32_t size = form_.nodes.size_of(to);
        std::vector<StepId> sent;
        for (std::int32_t i = index_; i < size; i += size_)
            sent.push_back(builder_.send(rank_of(to, i), tag, Buffer::recv, Blocks(0, 1), held_.ready, slice_));
        add_steps(sent, free_to_write());
        builder_.recv(rank_of(to, index_ % size), tag + 1, Buffer::recv, Blocks(0, 1), sent, slice_);
    }
    void take(std::int32_t tag) {
        const std::int32_t size = form_.nodes.size_of(node_ + 1);
        const Buffer landing = plan::scratch_layer(form_.layers(size_) - 1);
        scratch_.need(landing, Blocks(0, 1));
        std::vector<StepId> waits = free_to_write();
        waits.push_back(builder_.recv(rank_of(node_ + 1, index_ % size), tag, landing, Blocks(0, 1), {}, slice_));
        held_.ready = {builder_.reduce(Buffer::recv, landing, Buffer::recv, Blocks(0, 1), waits, slice_)};
    }
    void return_result(std::int32_t tag) {
        const std::int32_t size = form_.nodes.size_of(node_ + 1);
        for (std::int32_t i = index_; i < size; i += size_)
            builder_.send(rank_of(node_ + 1, i), tag + 1, Buffer::recv, Blocks(0, 1), held_.ready, slice_);
    }

    const Job& job_;
    Form form_;
    plan::ProgramBuilder builder_;
    std::uint16_t slices_;
    std::int32_t node_, index_, size_;
    ScratchBuffer scratch_;
    Slice slice_;
    std::int32_t tag_ = 0;  ///< the next free one
    std::int32_t round_ = 0;
    HeldBlocks held_{};            ///< the partial sum, the same on all ranks of the node
    std::vector<StepId> readers_;  ///< steps that still read it
};

std::optional<std::string> refuse_node_aware(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"radix", "inside", "segment"});
    spec.size("segment", 0);
    if (spec.find("radix").value_or("all") != "all") spec.integer("radix", 2, 2);
    const ReducePattern inside = ReducePattern::parse(spec.find("inside").value_or("recursive_multiplying.4"));
    if (inside.kind != ReducePattern::Kind::recursive_multiplying)
        base::fail("inside=", *spec.find("inside"),
                   " cuts the vector: there are recursive_doubling, recursive_multiplying[.K] and all");
    const Form form(job, spec);
    for (std::int32_t g = 0; g < form.nodes.count(); ++g)
        if (form.layers(form.nodes.size_of(g)) > plan::most_layers_of_scratch)
            return std::string("too few scratch layers for so many concurrent messages: use a smaller radix");
    if (request.ordered)
        return std::string("every rank adds up contributions of some nodes only, which isn't the order of ranks");
    return std::nullopt;
}

std::int64_t tags_node_aware(const Job& job, const Request& request, const Spec& spec) {
    return slices_of(request, spec) * Form(job, spec).tags();
}

Program make_node_aware(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return NodeAwareMaker(job, rank, request, spec).make();
}

std::optional<double> formula_node_aware(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    // With nodes of different sizes the number of lanes is the size of the smallest one.
    if (input.has_any({"radix", "inside", "segment"}) || !tiers.even()) return std::nullopt;
    const double n = input.bytes, group = tiers.node().ranks, nodes = tiers.nodes();
    return 2 * summed_in_node_s(tiers, n) + tiers.between_nodes((nodes - 1) / group, n) +
           tiers.reduce_s(n * (nodes - 1) / group);
}

}  // namespace

const Algorithm allreduce_node_aware{
    .collective = Collective::allreduce,
    .name = "node_aware",
    .sentence =
        "Nodes exchange sums, with messages distributed over the ranks of a node: a short critical path for small "
        "vectors.",
    .source =
        "Bienz, Olson, Gropp, \"Node-aware improvements to allreduce\", ExaMPI 2019; any sizes and numbers of nodes "
        "here",
    .keys =
        "radix=K|all (all), inside=recursive_doubling|recursive_multiplying[.K]|all (recursive_multiplying.4), "
        "segment=SIZE",
    .preconditions = "an operation that commutes",
    .relays = true,
    .refuse = refuse_node_aware,
    .make = make_node_aware,
    .tags = tags_node_aware,
    .formula = formula_node_aware,
    .candidates = "node_aware",
    .samples = "node_aware node_aware:radix=2,inside=recursive_doubling node_aware:radix=3,inside=all,segment=20",
};

}  // namespace palmette::collectives
