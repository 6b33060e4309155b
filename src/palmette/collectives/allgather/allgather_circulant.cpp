// allgather, circulant: ceil(lg p) steps for any number of ranks, with distances p/2, p/4, ... rounded up.
//
//   p = 6, skips 1 2 3: from 1 right of me one block, from 2 right one, from 3 right three; Bruck's algorithm has 1, 2,
//   4 and blocks 1, 2, 2
//
// The pipelined form in n pieces (n - 1 + ceil(lg p) rounds, each of whose messages carries another piece of every
// rank's block) pays only where one rank contributes nearly all data; a broadcast does the same there, so it isn't
// implemented.
#include "palmette/collectives/allgather/allgather_flat.hpp"
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_circulant(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"order"});
    spec.word("order", {"topology", "rank"});
    return std::nullopt;
}

Program make_circulant(const Job& job, Rank rank, const Request&, const Spec& spec) {
    return allgather_among_ranks(job, rank, spec, Pattern{Pattern::Kind::circulant}, false);
}

std::optional<double> formula_circulant(const FormulaInput& input) {
    return skips_s(input.tiers, "circulant", input.bytes, 1, 1);
}

}  // namespace

const Algorithm allgather_circulant{
    .collective = Collective::allgather,
    .name = "circulant",
    .sentence =
        "ceil(log_2 p) steps on a circulant graph for any number of ranks, with distances as short as they can be.",
    .source = "Träff, \"Optimal, non-pipelined reduce-scatter and allreduce algorithms\", arXiv 2410.14234, 2024",
    .keys = "order=topology|rank",
    .relays = true,
    .refuse = refuse_circulant,
    .make = make_circulant,
    .formula = formula_circulant,
    .samples = "circulant circulant:order=rank",
    .kin = "bruck",
};

}  // namespace palmette::collectives
