// bcast, node_pieces: scatter of one piece of the vector per node, then direct allgather between nodes. See
// node_pieces.hpp.
//
//   four nodes of two ranks, root 0, pieces A B C D, the first rank of a node handles A and B, the second C and D:
//
//       0 → 1: A CD                                      inside: A, which is the own node's, to all, and each its part
//       0 → 2: A B     1 → 5: A C     1 → 7: A D         between
//       2 → 3: B       5 → 4: C       7 → 6: D           inside: its piece to all of a node
//       4 → 2: C   7 → 3: D   2 → 4: B   7 → 5: D  ...   between
//       2 ⇄ 3: AB, CD                                    inside
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/node_pieces.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/tree_shape.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::Slice;
using plan::StepId;

// A gather inside uses several tags.
enum : std::int32_t { tag_part, tag_from_root, tag_spread, tag_between, tag_inside, tags_a_slice = 80 };

/// Key relays=all|1: whether the root itself sends all pieces.
bool sends_alone(const Spec& spec) { return spec.word("relays", {"all", "1"}) == "1"; }

/// One rank's part.
class Maker {
  public:
    Maker(const Job& job, Rank rank, const Request& request, const Spec& spec)
        : pieces_(job, spec, false, true),
          root_alone_(sends_alone(spec)),
          root_rank_(request.root),
          slices_(slices_of(request, spec)),
          builder_(rank, plan::BlockOrder::topology, pieces_.count()),
          root_node_(pieces_.node_of(job.position_of(request.root))),
          root_index_(job.position_of(request.root).value - pieces_.first(root_node_)),
          node_(pieces_.node_of(job.position_of(rank))),
          index_(job.position_of(rank).value - pieces_.first(node_)),
          parts_(pieces_.parts(node_)),
          root_(rank == request.root),
          here_(root_ ? Buffer::send : Buffer::recv),
          part_(pieces_.part_at(node_, index_)) {}

    Program make() {
        for (std::uint16_t i = 0; i < slices_; ++i) {
            slice_ = {i, slices_};
            if (node_ == root_node_)
                gather_from_all(hand_out());
            else if (const std::vector<StepId> there = take(); pieces_.halves(node_) || pieces_.multiway(node_))
                gather_in_stages(there);
            else
                gather_from_all(there);
        }
        return builder_.finish();
    }

  private:
    bool has_part(std::int32_t index) const { return pieces_.part_at(node_, index) >= 0; }
    Blocks blocks(std::int32_t part) const {
        const Interval of = pieces_.pieces(node_, part);
        return {of.first, of.count};
    }
    Blocks with_roots(Blocks blocks) const {
        if (!blocks.contains(root_node_)) blocks.insert({root_node_, 1});
        return blocks;
    }
    std::int32_t tag(std::int32_t phase) const { return slice_.index * tags_a_slice + phase; }
    Rank of_node(std::int32_t index) const { return pieces_.rank_of(node_, index); }

    /// The rank of the root's node that sends another node its piece.
    Rank source_of(std::int32_t node) const { return root_alone_ ? root_rank_ : pieces_.toward(root_node_, node); }
    void send_from_root(Interval nodes, const std::vector<StepId>& there) {
        builder_.stage("between nodes");
        for (auto node = static_cast<std::int32_t>(nodes.first); node < nodes.end(); ++node)
            if (node != root_node_)
                builder_.send(pieces_.toward(node, root_node_), tag(tag_from_root), here_, with_roots({node, 1}), there,
                              slice_);
    }

    /// In the root's node: scatters parts and pieces. Returns the steps after which the own part is complete.
    std::vector<StepId> hand_out() {
        std::vector<StepId> there;
        if (root_ && root_alone_) send_from_root({0, pieces_.count()}, there);
        builder_.stage("distribute parts");
        for (std::int32_t i = 1; i <= parts_ && root_; ++i) {
            const std::int32_t part = (std::max(part_, 0) + i) % parts_;
            if (const std::int32_t to = pieces_.holder(node_, part); to != index_)
                builder_.send(of_node(to), tag(tag_part), here_, with_roots(blocks(part)), {}, slice_);
        }
        if (part_ < 0) return there;
        if (!root_)
            there = {builder_.recv(of_node(root_index_), tag(tag_part), here_, with_roots(blocks(part_)), {}, slice_)};
        if (!root_alone_) send_from_root(pieces_.pieces(node_, part_), there);
        return there;
    }

