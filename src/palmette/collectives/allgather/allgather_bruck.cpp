// allgather, bruck: ceil(log_k p) steps for any number of ranks.
//
//   p = 8, k = 2: from 1 right of me one block, from 2 right two, from 4 right four; blocks land at their place,
//   nothing is rotated
#include "palmette/collectives/allgather/allgather_flat.hpp"
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_bruck(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"radix", "order"});
    spec.word("order", {"topology", "rank"});
    spec.integer("radix", 2, 2);
    return std::nullopt;
}

Program make_bruck(const Job& job, Rank rank, const Request&, const Spec& spec) {
    return allgather_among_ranks(job, rank, spec, Pattern{Pattern::Kind::bruck, spec.integer("radix", 2, 2)}, false);
}

std::optional<double> formula_bruck(const FormulaInput& input) {
    return bruck_s(input.tiers, input.spec.integer("radix", 2, 2), input.bytes, 1);
}

}  // namespace

const Algorithm allgather_bruck{
    .collective = Collective::allgather,
    .name = "bruck",
    .sentence =
        "ceil(log_k p) steps for any number of ranks; blocks land at their place, so there is no final rotation.",
    .source = "Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11), 1997",
    .keys = "radix=K (2), order=topology|rank",
    .relays = true,
    .refuse = refuse_bruck,
    .make = make_bruck,
    .formula = formula_bruck,
    .candidates = "bruck bruck:radix=4",
    .samples = "bruck bruck:radix=3 bruck:radix=8,order=rank",
};

}  // namespace palmette::collectives
