#include "palmette/collectives/exchanges/node_pieces.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "palmette/base/error.hpp"
#include "palmette/collectives/trees/tree_shape.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::StepId;

enum : std::int32_t { tag_inside = 0, tag_complete = 64, tag_to_owner = 100, tag_from_owner, tag_to_root };

constexpr std::size_t most_landings = 32;
/// Upper bound of scratch layers of the exchanges inside of a node.
constexpr std::size_t layers_inside = 34;
constexpr std::int32_t most_in_group = 16;
static_assert(MultiwayHalving::layers(most_in_group) <= layers_inside);
const ReducePattern complete_pattern{ReducePattern::Kind::recursive_multiplying, 4};
/// After them and arrivals from other nodes: their sum, the complete piece, and operands for it.
constexpr std::size_t sum_layer = layers_inside + most_landings;
constexpr Buffer layer_of_piece = plan::scratch_layer(sum_layer + 1);
constexpr std::size_t first_complete_layer = sum_layer + 2;
constexpr std::size_t complete_landings = 6;

Blocks blocks_of(Interval pieces) { return {pieces.first, pieces.count}; }

std::int32_t hands_of(const topology::Partition& nodes) {
    return nodes.smallest() < nodes.largest() ? nodes.smallest() : 1;
}

/// 1: direct, 2: halving, K: halving.K.
std::int32_t radix_inside(const Spec& spec) {
    const std::string text(spec.find("inside").value_or("direct"));
    if (text == "direct") return 1;
    if (text == "halving") return 2;
    constexpr std::string_view grouped = "halving.";
    if (text.starts_with(grouped)) {
        std::int32_t radix = 0;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + grouped.size(), end, radix);
        if (error == std::errc() && stop == end && radix > 2 && radix <= most_in_group) return radix;
    }
    base::fail("algorithm '", spec.text(), "': inside is one of direct, halving, halving.K with K from 3 to ",
               most_in_group, ", not '", text, "'");
}

}  // namespace

NodePieces::NodePieces(const Job& job, const Spec& spec, bool ordered, bool dealt)
    : job_(job),
      nodes_(job.nodes().groups),
      dealt_(nodes_.count(), dealt && !ordered ? hands_of(nodes_) : 1),
      radix_(radix_inside(spec)) {
    // Groups (multiway halving) don't preserve the order of operands.
    if (ordered && radix_ > 2) radix_ = 1;
}

std::int32_t NodePieces::multiway(std::int32_t node) const {
    const std::int32_t size = size_of(node);
    return radix_ > 2 && size <= count() && !divide(size, radix_).empty() ? radix_ : 0;
}

std::int32_t NodePieces::parts(std::int32_t node) const {
    return halves(node) ? power_of_two_in(size_of(node)) : std::min(size_of(node), count());
}

std::int32_t NodePieces::part_of(std::int32_t node, std::int32_t piece) const {
    return static_cast<std::int32_t>(std::int64_t{piece} * parts(node) / count());
}

Interval NodePieces::pieces(std::int32_t node, std::int32_t part, std::int32_t parts) const {
    const std::int64_t all = this->parts(node);
    const auto begin = [&](std::int64_t p) { return (std::min(p, all) * count() + all - 1) / all; };
    return {begin(part), begin(std::int64_t{part} + parts) - begin(part)};
}

std::int32_t NodePieces::holder(std::int32_t node, std::int32_t part) const {
    return halves(node) ? Halving::owner(part, size_of(node)) : part;
}

std::int32_t NodePieces::part_at(std::int32_t node, std::int32_t index) const {
    for (std::int32_t part = 0; part < parts(node); ++part)
        if (holder(node, part) == index) return part;
    return -1;
}

Rank NodePieces::toward(std::int32_t node, std::int32_t other) const {
    return rank_of(node, holder(node, part_of(node, other)));
}

bool completes_by_trees(const Spec& spec) { return spec.word("complete", {"exchange", "tree"}) == "tree"; }

std::optional<std::string> refuse_node_pieces(const Job& job, const Request& request, const Spec& spec) {
    spec.size("segment", 0);
    spec.integer("window", 1);
    NodePieces(job, spec, request.ordered, false);
    return refuse_scattered(job, request);
}

std::int64_t node_pieces_tags(const Job&, const Request& request, const Spec& spec) {
    return std::int64_t{slices_of(request, spec)} * PieceExchange::tags;
}

PieceExchange::PieceExchange(const Where& where)
    : where_(where),
      size_(where.pieces.size_of(where.node)),
      parts_(where.pieces.parts(where.node)),
      part_(where.pieces.part_at(where.node, where.index)),
      context_(inside_context({})) {}

std::size_t PieceExchange::layers(const NodePieces& pieces, std::int32_t node) {
    return first_complete_layer +
           std::max(complete_landings, recursive_multiplying_layers(pieces.parts(node), complete_pattern.radix));
}

