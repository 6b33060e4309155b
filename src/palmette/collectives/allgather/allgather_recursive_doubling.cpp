// allgather, recursive_doubling: lg p steps with partners 1, 2, 4, ... away.
//
//   0─1 2─3 4─5 6─7    then 0─2 1─3 4─6 5─7    then 0─4 1─5 2─6 3─7
#include "palmette/collectives/allgather/allgather_flat.hpp"
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_recursive_doubling(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"order"});
    spec.word("order", {"topology", "rank"});
    return Pattern{Pattern::Kind::recursive_doubling}.refuse(job.size());
}

Program make_recursive_doubling(const Job& job, Rank rank, const Request&, const Spec& spec) {
    return allgather_among_ranks(job, rank, spec, Pattern{Pattern::Kind::recursive_doubling}, false);
}

std::optional<double> formula_recursive_doubling(const FormulaInput& input) {
    return doubling_s(input.tiers, input.bytes, 1);
}

}  // namespace

const Algorithm allgather_recursive_doubling{
    .collective = Collective::allgather,
    .name = "recursive_doubling",
    .sentence = "lg p exchanges of doubling size with partners 1, 2, 4, ... positions away.",
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .keys = "order=topology|rank",
    .preconditions = "the number of ranks is a power of two",
    .relays = true,
    .refuse = refuse_recursive_doubling,
    .make = make_recursive_doubling,
    .formula = formula_recursive_doubling,
    .candidates = "recursive_doubling",
    .samples = "recursive_doubling recursive_doubling:order=rank",
};

}  // namespace palmette::collectives
