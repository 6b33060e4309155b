// reduce along a tree: the trees of bcast, reversed in time. Each rank combines its own vector with its children's,
// slice by slice.
//
//   p = 8, root 0, k_nomial:        0              root 5, where the order of ranks must be kept: a tree for each side
//                                4  2  1
//                               6 5 3                     1  3  4   5   6  7
//                               7                         0  2              every subtree is an interval
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted_vector.hpp"

namespace palmette::collectives {
namespace {

Program make_flat(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return reduce_along(job, rank, request, flat_vector_tree(job, rank, request, spec));
}
Program make_by_topology(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return reduce_along(job, rank, request, topology_vector_tree(job, rank, request, spec));
}
Program make_earliest(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return reduce_along(job, rank, request, earliest_vector_tree(job, rank, request, spec));
}
Program make_bine(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return reduce_along(job, rank, request, bine_vector_tree(job, rank, request, spec));
}

constexpr std::string_view order_needs = "an operation that doesn't commute needs order=rank (its default then)";

}  // namespace

const Algorithm reduce_linear{
    Collective::reduce,
    "linear",
    "Every rank sends its vector to the root, which combines them all: no dependent messages.",
    "folklore; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    "order=topology|rank, segment=SIZE",
    order_needs,
    false,
    refuse_flat_vector,
    make_flat,
    one_tag_a_slice,
};

const Algorithm reduce_k_nomial{
    Collective::reduce,
    "k_nomial",
    "A k-nomial tree (binomial by default) in topology or rank order: ceil(log_k p) hops.",
    "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005 (binomial); two trees at the root keep an order here",
    "radix=K (2), order=topology|rank, segment=SIZE",
    order_needs,
    false,
    refuse_flat_vector,
    make_flat,
    one_tag_a_slice,
};

const Algorithm reduce_k_ary{
    Collective::reduce,
    "k_ary",
    "A tree in which every rank has at most k children, for pipelining: a rank receives k vectors at most.",
    "Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra, Cluster Computing 10(2), 2007",
    "radix=K (2), order=topology|rank, segment=SIZE (a 16th of the vector, 4 to 64 KB)",
    order_needs,
    false,
    refuse_flat_vector,
    make_flat,
    one_tag_a_slice,
};

const Algorithm reduce_chain{
    Collective::reduce,
    "chain",
    "A pipelined chain through all ranks that enters no group of any level twice: every link carries the vector once.",
    "Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007; the order round the root is palmette's",
    "order=topology|rank, segment=SIZE (a 16th of the vector, 4 to 64 KB)",
    order_needs,
    false,
    refuse_flat_vector,
    make_flat,
    one_tag_a_slice,
};

const Algorithm reduce_by_topology{
    Collective::reduce,
    "by_topology",
    "Leaders per node, chassis, leaf and tier combine their subtrees; inside of the node directly from shared memory.",
    "Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010, for reduce and with any number of levels here",
    "LEVEL=linear|binomial|k_nomial.K|postal.K|k_ary.K|chain, inside of the node also shared, for each level with "
    "leaders (by size: stars or chains), inside=... for all levels inside of the node, top=..., segment=SIZE, "
    "relays=R|all (1), "
    "single=SIZE (never), with shared: exposures from there on are read by single copy",
    "shared only for the level of nodes and those inside; an operation that doesn't commute needs ranks in topology "
    "order",
    false,
    refuse_topology_vector,
    make_by_topology,
    one_tag_a_slice,
    NodeMemory::where_asked,
};

const Algorithm reduce_bine{
    Collective::reduce,
    "bine",
    "A binomial tree with negabinary distances: as many hops, with peers a third nearer on average.",
    "De Sensi et al., SC 2025 (Bine trees); numbers of ranks that are no power of two by pairs, here",
    "order=topology|rank, segment=SIZE",
    "an operation that commutes",
    false,
    refuse_bine_vector,
    make_bine,
    one_tag_a_slice,
};

const Algorithm reduce_earliest{
    Collective::reduce,
    "earliest",
    "The earliest-arrival broadcast tree by this machine's costs, reversed in time.",
    "Bhat, Raghavendra, Prasanna, JPDC 63(3), 2003 (earliest completing edge first), for hosts of several ranks here",
    "helpers=H (2), first=nodes|groups, segment=SIZE",
    "an operation that commutes; latencies and overheads of all levels; 1,024 nodes at most",
    false,
    refuse_earliest_vector,
    make_earliest,
    one_tag_a_slice,
};

}  // namespace palmette::collectives
