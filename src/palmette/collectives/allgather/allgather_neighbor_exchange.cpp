// allgather, neighbor_exchange: p/2 steps of two blocks, alternating between the two neighbours.
//
//   0─1 2─3 4─5 6─7    then 7─0 1─2 3─4 5─6    then 0─1 ... again
#include "palmette/collectives/allgather/allgather_flat.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_neighbor_exchange(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"order"});
    spec.word("order", {"topology", "rank"});
    return Pattern{Pattern::Kind::neighbor_exchange}.refuse(job.size());
}

Program make_neighbor_exchange(const Job& job, Rank rank, const Request&, const Spec& spec) {
    return allgather_among_ranks(job, rank, spec, Pattern{Pattern::Kind::neighbor_exchange}, false);
}

}  // namespace

const Algorithm allgather_neighbor_exchange{
    .collective = Collective::allgather,
    .name = "neighbor_exchange",
    .sentence = "p/2 steps of two blocks each, alternating between the neighbours: half of the ring's steps.",
    .source = "Chen, Zhang, Zhang, Yuan, HPC Asia 2005",
    .keys = "order=topology|rank",
    .preconditions = "the number of ranks is even, or one",
    .relays = true,
    .refuse = refuse_neighbor_exchange,
    .make = make_neighbor_exchange,
    .samples = "neighbor_exchange neighbor_exchange:order=rank",
};

}  // namespace palmette::collectives
