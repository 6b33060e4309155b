// gather and scatter, linear: a star: every rank sends its block to the root directly, or receives it from there.
//
//   p = 8, root 0:   1 2 3 4 5 6 7
//                     \ \ \|/ / /      one message each, all at once
//                          0
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted.hpp"

namespace palmette::collectives {
namespace {

Program make_gather(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return gather_along(job, rank, flat_tree(job, rank, request, spec, TreeShape{}));
}

Program make_scatter(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return scatter_along(job, rank, flat_tree(job, rank, request, spec, TreeShape{}));
}

}  // namespace

const Algorithm gather_linear{
    .collective = Collective::gather,
    .name = "linear",
    .sentence = "Every rank sends its block to the root directly; nothing is stored and forwarded.",
    .source = "folklore; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4",
    .keys = "order=topology|rank",
    .refuse = refuse_linear,
    .make = make_gather,
    .candidates = {"linear", "linear:order=rank"},
    .samples = {"linear", "linear:order=rank"},
};

const Algorithm scatter_linear{
    .collective = Collective::scatter,
    .name = "linear",
    .sentence = "Every rank gets its block from the root directly; nothing is stored and forwarded.",
    .source = "folklore; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4",
    .keys = "order=topology|rank",
    .refuse = refuse_linear,
    .make = make_scatter,
    .candidates = {"linear", "linear:order=rank"},
    .samples = {"linear", "linear:order=rank"},
};

}  // namespace palmette::collectives