    /// In the other nodes: receives and exchanges pieces. Returns the steps after which the own part is complete.
    std::vector<StepId> take() {
        if (part_ < 0) return {};
        std::vector<StepId> there;
        const Blocks piece(node_, 1);
        const std::int32_t first = pieces_.part_of(node_, root_node_);
        builder_.stage("between nodes");
        if (part_ == first)
            there.push_back(builder_.recv(source_of(node_), tag(tag_from_root), here_, with_roots(piece), {}, slice_));
        builder_.stage("spread inside");
        const TreeShape tree{4};
        const std::int32_t self = (part_ - first + parts_) % parts_;
        const auto holder = [&](std::int32_t member) {
            return of_node(pieces_.holder(node_, (member + first) % parts_));
        };
        if (const auto parent = tree.parent(self, parts_))
            there.push_back(builder_.recv(holder(*parent), tag(tag_spread), here_, piece, {}, slice_));
        const std::vector<StepId> here = there;
        for (const SubTree& child : tree.children(self, parts_))
            builder_.send(holder(child.first), tag(tag_spread), here_, piece, here, slice_);
        builder_.stage("between nodes");
        const Interval own = pieces_.pieces(node_, part_);
        for (std::int64_t i = 0; i < own.count; ++i) {
            const auto other = static_cast<std::int32_t>(own.first + (node_ + i) % own.count);
            if (other == node_ || other == root_node_) continue;
            const Rank peer = pieces_.toward(other, node_);
            builder_.send(peer, tag(tag_between), here_, piece, here, slice_);
            there.push_back(builder_.recv(peer, tag(tag_between), here_, Blocks(other, 1), {}, slice_));
        }
        return there;
    }

    /// Allgather of the parts in a node without the root, by doubling or multiplying.
    void gather_in_stages(const std::vector<StepId>& there) {
        builder_.stage("gather inside");
        const ReduceContext context{
            .builder = builder_,
            .scratch = scratch_,
            .n = pieces_.size_of(node_),
            .me = index_,
            .rank_of = [this](std::int32_t index) { return of_node(index); },
            // The own node's piece is sent only to ranks without a part, with all the rest: the others have it.
            .blocks_of =
                [this](std::int32_t first, std::int32_t count) {
                    const Interval of = pieces_.pieces(node_, first, count);
                    const Blocks all(of.first, of.count);
                    return count == parts_ ? all : all.without(node_);
                },
            .input = here_,
            .work = here_,
            .result = here_,
            .ready = there,
            .first_tag = tag(tag_inside),
            .slice = slice_,
        };
        if (const std::int32_t radix = pieces_.multiway(node_))
            MultiwayHalving(context, radix).collect_parts(there);
        else
            Halving(context).collect_parts(there);
    }

    /// Allgather of the parts to all ranks of the node but the root, each directly from its holder.
    void gather_from_all(const std::vector<StepId>& there) {
        builder_.stage("gather inside");
        const std::int32_t size = pieces_.size_of(node_);
        // All holders of parts already have the own node's piece.
        const auto lacking = [&](std::int32_t part, std::int32_t index) {
            return has_part(index) ? blocks(part).without(node_) : blocks(part);
        };
        const bool receives = node_ != root_node_ || index_ != root_index_;
        for (std::int32_t part = 0; part < parts_; ++part)
            if (const std::int32_t from = pieces_.holder(node_, part); receives && from != index_)
                if (const Blocks missing = lacking(part, index_); !missing.empty())
                    builder_.recv(of_node(from), tag(tag_inside), here_, missing, {}, slice_);
        for (std::int32_t i = 1; i < size && part_ >= 0; ++i) {
            const std::int32_t to = (index_ + i) % size;
            if (node_ == root_node_ && to == root_index_) continue;
            if (const Blocks missing = lacking(part_, to); !missing.empty())
                builder_.send(of_node(to), tag(tag_inside), here_, missing, there, slice_);
        }
    }

    NodePieces pieces_;
    ScratchBuffer scratch_;  ///< stays empty
    bool root_alone_;
    Rank root_rank_;
    std::uint16_t slices_;
    plan::ProgramBuilder builder_;
    std::int32_t root_node_, root_index_;
    std::int32_t node_, index_;
    std::int32_t parts_;
    bool root_;
    Buffer here_;
    std::int32_t part_;  ///< the part that this rank holds, or -1
    Slice slice_;
};

std::optional<std::string> refuse_pieces(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"inside", "relays", "segment"});
    spec.size("segment", 0);
    sends_alone(spec);
    NodePieces(job, spec, false, false);  // checks its key
    return std::nullopt;
}

std::int64_t tags_pieces(const Job&, const Request& request, const Spec& spec) {
    return std::int64_t{tags_a_slice} * slices_of(request, spec);
}

Program make_pieces(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return Maker(job, rank, request, spec).make();
}

}  // namespace

const Algorithm bcast_node_pieces{
    .collective = Collective::bcast,
    .name = "node_pieces",
    .sentence =
        "A piece of the vector to each node, which sends it directly to all others; the ranks of a node share these "
        "messages.",
    .source = "as allreduce's node_pieces, with a scatter of the pieces at the start",
    .keys =
        "inside=direct|halving|halving.K (direct), relays=all|1 of the root's node (all), segment=SIZE of the vector",
    .refuse = refuse_pieces,
    .make = make_pieces,
    .tags = tags_pieces,
    .formula = node_pieces_formula,
    .candidates = "node_pieces node_pieces:inside=halving,relays=1,segment=8K node_pieces:relays=1,segment=32K",
    .samples =
        "node_pieces node_pieces:segment=24 node_pieces:inside=halving.4 node_pieces:inside=halving.3,segment=40 "
        "node_pieces:inside=halving,segment=40 node_pieces:inside=halving,relays=1",
};

}  // namespace palmette::collectives
