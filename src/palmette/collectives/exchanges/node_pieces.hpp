// Node pieces: direct exchange between nodes with one piece of the vector per node, whose messages are distributed over
// the ranks of each node.
//
//   four nodes of two ranks; pieces A B C D are those of nodes 0 to 3, the first rank of a node handles A and B, the
//   second C and D:
//
//       0: AB ⇄ 1: CD      2: AB ⇄ 3: CD   ...     inside: each rank gets its part of the node's sum
//       A: 2, 4, 6 → 0, 1  B: 0, 4, 6 → 2, 3  ...  between: node n's piece comes from all others, half to each rank
//       0 ⇄ 1              2 ⇄ 3           ...     inside: partial sums are combined to the complete piece
//
// A piece crosses the network once, and no rank sends more than about (nodes / ranks of a node) messages for that,
// where a single leader per node sends as many as there are nodes, or a critical path of their logarithm.
#pragma once

#include <algorithm>

#include "palmette/collectives/exchanges/reduce_exchange.hpp"
#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {

/// Cyclic order of nodes: every L-th one of the machine's is adjacent. A rank of a node with L ranks serves an interval
/// of n / L of them, which so mixes large and small nodes: no rank waits for all of the large ones, which are later.
///     n = 7, L = 3:   0 3 6  1 4  2 5
class DealtNodes {
  public:
    /// `hands`: L, at least 1; 1 keeps the machine's order.
    DealtNodes(std::int32_t nodes, std::int32_t hands) : hands_(hands), each_(nodes / hands), extra_(nodes % hands) {}
    std::int32_t number_of(std::int32_t node) const {
        const std::int32_t hand = node % hands_;
        return hand * each_ + std::min(hand, extra_) + node / hands_;
    }
    std::int32_t node_at(std::int32_t number) const {
        const std::int32_t in_larger = extra_ * (each_ + 1);
        if (number < in_larger) return number % (each_ + 1) * hands_ + number / (each_ + 1);
        return (number - in_larger) % each_ * hands_ + extra_ + (number - in_larger) / each_;
    }

  private:
    std::int32_t hands_, each_, extra_;
};

/// Distribution of pieces over ranks. The ranks of a node hold parts, and a part is the pieces of nodes with
/// consecutive numbers: the machine's, or those of DealtNodes.
class NodePieces {
  public:
    /// Key inside=direct|halving|halving.K: how a node's ranks exchange parts. Throws base::Error on another value.
    /// `ordered`: contributions are combined in the machine's order. `dealt`: nodes of different sizes are numbered
    /// cyclically (DealtNodes), unless `ordered`; nodes of one size never are, since the pieces of neighbouring nodes
    /// arrive together, and near ones are forwarded while far ones are in flight.
    NodePieces(const Job& job, const Spec& spec, bool ordered, bool dealt);

    /// Number of pieces, and of nodes.
    std::int32_t count() const { return nodes_.count(); }
    std::int32_t node_of(Position position) const { return dealt_.number_of(nodes_.group_of(position.value)); }
    std::int32_t first(std::int32_t node) const { return nodes_.first(dealt_.node_at(node)); }
    std::int32_t size_of(std::int32_t node) const { return nodes_.size_of(dealt_.node_at(node)); }

    /// Whether a node uses recursive halving; with more ranks than pieces it can't.
    bool halves(std::int32_t node) const { return radix_ == 2 && size_of(node) <= count(); }
    /// Radix of multiway halving in a node; 0: not used.
    std::int32_t multiway(std::int32_t node) const;
    /// Parts that a node cuts the vector in: as many as it has ranks, but no more than pieces, and a power of two where
    /// halving needs it.
    std::int32_t parts(std::int32_t node) const;
    /// The part of a node that a piece is in. Its holder also sends to, and receives from, the piece's node.
    std::int32_t part_of(std::int32_t node, std::int32_t piece) const;
    /// The pieces of `parts` parts from `part` on.
    plan::Interval pieces(std::int32_t node, std::int32_t part, std::int32_t parts = 1) const;
    /// Index inside of the node of a part's holder.
    std::int32_t holder(std::int32_t node, std::int32_t part) const;
    /// The part that a rank holds, by its index in the node; -1: none.
    std::int32_t part_at(std::int32_t node, std::int32_t index) const;
    /// The rank of a node that sends to, and receives from, another node.
    Rank toward(std::int32_t node, std::int32_t other) const;
    /// A rank by its node and its index in the node.
    Rank rank_of(std::int32_t node, std::int32_t index) const { return job_.rank_at({first(node) + index}); }

  private:
    const Job& job_;
    const topology::Partition& nodes_;
    DealtNodes dealt_;
    std::int32_t radix_;  ///< radix of recursive halving inside of nodes; 1: direct
};

/// Key window=W: a slice is sent once the W-th before it has arrived. Concurrent slices share the links and would all
/// complete at the end.
class SliceWindow {
  public:
    explicit SliceWindow(const Spec& spec) : width_(static_cast<std::size_t>(spec.integer("window", 1))) {}
    std::vector<plan::StepId> before_next() const {
        return came_.size() < width_ ? std::vector<plan::StepId>() : came_[came_.size() - width_];
    }
    /// The steps after which a slice has arrived.
    void add(std::vector<plan::StepId> steps) { came_.push_back(std::move(steps)); }

  private:
    std::size_t width_;
    std::vector<std::vector<plan::StepId>> came_;
};

