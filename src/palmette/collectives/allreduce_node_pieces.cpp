// allreduce, node_pieces: the vector in one piece a node, summed up at its node, and handed to all. See node_pieces.hpp.
#include "palmette/collectives/allreduce_rows.hpp"
#include "palmette/collectives/node_pieces.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;

std::optional<std::string> refuse(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"inside", "complete", "segment", "window"});
    completes_by_trees(spec);
    return refuse_node_pieces(job, request, spec);
}

Program make(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const NodePieces pieces(job, spec, request.ordered, true);
    const Position self = job.position_of(rank);
    const std::int32_t node = pieces.node_of(self);
    plan::ProgramBuilder builder(rank, plan::BlockOrder::topology, pieces.count());
    ScratchRoom room;
    if (job.size() == 1) {
        builder.copy(Buffer::send, Buffer::recv, {0, 1}, {});
        return builder.finish();
    }
    const PieceExchange::Where where{.pieces = pieces,
                                     .node = node,
                                     .index = self.value - pieces.first(node),
                                     .builder = builder,
                                     .room = room,
                                     .work = Buffer::recv,
                                     .trees = completes_by_trees(spec),
                                     .ordered = request.ordered};
    for_each_slice(where, request, spec, [](PieceExchange& exchange) {
        exchange.reduce_between();
        exchange.gather_inside(exchange.gather_between());
    });
    room.reserve(builder);
    return builder.finish();
}

}  // namespace

const Algorithm allreduce_node_pieces{
    Collective::allreduce,
    "node_pieces",
    "A piece of the vector for each node: all send it straight to its node, which sends the sum to all; the ranks of a "
    "node share these messages.",
    "Huang, Ouyang, Zhai et al., \"Accelerating MPI collectives with process-in-process-based multi-object "
    "techniques\", "
    "arXiv 2305.10612 (2023): all ranks of a node send; pieces, messages and any sizes of nodes here",
    "inside=direct|halving|halving.K (direct), complete=exchange|tree (exchange), segment=SIZE of the vector, window=W "
    "slices at "
    "once (1)",
    "an operation that isn't commutative needs ranks in topology order",
    true,
    refuse,
    make,
    node_pieces_tags,
};

}  // namespace palmette::collectives
