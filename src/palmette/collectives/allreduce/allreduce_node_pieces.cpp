// allreduce, node_pieces: direct reduce-scatter and allgather between nodes with one piece of the vector per node. See
// node_pieces.hpp.
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/node_pieces.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;

std::optional<std::string> refuse_pieces(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"inside", "complete", "segment", "window"});
    completes_by_trees(spec);
    return refuse_node_pieces(job, request, spec);
}

Program make_pieces(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const NodePieces pieces(job, spec, request.ordered, true);
    return reduce_in_pieces(pieces, job, rank, request, spec, Buffer::recv, completes_by_trees(spec),
                            [](PieceExchange& exchange) {
                                exchange.reduce_between();
                                exchange.gather_inside(exchange.gather_between());
                            });
}

}  // namespace

const Algorithm allreduce_node_pieces{
    .collective = Collective::allreduce,
    .name = "node_pieces",
    .sentence =
        "A piece of the vector per node: all send it directly to its node, which sends the sum to all; the ranks of a "
        "node share these messages.",
    .source =
        "Huang, Ouyang, Zhai et al., \"Accelerating MPI collectives with process-in-process-based multi-object "
        "techniques\", arXiv 2305.10612 (2023): all ranks of a node send; pieces, messages and any sizes of nodes here",
    .keys =
        "inside=direct|halving|halving.K (direct), complete=exchange|tree (exchange), segment=SIZE of the vector, "
        "window=W slices at once (1)",
    .preconditions = "an operation that isn't commutative needs ranks in topology order",
    .relays = true,
    .refuse = refuse_pieces,
    .make = make_pieces,
    .tags = node_pieces_tags,
    .formula = node_pieces_formula,
    .candidates =
        "node_pieces node_pieces:inside=halving.4 node_pieces:inside=halving,complete=tree,segment=8K,window=3",
    .samples =
        "node_pieces node_pieces:segment=20,window=2 node_pieces:inside=halving.4 "
        "node_pieces:inside=halving.3,complete=tree,segment=24 node_pieces:inside=halving,complete=tree,segment=40",
};

}  // namespace palmette::collectives