ReduceContext PieceExchange::inside_context(const std::vector<StepId>& ready) const {
    return {
        .builder = where_.builder,
        .scratch = where_.scratch,
        .n = size_,
        .me = where_.index,
        .rank_of = [this](std::int32_t i) { return where_.pieces.rank_of(where_.node, i); },
        .blocks_of = [this](std::int32_t first,
                            std::int32_t count) { return blocks_of(where_.pieces.pieces(where_.node, first, count)); },
        .input = Buffer::send,
        .work = where_.work,
        .result = where_.work,
        .ready = ready,
        .first_tag = where_.first_tag + tag_inside,
        .slice = where_.slice,
        .ordered = where_.ordered,
    };
}

std::vector<StepId> PieceExchange::reduce_inside(const std::vector<StepId>& ready) {
    where_.builder.stage("reduce inside");
    context_.ready = ready;
    sum_ = {Buffer::send, ready};
    if (size_ == 1) return ready;
    if (where_.pieces.halves(where_.node)) {
        sum_ = halving_.emplace(context_).reduce_parts();
    } else if (const std::int32_t radix = where_.pieces.multiway(where_.node)) {
        sum_ = multiway_.emplace(context_, radix).reduce_parts();
    } else {
        sum_ = {where_.work, direct_.emplace(context_).reduce_scatter()};
    }
    return sum_.ready;
}

void PieceExchange::reduce_between() {
    if (!has_part()) return;
    const HeldBlocks sum = add_up();
    where_.builder.stage("complete inside");
    if (where_.trees && !where_.ordered)
        complete_by_tree(sum, where_.pieces.part_of(where_.node, where_.node), true);
    else
        complete_by_exchange(sum);
}

void PieceExchange::reduce_between_to(std::int32_t root_node) {
    if (!has_part()) return;
    const HeldBlocks sum = add_up();
    where_.builder.stage("complete inside");
    if (where_.ordered)
        complete_by_exchange(sum);
    else
        complete_by_tree(sum, where_.pieces.part_of(where_.node, root_node), false);
}

HeldBlocks PieceExchange::add_up() {
    const auto node = where_.node;
    const auto own = own_pieces();
    const auto count = static_cast<std::int32_t>(own.count);
    const Blocks piece(node, 1);
    const NodePieces& pieces = where_.pieces;
    where_.builder.stage("between nodes");
    // Begin after the own node, which avoids contention at the first one.
    std::int32_t turn = 0;
    while (turn < count && own.first + turn <= node) ++turn;
    for (std::int32_t i = 0; i < count; ++i) {
        const auto other = static_cast<std::int32_t>(own.first) + (turn + i) % count;
        if (other == node) continue;
        sent_.emplace_back(other, where_.builder.send(pieces.toward(other, node), where_.first_tag + tag_to_owner,
                                                      sum_.buffer, Blocks(other, 1), sum_.ready, where_.slice));
    }
    // Sum over the nodes of the own part, in ascending order.
    const Buffer target = plan::scratch_layer(sum_layer);
    std::vector<std::vector<StepId>> used(most_landings);
    HeldBlocks total{};
    for (std::int32_t i = 0; i < count; ++i) {
        const auto other = static_cast<std::int32_t>(own.first) + i;
        const std::size_t place = static_cast<std::size_t>(i) % most_landings;
        HeldBlocks next = sum_;
        if (other != node) {
            const Buffer landing = plan::scratch_layer(layers_inside + place);
            where_.scratch.need(landing, piece);
            next = {landing,
                    {where_.builder.recv(pieces.toward(other, node), where_.first_tag + tag_to_owner, landing, piece,
                                         used[place], where_.slice)}};
        }
        if (i == 0) {
            total = next;
            continue;
        }
        where_.scratch.need(target, piece);
        add_steps(next.ready, total.ready);
        const StepId reduced =
            where_.builder.reduce(total.buffer, next.buffer, target, piece, next.ready, where_.slice);
        used[place] = {reduced};
        if (i == 1) used[0] = {reduced};
        total = {target, {reduced}};
    }
    return total;
}

void PieceExchange::complete_by_exchange(const HeldBlocks& sum) {
    const Blocks piece(where_.node, 1);
    ReduceContext context = inside_context(sum.ready);
    context.n = parts_;
    context.me = part_;
    context.rank_of = [this](std::int32_t part) {
        return where_.pieces.rank_of(where_.node, where_.pieces.holder(where_.node, part));
    };
    context.blocks_of = [piece](std::int32_t, std::int32_t) { return piece; };
    context.input = sum.buffer;
    context.work = context.result = layer_of_piece;
    context.first_layer = first_complete_layer;
    context.first_tag = where_.first_tag + tag_complete;
    where_.scratch.need(context.work, piece);
    piece_ = {context.work, complete_pattern.allreduce(context, {})};
}

