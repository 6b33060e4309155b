// bcast along a tree: linear, k_nomial, k_ary, chain, by_topology, bine, earliest; pipelined in slices.
//
//   p = 8, root 0     linear              k_nomial              k_ary, radix 2        chain
//                        0                   0                      0                  0 → 1 → 2 → ... → 7
//                 1 2 3 4 5 6 7           4  2  1                1     4
//                                        6 5 3                  2 3   5 6
//                                        7                            7
//
//   by_topology on two leaves of two nodes of two ranks:        bine:  0 → 3 7 1, 3 → 4 2, 4 → 5, 7 → 6
//       0 → 4 (across the top), 0 → 2, 4 → 6 (in the leaves), 0 → 1, 2 → 3, 4 → 5, 6 → 7 (in the nodes)
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted_vector.hpp"

namespace palmette::collectives {
namespace {

Program make_flat(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return bcast_along(job, rank, spec, flat_vector_tree(job, rank, request, spec));
}
Program make_by_topology(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return bcast_along(job, rank, spec, topology_vector_tree(job, rank, request, spec));
}
Program make_earliest(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return bcast_along(job, rank, spec, earliest_vector_tree(job, rank, request, spec));
}
Program make_bine(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return bcast_along(job, rank, spec, bine_vector_tree(job, rank, request, spec));
}

}  // namespace

const Algorithm bcast_linear{
    Collective::bcast,
    "linear",
    "The root sends to every rank directly, the farthest first: no dependent messages.",
    "folklore; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    "order=topology|rank, segment=SIZE, window=W outstanding messages of a rank (all)",
    "none",
    false,
    refuse_flat_vector,
    make_flat,
    one_tag_a_slice,
};

const Algorithm bcast_k_nomial{
    Collective::bcast,
    "k_nomial",
    "A k-nomial tree (binomial by default) in topology or rank order: ceil(log_k p) hops.",
    "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005 (binomial); k-nomial as in Bar-Noy, Kipnis, MST 27(5), 1994",
    "radix=K (2), order=topology|rank, segment=SIZE, window=W outstanding messages of a rank (all)",
    "none",
    false,
    refuse_flat_vector,
    make_flat,
    one_tag_a_slice,
};

const Algorithm bcast_k_ary{
    Collective::bcast,
    "k_ary",
    "A tree in which every rank has at most k children, for pipelining: a rank sends k vectors at most.",
    "Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra, Cluster Computing 10(2), 2007",
    "radix=K (2), order=topology|rank, segment=SIZE (a 16th of the vector, 4 to 64 KB), window=W outstanding "
    "messages of a rank (all)",
    "none",
    false,
    refuse_flat_vector,
    make_flat,
    one_tag_a_slice,
};

const Algorithm bcast_chain{
    Collective::bcast,
    "chain",
    "A pipelined chain through all ranks that leaves no group of any level twice: every link carries the vector once.",
    "Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007; the order round the root is palmette's",
    "order=topology|rank, segment=SIZE (a 16th of the vector, 4 to 64 KB), window=W outstanding messages of a rank "
    "(all)",
    "none",
    false,
    refuse_flat_vector,
    make_flat,
    one_tag_a_slice,
};

const Algorithm bcast_by_topology{
    Collective::bcast,
    "by_topology",
    "Leaders per node, chassis, leaf and tier: each level has its own tree; inside of the node also memory that all "
    "read.",
    "Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010; any number of levels and pipelining here",
    "LEVEL=linear|binomial|k_nomial.K|postal.K|k_ary.K|chain, inside of the node also shared, for each level with "
    "leaders (by size: stars or chains), inside=... for all levels inside of the node, top=..., segment=SIZE, "
    "relays=R|all (1), lanes=L (1: 2, 4, 8 or 16 trees, each for a part of the vector and led by other ranks of a "
    "node), window=W outstanding messages of a rank (all), "
    "single=SIZE (never), with shared: exposures from there on are read by single copy",
    "shared only for the level of nodes and those inside",
    false,
    refuse_topology_vector,
    make_by_topology,
    one_tag_a_slice,
    NodeMemory::where_asked,
};

const Algorithm bcast_bine{
    Collective::bcast,
    "bine",
    "A binomial tree with negabinary distances: as many hops, with peers a third nearer on average.",
    "De Sensi et al., SC 2025 (Bine trees); numbers of ranks that are no power of two by pairs, here",
    "order=topology|rank, segment=SIZE, window=W outstanding messages of a rank (all)",
    "none",
    false,
    refuse_bine_vector,
    make_bine,
    one_tag_a_slice,
};

const Algorithm bcast_earliest{
    Collective::bcast,
    "earliest",
    "Earliest-arrival tree: every informed rank sends to the nearest uninformed node, by this machine's costs.",
    "Bhat, Raghavendra, Prasanna, JPDC 63(3), 2003 (earliest completing edge first), for hosts of several ranks here",
    "helpers=H (2), first=nodes|groups, segment=SIZE, window=W outstanding messages of a rank (all)",
    "latencies and overheads of all levels; 1,024 nodes at most",
    false,
    refuse_earliest_vector,
    make_earliest,
    one_tag_a_slice,
};

}  // namespace palmette::collectives
