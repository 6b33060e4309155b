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
    .collective = Collective::bcast,
    .name = "linear",
    .sentence = "The root sends to every rank directly, the farthest first: no dependent messages.",
    .source = "folklore; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .keys = "order=topology|rank, segment=SIZE, window=W outstanding messages of a rank (all)",
    .refuse = refuse_flat_vector,
    .make = make_flat,
    .tags = one_tag_a_slice,
    .formula = flat_vector_formula,
    .samples = "linear:order=rank",
};

const Algorithm bcast_k_nomial{
    .collective = Collective::bcast,
    .name = "k_nomial",
    .sentence = "A k-nomial tree (binomial by default) in topology or rank order: ceil(log_k p) hops.",
    .source =
        "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005 (binomial); k-nomial as in Bar-Noy, Kipnis, MST 27(5), 1994",
    .keys = "radix=K (2), order=topology|rank, segment=SIZE, window=W outstanding messages of a rank (all)",
    .refuse = refuse_flat_vector,
    .make = make_flat,
    .tags = one_tag_a_slice,
    .formula = flat_vector_formula,
    .candidates = "k_nomial:window=1 k_nomial k_nomial:radix=3 k_nomial:radix=4,order=rank",
    .samples = "k_nomial:radix=3,segment=24 k_nomial:order=rank k_nomial:window=1",
};

const Algorithm bcast_k_ary{
    .collective = Collective::bcast,
    .name = "k_ary",
    .sentence = "A tree in which every rank has at most k children, for pipelining: a rank sends k vectors at most.",
    .source = "Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra, Cluster Computing 10(2), 2007",
    .keys =
        "radix=K (2), order=topology|rank, segment=SIZE (a 16th of the vector, 4 to 64 KB), window=W outstanding "
        "messages of a rank (all)",
    .refuse = refuse_flat_vector,
    .make = make_flat,
    .tags = one_tag_a_slice,
    .formula = flat_vector_formula,
    .samples = "k_ary:radix=3,segment=32",
};

const Algorithm bcast_chain{
    .collective = Collective::bcast,
    .name = "chain",
    .sentence =
        "A pipelined chain through all ranks that leaves no group of any level twice: every link carries the vector "
        "once.",
    .source = "Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007; the order round the root is palmette's",
    .keys =
        "order=topology|rank, segment=SIZE (a 16th of the vector, 4 to 64 KB), window=W outstanding messages of a "
        "rank (all)",
    .refuse = refuse_flat_vector,
    .make = make_flat,
    .tags = one_tag_a_slice,
    .formula = flat_vector_formula,
    .samples = "chain:segment=32",
};

const Algorithm bcast_by_topology{
    .collective = Collective::bcast,
    .name = "by_topology",
    .sentence =
        "Leaders per node, chassis, leaf and tier: each level has its own tree; inside of the node also memory that "
        "all read.",
    .source = "Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010; any number of levels and pipelining here",
    .keys =
        "LEVEL=linear|binomial|k_nomial.K|postal.K|k_ary.K|chain, inside of the node also shared, for each level with "
        "leaders (by size: stars or chains), inside=... for all levels inside of the node, top=..., segment=SIZE, "
        "relays=R|all (1), lanes=L (1: 2, 4, 8 or 16 trees, each for a part of the vector and led by other ranks of a "
        "node), window=W outstanding messages of a rank (all), single=SIZE (never), with shared: exposures from there "
        "on are read by single copy",
    .preconditions = "shared only for the level of nodes and those inside",
    .refuse = refuse_topology_vector,
    .make = make_by_topology,
    .tags = one_tag_a_slice,
    .node_memory = NodeMemory::where_asked,
    .pipelined = chained_on_top,
    .formula = topology_vector_formula,
    .candidates =
        "by_topology:node=linear,leaf=linear,top=linear by_topology:node=postal.5,top=postal.6 "
        "by_topology:node=k_nomial.4,top=k_nomial.4 by_topology:node=postal.5,top=linear,relays=all "
        "by_topology:node=binomial,leaf=binomial,top=binomial,window=1 "
        "by_topology:node=linear,leaf=k_nomial.4,top=k_nomial.4 "
        "by_topology:node=linear,leaf=chain,top=chain,segment=4K "
        "by_topology:node=linear,leaf=chain,top=chain,segment=8K "
        "by_topology:node=linear,leaf=chain,top=chain,segment=32K by_topology:node=shared,top=linear "
        "by_topology:node=shared,top=k_nomial.4 by_topology:node=shared,top=binomial,window=1 "
        "by_topology:node=shared,leaf=chain,top=chain,segment=32K by_topology:node=shared,top=linear,segment=32K",
    .samples =
        "by_topology by_topology:node=shared,socket=shared,segment=20 by_topology:node=shared,top=chain,single=64 "
        "by_topology:node=chain,leaf=k_ary.2,top=chain by_topology:node=shared,top=chain,segment=32 "
        "by_topology:node=postal.3,top=linear,relays=all "
        "by_topology:node=k_nomial.3,leaf=binomial,top=binomial,relays=2,segment=20 "
        "by_topology:node=shared,top=linear,relays=3 by_topology:node=linear,leaf=chain,top=chain,segment=20,lanes=2 "
        "by_topology:node=binomial,top=linear,lanes=4 by_topology:node=shared,top=linear,lanes=2 "
        "by_topology:node=binomial,leaf=linear,top=binomial,segment=20,lanes=2,window=2",
};

const Algorithm bcast_bine{
    .collective = Collective::bcast,
    .name = "bine",
    .sentence = "A binomial tree with negabinary distances: as many hops, with peers a third nearer on average.",
    .source = "De Sensi et al., SC 2025 (Bine trees); numbers of ranks that are no power of two by pairs, here",
    .keys = "order=topology|rank, segment=SIZE, window=W outstanding messages of a rank (all)",
    .refuse = refuse_bine_vector,
    .make = make_bine,
    .tags = one_tag_a_slice,
    .samples = "bine:segment=32",
    .kin = "k_nomial",
};

const Algorithm bcast_earliest{
    .collective = Collective::bcast,
    .name = "earliest",
    .sentence =
        "Earliest-arrival tree: every informed rank sends to the nearest uninformed node, by this machine's costs.",
    .source =
        "Bhat, Raghavendra, Prasanna, JPDC 63(3), 2003 (earliest completing edge first), for hosts of several ranks "
        "here",
    .keys = "helpers=H (2), first=nodes|groups, segment=SIZE, window=W outstanding messages of a rank (all)",
    .preconditions = "latencies and overheads of all levels; 1,024 nodes at most",
    .refuse = refuse_earliest_vector,
    .make = make_earliest,
    .tags = one_tag_a_slice,
    .samples = "earliest earliest:helpers=3,first=groups,segment=40",
};

}  // namespace palmette::collectives
