// gather and scatter, linear: a star: every rank sends its block to the root directly, or receives it from there.
//
//   p = 8, root 0:   1 2 3 4 5 6 7
//                     \ \ \|/ / /      one message each, all at once
//                          0
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted.hpp"
#include "palmette/collectives/trees/tree_formulas.hpp"

namespace palmette::collectives {
namespace {

Program make_gather_linear(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return gather_along(job, rank, flat_tree(job, rank, request, spec, TreeShape{}));
}

Program make_scatter_linear(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return scatter_along(job, rank, flat_tree(job, rank, request, spec, TreeShape{}));
}

// gather and scatter are each other reversed in time.
constexpr std::string_view candidates_linear = "linear linear:order=rank";
constexpr std::string_view samples_linear = "linear linear:order=rank";

std::optional<double> formula_linear(const FormulaInput& input) {
    return blocks_along_s(input, flat_phases(input, TreeShape{}));
}

}  // namespace

const Algorithm gather_linear{
    .collective = Collective::gather,
    .name = "linear",
    .sentence = "Every rank sends its block to the root directly; nothing is stored and forwarded.",
    .source = "folklore; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4",
    .keys = "order=topology|rank",
    .refuse = refuse_linear,
    .make = make_gather_linear,
    .formula = formula_linear,
    .candidates = candidates_linear,
    .samples = samples_linear,
};

const Algorithm scatter_linear{
    .collective = Collective::scatter,
    .name = "linear",
    .sentence = "Every rank gets its block from the root directly; nothing is stored and forwarded.",
    .source = "folklore; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4",
    .keys = "order=topology|rank",
    .refuse = refuse_linear,
    .make = make_scatter_linear,
    .formula = formula_linear,
    .candidates = candidates_linear,
    .samples = samples_linear,
};

}  // namespace palmette::collectives