void PieceExchange::complete_by_tree(const HeldBlocks& sum, std::int32_t root, bool for_all) {
    const Blocks piece(where_.node, 1);
    const TreeShape tree{4};
    const std::int32_t self = (part_ - root + parts_) % parts_;
    const auto at = [&](std::int32_t member) {
        return where_.pieces.rank_of(where_.node, where_.pieces.holder(where_.node, (member + root) % parts_));
    };
    const std::vector<SubTree> children = tree.children(self, parts_);
    const auto parent = tree.parent(self, parts_);
    const std::int32_t up = where_.first_tag + tag_complete, down = up + 1;
    where_.scratch.need(layer_of_piece, piece);
    piece_ = sum;
    std::vector<StepId> reduced;
    for (std::size_t i = 0; i < children.size(); ++i) {
        const Buffer landing = plan::scratch_layer(first_complete_layer + i % complete_landings);
        where_.scratch.need(landing, piece);
        std::vector<StepId> free;
        if (i >= complete_landings) free = {reduced[i - complete_landings]};
        piece_.ready.push_back(where_.builder.recv(at(children[i].first), up, landing, piece, free, where_.slice));
        reduced.push_back(
            where_.builder.reduce(piece_.buffer, landing, layer_of_piece, piece, piece_.ready, where_.slice));
        piece_ = {layer_of_piece, {reduced.back()}};
    }
    if (parent) {
        const StepId sent = where_.builder.send(at(*parent), up, piece_.buffer, piece, piece_.ready, where_.slice);
        if (!for_all) return;
        piece_ = {layer_of_piece,
                  {where_.builder.recv(at(*parent), down, layer_of_piece, piece, {sent}, where_.slice)}};
    }
    if (!for_all) return;
    for (const SubTree& child : children)
        where_.builder.send(at(child.first), down, piece_.buffer, piece, piece_.ready, where_.slice);
}

StepId PieceExchange::recv_piece(std::int32_t other, StepId sent) {
    need(Blocks(other, 1));
    // The node's sum must have been sent before the complete one is received in its place.
    return where_.builder.recv(where_.pieces.toward(other, where_.node), where_.first_tag + tag_from_owner, where_.work,
                               Blocks(other, 1), {sent}, where_.slice);
}

void PieceExchange::copy_own_piece(std::vector<StepId>& complete) {
    const Interval own = own_pieces();
    if (where_.node < own.first || where_.node >= own.end()) return;
    const Blocks piece(where_.node, 1);
    need(piece);
    complete.push_back(where_.builder.copy(piece_.buffer, where_.work, piece, piece_.ready, where_.slice));
}

std::vector<StepId> PieceExchange::gather_between() {
    std::vector<StepId> complete;
    if (!has_part()) return complete;
    where_.builder.stage("between nodes");
    // In the same order as the sums.
    for (const auto& [other, sent] : sent_) {
        where_.builder.send(where_.pieces.toward(other, where_.node), where_.first_tag + tag_from_owner, piece_.buffer,
                            Blocks(where_.node, 1), piece_.ready, where_.slice);
        complete.push_back(recv_piece(other, sent));
    }
    copy_own_piece(complete);
    return complete;
}

std::vector<StepId> PieceExchange::gather_between_to(std::int32_t root_node) {
    std::vector<StepId> complete;
    if (!has_part()) return complete;
    where_.builder.stage("gather");
    for (const auto& [other, sent] : sent_) {
        if (where_.node == root_node)
            complete.push_back(recv_piece(other, sent));
        else if (other == root_node)
            where_.builder.send(where_.pieces.toward(other, where_.node), where_.first_tag + tag_from_owner,
                                piece_.buffer, Blocks(where_.node, 1), piece_.ready, where_.slice);
    }
    if (where_.node == root_node) copy_own_piece(complete);
    return complete;
}

void PieceExchange::gather_inside_to(std::int32_t root_index, const std::vector<StepId>& ready) {
    where_.builder.stage("gather");
    const Rank root = where_.pieces.rank_of(where_.node, root_index);
    if (where_.index != root_index) {
        if (has_part())
            where_.builder.send(root, where_.first_tag + tag_to_root, where_.work, blocks_of(own_pieces()), ready,
                                where_.slice);
        return;
    }
    for (std::int32_t part = 0; part < parts_; ++part) {
        const std::int32_t holder = where_.pieces.holder(where_.node, part);
        if (holder == root_index) continue;
        // The own contribution must have been sent before the sum is received in its place.
        std::vector<StepId> waits;
        if (halving_) waits = halving_->given();
        if (multiway_) waits = multiway_->given();
        if (direct_ && direct_->sent_to(holder)) waits = {*direct_->sent_to(holder)};
        where_.builder.recv(where_.pieces.rank_of(where_.node, holder), where_.first_tag + tag_to_root, where_.work,
                            blocks_of(where_.pieces.pieces(where_.node, part)), waits, where_.slice);
    }
}

std::vector<StepId> PieceExchange::gather_inside(const std::vector<StepId>& ready) {
    where_.builder.stage("gather inside");
    if (halving_) return halving_->collect_parts(ready);
    if (multiway_) return multiway_->collect_parts(ready);
    if (direct_) return direct_->allgather(ready);
    return ready;
}

}  // namespace palmette::collectives
