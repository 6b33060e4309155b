// allgather, pat: ceil(lg p) steps for any number of ranks, over distances ..., 4, 2, 1: the farthest carries one
// block.
//
//   p = 6:   from 4 right of me one block, from 2 right one, from 1 right three (the own one, and those 2 and 4
//   further)
#include "palmette/collectives/allgather/allgather_flat.hpp"
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"order"});
    spec.word("order", {"topology", "rank"});
    return std::nullopt;
}

Program make(const Job& job, Rank rank, const Request&, const Spec& spec) {
    return allgather_among_ranks(job, rank, spec, Pattern{Pattern::Kind::pat}, false);
}

std::optional<double> formula_pat(const FormulaInput& input) { return skips_s(input.tiers, "pat", input.bytes, 1, 1); }

}  // namespace

const Algorithm allgather_pat{
    .collective = Collective::allgather,
    .name = "pat",
    .sentence = "ceil(log_2 p) steps, the farthest first with one block, the nearest last with half of all blocks.",
    .source = "Jeaugey, arXiv 2506.20252, 2025 (parallel aggregated trees), in its logarithmic form",
    .keys = "order=topology|rank",
    .relays = true,
    .refuse = refuse,
    .make = make,
    .formula = formula_pat,
    .candidates = "pat",
    .samples = "pat pat:order=rank",
    .kin = "bruck",
};

}  // namespace palmette::collectives
