// reduce, node_pieces: direct reduce-scatter between nodes with one piece of the vector per node, then a gather at the
// root. See node_pieces.hpp.
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/node_pieces.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;
using plan::StepId;

std::optional<std::string> refuse_pieces(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"inside", "segment", "window"});
    return refuse_node_pieces(job, request, spec);
}

Program make_pieces(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    // Not dealt: the root receives one part after the other.
    const NodePieces pieces(job, spec, request.ordered, false);
    const std::int32_t node = pieces.node_of(job.position_of(rank));
    const Position root = job.position_of(request.root);
    const std::int32_t root_node = pieces.node_of(root);
    const Buffer work = rank == request.root ? Buffer::recv : plan::scratch_layer(PieceExchange::layers(pieces, node));
    return reduce_in_pieces(pieces, job, rank, request, spec, work, true, [&](PieceExchange& exchange) {
        exchange.reduce_between_to(root_node);
        const std::vector<StepId> there = exchange.gather_between_to(root_node);
        if (node == root_node) exchange.gather_inside_to(root.value - pieces.first(node), there);
    });
}

}  // namespace

const Algorithm reduce_node_pieces{
    .collective = Collective::reduce,
    .name = "node_pieces",
    .sentence =
        "A piece of the vector per node: all send it directly to its node, which sends the sum to the root's; the "
        "ranks of a node share these messages.",
    .source = "as allreduce's node_pieces, with a gather of the pieces at the end",
    .keys = "inside=direct|halving|halving.K (direct), segment=SIZE of the vector, window=W slices at once (1)",
    .preconditions = "an operation that isn't commutative needs ranks in topology order",
    .relays = true,
    .refuse = refuse_pieces,
    .make = make_pieces,
    .tags = node_pieces_tags,
    .formula = node_pieces_formula,
    .candidates = "node_pieces node_pieces:inside=halving,segment=8K",
    .samples =
        "node_pieces node_pieces:inside=halving,segment=40 node_pieces:segment=24,window=2 "
        "node_pieces:inside=halving.4 node_pieces:inside=halving.3,segment=24",
};

}  // namespace palmette::collectives
