// gather and scatter, k_nomial: a k-nomial tree over all ranks (binomial for radix 2).
//
//   p = 8, radix 2, root 0:         0
//                                4  2  1      a parent handles its whole subtree's blocks in one message
//                               6 5 3
//                               7
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted.hpp"
#include "palmette/collectives/trees/tree_formulas.hpp"

namespace palmette::collectives {
namespace {

Program make_gather_k_nomial(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return gather_along(job, rank, flat_tree(job, rank, request, spec, TreeShape{spec.integer("radix", 2, 2)}));
}

Program make_scatter_k_nomial(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return scatter_along(job, rank, flat_tree(job, rank, request, spec, TreeShape{spec.integer("radix", 2, 2)}));
}

// gather and scatter are each other reversed in time.
constexpr std::string_view candidates_k_nomial =
    "k_nomial k_nomial:radix=8 k_nomial:radix=4,order=rank k_nomial:radix=8,order=rank";
constexpr std::string_view samples_k_nomial = "k_nomial k_nomial:radix=3 k_nomial:radix=4,order=rank,segment=24";

std::optional<double> formula_k_nomial(const FormulaInput& input) {
    return blocks_along_s(input, flat_phases(input, TreeShape{input.spec.integer("radix", 2, 2)}));
}

}  // namespace

const Algorithm gather_k_nomial{
    .collective = Collective::gather,
    .name = "k_nomial",
    .sentence =
        "A k-nomial tree (binomial by default) in topology or rank order: log_k p stages, blocks stored and forwarded.",
    .source =
        "Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11), 1997; binomial form as in Thakur et al., IJHPCA 2005",
    .keys = "radix=K (2), order=topology|rank, segment=SIZE",
    .relays = true,
    .refuse = refuse_k_nomial,
    .make = make_gather_k_nomial,
    .formula = formula_k_nomial,
    .candidates = candidates_k_nomial,
    .samples = samples_k_nomial,
};

const Algorithm scatter_k_nomial{
    .collective = Collective::scatter,
    .name = "k_nomial",
    .sentence =
        "A k-nomial tree (binomial by default) in topology or rank order: log_k p stages, blocks stored and forwarded.",
    .source =
        "Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11), 1997; binomial form as in Thakur et al., IJHPCA 2005",
    .keys = "radix=K (2), order=topology|rank, segment=SIZE",
    .relays = true,
    .refuse = refuse_k_nomial,
    .make = make_scatter_k_nomial,
    .formula = formula_k_nomial,
    .candidates = candidates_k_nomial,
    .samples = samples_k_nomial,
};

}  // namespace palmette::collectives
