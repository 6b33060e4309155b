// gather and scatter, k_nomial: a k-nomial tree over all ranks (binomial for radix 2).
//
//   p = 8, radix 2, root 0:         0
//                                4  2  1      a parent handles its whole subtree's blocks in one message
//                               6 5 3
//                               7
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted.hpp"

namespace palmette::collectives {
namespace {

Program make_gather(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return gather_along(job, rank, flat_tree(job, rank, request, spec, TreeShape{spec.integer("radix", 2, 2)}));
}

Program make_scatter(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return scatter_along(job, rank, flat_tree(job, rank, request, spec, TreeShape{spec.integer("radix", 2, 2)}));
}

}  // namespace

const Algorithm gather_k_nomial{
    Collective::gather,
    "k_nomial",
    "A k-nomial tree (binomial by default) in topology or rank order: log_k p stages, blocks stored and forwarded.",
    "Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11), 1997; binomial form as in Thakur et al., IJHPCA 2005",
    "radix=K (2), order=topology|rank, segment=SIZE",
    "none",
    true,
    refuse_k_nomial,
    make_gather,
};

const Algorithm scatter_k_nomial{
    Collective::scatter,
    "k_nomial",
    "A k-nomial tree (binomial by default) in topology or rank order: log_k p stages, blocks stored and forwarded.",
    "Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11), 1997; binomial form as in Thakur et al., IJHPCA 2005",
    "radix=K (2), order=topology|rank, segment=SIZE",
    "none",
    true,
    refuse_k_nomial,
    make_scatter,
};

}  // namespace palmette::collectives