/// Key complete=exchange|tree. Throws base::Error on another value.
bool completes_by_trees(const Spec& spec);
/// The checks of the rows with keys inside, segment and window, and how many tags they need. Keys must have been
/// checked for unknown ones.
std::optional<std::string> refuse_node_pieces(const Job& job, const Request& request, const Spec& spec);
std::int64_t node_pieces_tags(const Job& job, const Request& request, const Spec& spec);

/// One rank's steps for one slice of a reduction in pieces.
class PieceExchange {
  public:
    struct Where {
        const NodePieces& pieces;
        std::int32_t node, index;  ///< this rank's node and index in it
        plan::ProgramBuilder& builder;
        ScratchBuffer& scratch;
        plan::Buffer work;  ///< target of partial results
        bool trees;         ///< sums in a node by a tree: fewer messages than an exchange, longer critical path
        bool ordered;
        plan::Slice slice{};
        std::int32_t first_tag = 0;
    };
    /// Tags of one slice.
    static constexpr std::int32_t tags = 128;
    /// Layers of scratch that this uses.
    static std::size_t layers(const NodePieces& pieces, std::int32_t node);

    explicit PieceExchange(const Where& where);

    /// The node's sum of the own part, from Buffer::send. `ready`: nothing is sent before these steps. Returns the
    /// steps after which it is complete.
    std::vector<plan::StepId> reduce_inside(const std::vector<plan::StepId>& ready);
    /// The own node's piece, complete, on all ranks that hold parts.
    void reduce_between();
    /// Completes the own node's piece only on the rank that serves the root's node.
    void reduce_between_to(std::int32_t root_node);

    /// Sends the own piece to all other nodes, and receives theirs of the own part into `work`. Returns the steps after
    /// which the part is complete in `work`.
    std::vector<plan::StepId> gather_between();
    /// Allgather of the parts in the node. Returns the steps after which the vector is complete in `work`.
    std::vector<plan::StepId> gather_inside(const std::vector<plan::StepId>& ready);

    /// Sends pieces to the ranks of the root's node that serve the piece's nodes; there receives those of the own part
    /// into `work` and returns as gather_between.
    std::vector<plan::StepId> gather_between_to(std::int32_t root_node);
    /// In the root's node: gathers all parts at the root, into `work`.
    void gather_inside_to(std::int32_t root_index, const std::vector<plan::StepId>& ready);

  private:
    bool has_part() const { return part_ >= 0; }
    plan::Interval own_pieces() const { return where_.pieces.pieces(where_.node, part_); }
    ReduceContext inside_context(const std::vector<plan::StepId>& ready) const;
    /// Sum of the own node's piece over the nodes of the own part.
    HeldBlocks add_up();
    /// Combines the sums of all parts, by an all-to-all exchange, or up a tree to the holder of part `root` and, with
    /// `for_all`, down again.
    void complete_by_exchange(const HeldBlocks& sum);
    void complete_by_tree(const HeldBlocks& sum, std::int32_t root, bool for_all);
    plan::StepId recv_piece(std::int32_t other, plan::StepId sent);
    /// Copies the own node's piece, where it belongs to the own part.
    void copy_own_piece(std::vector<plan::StepId>& complete);
    void need(const plan::Blocks& blocks) {
        if (plan::is_scratch(where_.work)) where_.scratch.need(where_.work, blocks);
    }

    Where where_;
    std::int32_t size_, parts_;
    std::int32_t part_;  ///< the part that this rank holds, or -1
    ReduceContext context_;
    std::optional<DirectExchange> direct_;
    std::optional<Halving> halving_;
    std::optional<MultiwayHalving> multiway_;
    HeldBlocks sum_{};                                         ///< the node's, of the own part
    HeldBlocks piece_{};                                       ///< the own node's, complete
    std::vector<std::pair<std::int32_t, plan::StepId>> sent_;  ///< piece, and the step that sent the node's sum of it
};

/// A rank's program of a reduction in pieces, slice by slice through the window. `work`, `trees`: as in
/// PieceExchange::Where. `finish`: adds the remaining steps of each slice after reduce_inside.
template <class Finish>
Program reduce_in_pieces(const NodePieces& pieces, const Job& job, Rank rank, const Request& request, const Spec& spec,
                         plan::Buffer work, bool trees, const Finish& finish) {
    plan::ProgramBuilder builder(rank, plan::BlockOrder::topology, pieces.count());
    if (job.size() == 1) {
        builder.copy(plan::Buffer::send, plan::Buffer::recv, {0, 1}, {});
        return builder.finish();
    }
    const Position self = job.position_of(rank);
    const std::int32_t node = pieces.node_of(self);
    ScratchBuffer scratch;
    PieceExchange::Where where{.pieces = pieces,
                               .node = node,
                               .index = self.value - pieces.first(node),
                               .builder = builder,
                               .scratch = scratch,
                               .work = work,
                               .trees = trees,
                               .ordered = request.ordered};
    SliceWindow window(spec);
    where.slice.of = slices_of(request, spec);
    for (where.slice.index = 0; where.slice.index < where.slice.of; ++where.slice.index) {
        where.first_tag = where.slice.index * PieceExchange::tags;
        PieceExchange exchange(where);
        window.add(exchange.reduce_inside(window.before_next()));
        finish(exchange);
    }
    scratch.reserve(builder);
    return builder.finish();
}

}  // namespace palmette::collectives
